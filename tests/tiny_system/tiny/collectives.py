"""A collective of one's own: with `--algorithm linear` every rank sends its whole vector to every other one."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.plugin import CollectiveAction, CollectiveCall, CollectiveStep, Operation


def all_reduce(call: CollectiveCall) -> Sequence[CollectiveStep]:
    """Send, and add what comes only once nobody needs one's own vector any more."""
    peers = [peer for peer in range(call.group_size) if peer != call.rank]
    sends = tuple(range(len(peers)))
    return [
        *(CollectiveStep(CollectiveAction.SEND, peer, 0, call.elements) for peer in peers),
        *(CollectiveStep(CollectiveAction.ADD, peer, 0, call.elements, after=sends) for peer in peers),
    ]


LINEAR = {Operation.ALL_REDUCE: all_reduce}
