"""Whether a trace comes to its end: it is carried out without time, and what is left then waits for ever.

A send is complete when its receiver has it, whether that waits for it or not; a receive is complete after its send;
a collective when all of its group have come to it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from gradbed.hosts.systems.training.execution import Kind
from gradbed.hosts.systems.training.traces.graph import Communication
from gradbed.hosts.systems.training.traces.trace import Trace

Ends = tuple[int, int, int]
"""Sender, receiver, tag."""

Meeting = tuple[Ends | tuple[int, ...], Kind, int]
"""Of whom, of which kind, and which in order."""


class Stuck(NamedTuple):
    """A node that waits for ever. place: in its rank's graph."""

    rank: int
    place: int
    why: str


def ends_of(rank: int, message: Communication) -> Ends:
    peer = message.peer
    return (rank, peer, message.tag) if message.kind is Kind.SEND else (peer, rank, message.tag)


def first_stuck(trace: Trace) -> Stuck | None:
    """None if all ranks come to their end."""
    run = _Run(trace)
    run.all()
    return run.stuck()


class _Run:
    """Every node as soon as it can be."""

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
        """Who waits for other ranks, and for which."""
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
