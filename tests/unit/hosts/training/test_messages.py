"""When a rank is to be told of what it sent: only while something would go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from hosts.agents.addresses import AgentAddress
from hosts.agents.queue_pairs import Completion, CompletionKind, QueuePairOptions, QueuePairs
from hosts.systems.training.collective_run import CollectiveRun
from hosts.systems.training.collectives.algorithms import Algorithm, schedule
from hosts.systems.training.execution import Kind, Node, Operation
from hosts.systems.training.messages import Lane, Messages
from hosts.systems.training.plans import Plan
from hosts.systems.training.point_to_point import PointToPoint


class Pairs:
    """Queue pairs that carry nothing. quiet: as the agent opens them."""

    def __init__(self) -> None:
        self.quiet = True
        self.sent: list[tuple[int, int]] = []
        self.done: list[Completion] = []

    def connect(self, *arguments: Any) -> None: ...

    def send(self, number: int, tag: int, size_bytes: int, data: Any = None) -> None:
        self.sent.append((number, tag))

    def set_quiet_sent(self, quiet_sent: bool) -> None:
        assert quiet_sent is not self.quiet
        self.quiet = quiet_sent

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
        node = Node(number, "send", Kind.SEND, peer=1, size_bytes=8, tag=3)
        point_to_point.send(node, lambda number=number: ended.append(number))  # type: ignore[misc]
        assert not pairs.quiet
    first, second = pairs.sent
    pairs.completes(CompletionKind.SENT, *first, messages)
    assert ended == [1] and not pairs.quiet
    pairs.completes(CompletionKind.SENT, *second, messages)
    assert ended == [1, 2] and pairs.quiet


def test_a_collective_waits_for_what_it_sent_only_where_something_came_before() -> None:
    pairs, messages = rank_0_of_2()
    ended: list[Any] = []
    plan = Plan(schedule(Algorithm.RING, Operation.ALL_REDUCE, 2, 0, 8), (0, 1), {0: 0, 1: 1}, frozenset({1}), 4)
    CollectiveRun(plan, 5, messages, None, ended.append).begin()
    assert pairs.quiet
    (number, tag) = pairs.sent[0]
    # The sum of the other half, and then all of this half, in whose place this rank's is still being sent.
    pairs.completes(CompletionKind.RECEIVED, number, tag, messages)
    assert pairs.quiet and len(pairs.sent) == 2
    pairs.completes(CompletionKind.RECEIVED, number, tag + 1, messages)
    assert not pairs.quiet and not ended
    pairs.completes(CompletionKind.SENT, *pairs.sent[0], messages)
    assert pairs.quiet and len(ended) == 1
    pairs.completes(CompletionKind.SENT, *pairs.sent[1], messages)
    assert pairs.quiet
