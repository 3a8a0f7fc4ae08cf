"""What must hold between the ranks of a trace, so that none waits for ever for another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.execution import Kind
from gradbed.hosts.systems.training.traces.graph import NONE, Communication
from gradbed.hosts.systems.training.traces.progress import Ends, ends_of, first_stuck
from gradbed.hosts.systems.training.traces.trace import Trace

At = tuple[int, Communication]
"""A communication of a rank."""


def check_trace(trace: Trace) -> None:
    """UserError with file, rank and node for a send without a receive of its size, or a receive without a send; for
    ranks of a group whose collectives are not the same in the same order; and for ranks that wait for each other.

    Messages between two ranks match by tag, in the order of the nodes; so do the collectives of a group.
    """
    sends: dict[Ends, list[At]] = defaultdict(list)
    receives: dict[Ends, list[At]] = defaultdict(list)
    collectives: dict[tuple[int, ...], dict[int, list[At]]] = defaultdict(dict)
    for rank in range(trace.ranks):
        for each in trace.nodes(rank).communications():
            if each.kind is Kind.COLLECTIVE:
                collectives[each.group].setdefault(rank, []).append((rank, each))
            else:
                (sends if each.kind is Kind.SEND else receives)[ends_of(rank, each)].append((rank, each))
    for ends in sorted({*sends, *receives}):
        _match(trace, ends, sends.get(ends, []), receives.get(ends, []))
    for group, of_ranks in collectives.items():
        _agree(trace, group, of_ranks)
    stuck = first_stuck(trace)
    if stuck is not None:
        raise _refusal(trace, stuck.rank, stuck.place, stuck.why)


def _refusal(trace: Trace, rank: int, place: int, what: str) -> UserError:
    node = trace.nodes(rank)[place]
    name = " ".join(node.name.split())
    shown = name if len(name) <= 60 else name[:57] + "..."
    return UserError(f"{trace.place(rank)}, node {node.number} ({shown}): {what}")


def _match(trace: Trace, ends: Ends, sends: list[At], receives: list[At]) -> None:
    source, target, tag = ends
    for (rank, send), (_, receive) in zip(sends, receives, strict=False):
        if send.size_bytes != receive.size_bytes:
            what = f"it sends {send.size_bytes:,} bytes to rank {target} with tag {tag}"
            raise _refusal(trace, rank, send.place, f"{what}, which expects {receive.size_bytes:,}")
    if len(sends) > len(receives):
        rank, send = sends[len(receives)]
        raise _refusal(trace, rank, send.place, f"no receive of rank {target} with tag {tag} matches this send")
    if len(receives) > len(sends):
        rank, receive = receives[len(sends)]
        raise _refusal(trace, rank, receive.place, f"no send of rank {source} with tag {tag} matches this receive")


def _agree(trace: Trace, group: tuple[int, ...], of_ranks: Mapping[int, list[At]]) -> None:
    """All ranks of a group do what the one with most collectives does."""
    longest = max(of_ranks.values(), key=len)
    for rank in group or range(trace.ranks):
        own = of_ranks.get(rank, [])
        for order, ((_, theirs), (_, ours)) in enumerate(zip(longest, own, strict=False), 1):
            if _what(theirs) != _what(ours):
                first = longest[0][0]
                number = trace.nodes(first)[theirs.place].number
                what = f"it is its group's collective {order}: {_described(ours)}"
                raise _refusal(
                    trace, rank, ours.place, f"{what}; of rank {first} (node {number}): {_described(theirs)}"
                )
        if len(own) < len(longest):
            first, missing = longest[len(own)]
            raise _refusal(trace, first, missing.place, f"rank {rank} of its group has no such collective")


def _what(each: Communication) -> tuple[object, ...]:
    return each.operation, each.size_bytes, each.root


def _described(each: Communication) -> str:
    assert each.operation is not None
    root = "" if each.root == NONE else f" of root {each.root}"
    return f"{each.operation.value}{root}, {each.size_bytes:,} bytes"
