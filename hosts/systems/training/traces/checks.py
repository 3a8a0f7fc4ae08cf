"""What must hold between the ranks of a trace, so that none waits for ever for another.

Whether it comes to its end is found by carrying it out without time: what is left then waits for ever. A send is
complete when its receiver has it, whether that waits for it or not; a receive is complete after its send; a
collective when all of its group have come to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.traces.graph import NONE, Communication, Kind
from gradbed.hosts.systems.training.traces.trace import Trace

# ---- Whether a trace comes to its end ----


Ends = tuple[int, int, int]
"""Sender, receiver, tag."""

Meeting = tuple[Ends | tuple[int, ...], Kind, int]
"""Of whom, of which kind, and which in order."""


class Stuck(NamedTuple):
    """A node that waits for ever."""

    rank: int
    place: int
    """Place in its rank's graph."""
    why: str


def ends_of(rank: int, message: Communication) -> Ends:
    peer = message.peer
    return (rank, peer, message.tag) if message.kind is Kind.SEND else (peer, rank, message.tag)


def first_stuck(trace: Trace) -> Stuck | None:
    """Return the first stuck rank; None if all ranks come to their end."""
    run = _Dependencies(trace)
    run.all()
    return run.stuck()


class _Dependencies:
    """The dependencies of all ranks, with every node done as soon as it can be."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._left = [trace.nodes(rank).waits_for() for rank in range(trace.ranks)]
        self._ready = [
            (rank, place) for rank in range(trace.ranks) for place in (self._left[rank] == 0).nonzero()[0].tolist()
        ]
        self._meetings = [_meetings(trace, rank) for rank in range(trace.ranks)]
        self._here: dict[Meeting, list[tuple[int, int]]] = defaultdict(list)
        self._sent: set[Meeting] = set()

    def all(self) -> None:
        while self._ready:
            rank, place = self._ready.pop()
            meeting = self._meetings[rank].get(place)
            if meeting is None:
                self._complete(rank, place)
            elif meeting[1] is Kind.COLLECTIVE:
                self._here[meeting].append((rank, place))
                if len(self._here[meeting]) == (len(meeting[0]) or self._trace.ranks):
                    self._complete_all(meeting)
            elif meeting[1] is Kind.SEND:
                receive = (meeting[0], Kind.RECEIVE, meeting[2])
                self._sent.add(receive)
                self._complete(rank, place)
                self._complete_all(receive)
            else:
                self._here[meeting].append((rank, place))
                if meeting in self._sent:
                    self._complete_all(meeting)

    def _complete_all(self, meeting: Meeting) -> None:
        for rank, place in self._here.pop(meeting, ()):
            self._complete(rank, place)

    def _complete(self, rank: int, place: int) -> None:
        left = self._left[rank]
        for follower in self._trace.nodes(rank).followers(place).tolist():
            left[follower] -= 1
            if left[follower] == 0:
                self._ready.append((rank, follower))

    def stuck(self) -> Stuck | None:
        """Return who waits for other ranks, and for which."""
        for (whom, kind, _), nodes in self._here.items():
            rank, place = nodes[0]
            if kind is Kind.RECEIVE:
                missing = [whom[0]]
            else:
                present = {each for each, _ in nodes}
                missing = [each for each in whom or range(self._trace.ranks) if each not in present]
            shown = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
            return Stuck(rank, place, f"it would wait for ever for rank {shown}, and that for this one")
        return None


def _meetings(trace: Trace, rank: int) -> dict[int, Meeting]:
    """Place of a communication -> what meets there."""
    counts: dict[tuple[Ends | tuple[int, ...], Kind], int] = defaultdict(int)
    found: dict[int, Meeting] = {}
    for each in trace.nodes(rank).communications():
        whom = each.group if each.kind is Kind.COLLECTIVE else ends_of(rank, each)
        found[each.place] = (whom, each.kind, counts[whom, each.kind])
        counts[whom, each.kind] += 1
    return found


# ---- Checks ----


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
    """Check that all ranks of a group do what the one with most collectives does."""
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
