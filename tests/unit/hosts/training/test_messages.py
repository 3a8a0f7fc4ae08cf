"""What ends when a rank is told of a completion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.agents.queue_pairs import (
    CollectiveCounts,
    Completion,
    CompletionKind,
    NicCollective,
    QueuePairOptions,
    QueuePairs,
)
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, schedule
from gradbed.hosts.systems.training.messages import PLACE_BITS, Lane, Messages, PointToPoint, begin_collective
from gradbed.hosts.systems.training.plans import Plan
from gradbed.hosts.systems.training.traces.graph import Kind, TraceNode


class Pairs:
    """Queue pairs that carry nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int]] = []
        self.done: list[Completion] = []
        self.for_collectives: set[int] = set()
        self.begun: dict[int, NicCollective] = {}
        self.has_result = False

    def connect(self, number: int, *arguments: Any, for_collectives: bool) -> None:
        if for_collectives:
            self.for_collectives.add(number)

    def begin_collective(self, tag: int, collective: NicCollective) -> bool:
        self.begun[tag] = collective
        return self.has_result

    def collective_counts(self) -> CollectiveCounts:
        return CollectiveCounts(20, 300, 4)

    def send(self, number: int, tag: int, size_bytes: int, data: Any = None) -> None:
        self.sent.append((number, tag))

    def completions(self) -> Sequence[Completion]:
        found, self.done = self.done, []
        return found

    def completes(self, kind: CompletionKind, pair: int, tag: int, messages: Messages) -> None:
        self.done.append(Completion(kind, pair, tag, 0, 0))
        messages.take()


def rank_0_of_2() -> tuple[Pairs, Messages]:
    ranks = tuple(
        AgentAddress(name=f"h{i}", ip=f"10.0.0.{i}", mac=f"02:00:00:00:00:0{i}", gateway_mac="02:00:00:00:01:01")
        for i in (1, 2)
    )
    pairs = Pairs()
    messages = Messages(cast(QueuePairs, pairs), ranks, 0, QueuePairOptions(), 10)
    messages.connect((1, lane) for lane in Lane)
    return pairs, messages


def test_a_send_of_a_trace_ends_when_it_is_acknowledged() -> None:
    pairs, messages = rank_0_of_2()
    ended: list[int] = []
    point_to_point = PointToPoint(0, messages)
    for number in (1, 2):
        node = TraceNode(number, "send", Kind.SEND, peer=1, size_bytes=8, tag=3)
        point_to_point.send(node, lambda number=number: ended.append(number))  # type: ignore[misc]
    first, second = pairs.sent
    pairs.completes(CompletionKind.SENT, *first, messages)
    assert ended == [1]
    pairs.completes(CompletionKind.SENT, *second, messages)
    assert ended == [1, 2]


def test_a_receive_ends_with_a_message_that_came_before_or_comes_later() -> None:
    pairs, messages = rank_0_of_2()
    ended: list[int] = []
    node = TraceNode(1, "receive", Kind.RECEIVE, peer=1, size_bytes=8, tag=3)
    PointToPoint(1, messages).send(node, lambda: None)  # as rank 1 tags it
    point_to_point, (come,) = PointToPoint(0, messages), pairs.sent
    for _ in range(2):
        pairs.completes(CompletionKind.RECEIVED, *come, messages)
    assert messages.counts()["unclaimed"] == 4 + 2
    for number in (1, 2, 3):
        point_to_point.receive(node, lambda number=number: ended.append(number))  # type: ignore[misc]
    assert ended == [1, 2] and messages.counts()["unclaimed"] == 4
    pairs.completes(CompletionKind.RECEIVED, *come, messages)
    assert ended == [1, 2, 3]


def test_a_collective_ends_when_its_nic_says_so_or_at_once() -> None:
    """It waits for nothing that was sent, as its NIC does that."""
    pairs, messages = rank_0_of_2()
    ended: list[Any] = []
    plan = Plan(schedule(Algorithm.RING, Operation.ALL_REDUCE, 2, 0, 8), (0, 1), {0: 0, 1: 1}, frozenset({1}), 4)
    begin_collective(plan, 5, messages, None, ended.append)
    (tag,) = pairs.begun
    assert tag >> PLACE_BITS == 5 and pairs.for_collectives == {12} and not ended
    assert pairs.begun[tag].pairs.tolist() == [12]
    assert pairs.begun[tag].size_bytes.tolist() == [16] * 4
    pairs.completes(CompletionKind.COLLECTIVE, 0, tag, messages)
    assert ended == [None]
    pairs.has_result = True
    begin_collective(plan, 6, messages, None, ended.append)
    assert ended == [None, None]
    assert messages.counts() == {"messages": 20, "message_bytes": 300, "unclaimed": 4}


def test_ranks_that_do_not_agree_on_a_collective_are_told() -> None:
    pairs, messages = rank_0_of_2()
    with pytest.raises(UserError, match="rank 1 sent 0 bytes for a collective in which rank 0 does not expect them"):
        pairs.completes(CompletionKind.COLLECTIVE_FAILED, 12, 5 << PLACE_BITS, messages)
