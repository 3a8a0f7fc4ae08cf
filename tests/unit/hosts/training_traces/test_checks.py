"""What must hold between ranks: each mistake is told with rank and node, and what is right is taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.checks import check_trace
from gradbed.hosts.systems.training.traces.graph import Kind, TraceNode
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel
from tests.unit.hosts.training_traces.made import MadeTrace


def send(number: int, peer: int, size: int = 8, tag: int = 0, after: tuple[int, ...] = ()) -> TraceNode:
    return TraceNode(number, "s", Kind.SEND, after, size_bytes=size, peer=peer, tag=tag)


def receive(number: int, peer: int, size: int = 8, tag: int = 0, after: tuple[int, ...] = ()) -> TraceNode:
    return TraceNode(number, "r", Kind.RECEIVE, after, size_bytes=size, peer=peer, tag=tag)


def reduce(number: int, group: tuple[int, ...] = (), after: tuple[int, ...] = (), size: int = 8) -> TraceNode:
    return TraceNode(number, "c", Kind.COLLECTIVE, after, 0, size, operation=Operation.ALL_REDUCE, group=group)


def broadcast(number: int, root: int) -> TraceNode:
    return replace(reduce(number), operation=Operation.BROADCAST, root=root)


RIGHT = {
    "a send does not wait for the receive to begin": ([send(0, 1), receive(1, 1, after=(0,))],) * 1
    + ([send(0, 0), receive(1, 0, after=(0,))],),
    "tags match, whatever the order": (
        [send(0, 1, 8, 1), send(1, 1, 9, 2)],
        [receive(0, 0, 9, 2), receive(1, 0, 8, 1)],
    ),
    "groups in any order": ([reduce(0, (0, 1)), reduce(1, (0, 2))], [reduce(5, (0, 1))], [reduce(9, (0, 2))]),
    "no node": ([], []),
}

WRONG = {
    "no receive": (([send(4, 1)], []), "made: rank 0, node 4 (s): no receive of rank 1 with tag 0 matches this send"),
    "no send": (
        ([], [receive(4, 0, tag=7)]),
        "rank 1, node 4 (r): no send of rank 0 with tag 7 matches this receive",
    ),
    "another tag": (([send(0, 1, tag=1)], [receive(0, 0, tag=2)]), "no receive of rank 1 with tag 1"),
    "another size": (
        ([send(0, 1, 9)], [receive(0, 0, 8)]),
        "node 0 (s): it sends 9 bytes to rank 1 with tag 0, which expects 8",
    ),
    "too few receives": (([send(0, 1), send(1, 1)], [receive(0, 0)]), "rank 0, node 1 (s): no receive"),
    "sizes of a collective": (
        ([reduce(0)], [reduce(3, size=9)]),
        "node 3 (c): it is its group's collective 1: all-reduce, 9 bytes; of rank 0 (node 0): all-reduce, 8 bytes",
    ),
    "roots of a collective": (([broadcast(0, 0)], [broadcast(0, 1)]), "broadcast of root 1, 8 bytes; of rank 0"),
    "a rank of the group is missing": (
        ([reduce(0, (0, 2))], [], []),
        "rank 0, node 0 (c): rank 2 of its group has no such collective",
    ),
    "one collective too few": (([reduce(0), reduce(1)], [reduce(0)]), "node 1 (c): rank 1 of its group"),
    "receives before sends": (
        ([receive(0, 1), send(1, 1, after=(0,))], [receive(0, 0), send(1, 0, after=(0,))]),
        "it would wait for ever for rank",
    ),
    "collectives that cross": (
        (
            [reduce(0, (0, 1)), reduce(1, (1, 0), after=(0,))],
            [reduce(0, (1, 0)), reduce(1, (0, 1), after=(0,))],
        ),
        "it would wait for ever for rank",
    ),
    "a collective behind a receive": (
        ([reduce(0), send(1, 1, after=(0,))], [receive(0, 0), reduce(1, after=(0,))]),
        "it would wait for ever for rank",
    ),
}


@pytest.mark.parametrize("ranks", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_taken(ranks: tuple[list[TraceNode], ...]) -> None:
    check_trace(MadeTrace(*ranks))


@pytest.mark.parametrize(("ranks", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told(ranks: tuple[list[TraceNode], ...], said: str) -> None:
    with pytest.raises(UserError) as refused:
        check_trace(MadeTrace(*ranks))
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_made_transformers_are_right() -> None:
    numbers = {"dp": 4, "ep": 2, "experts": 2, "tp": 2, "pp": 2, "micro_batches": 2, "iterations": 2}
    check_trace(open_trace(TransformerModel.model_validate({"preset": "tiny", **numbers})))
