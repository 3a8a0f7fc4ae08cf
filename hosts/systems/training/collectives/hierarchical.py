"""All-reduce in racks: reduce-scatter inside each, all-reduce between racks, all-gather inside.

Between racks each link of a rack carries as little as if the rack were one rank: of L members each sums one part of L
with those of the same place in other racks (E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn, "Collective
communication: theory, practice, and experience", Concurrency and Computation 19, 2007, compose collectives of meshes
so; M. Cho et al., "BlueConnect", MLSys 2019, those of hierarchies). Chunks go through the three phases one behind the
other, so that links inside and between racks are busy together.

Where racks differ in size, L is that of the smallest. The other members hand their vectors to one of the first L of
their rack, in turn, and get back the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradbed.hosts.collectives.schedule import CollectiveAction, CollectiveStep, Operation, part

SubSteps = Callable[[Operation, int, int, int], Sequence[CollectiveStep]]
"""Of an operation, a group size, a rank and the whole vector's elements: what the ranks of a rack, or those of one
place in all racks, do."""


@dataclass(frozen=True)
class Racks:
    """The racks of ranks."""

    members: tuple[tuple[int, ...], ...]
    """Members of each rack, in order."""

    @staticmethod
    def of(racks: Sequence[int]) -> Racks:
        """Return the racks, from the rack of each rank."""
        found: dict[int, list[int]] = {}
        for rank, rack in enumerate(racks):
            found.setdefault(rack, []).append(rank)
        return Racks(tuple(tuple(members) for members in found.values()))

    @property
    def columns(self) -> int:
        return min(map(len, self.members))

    def place(self, rank: int) -> tuple[tuple[int, ...], int]:
        """Return the members of a rank's rack, and which of them it is."""
        return next((members, members.index(rank)) for members in self.members if rank in members)


class _Steps(list[CollectiveStep]):
    """Steps of phases, each among some of the ranks and on a range of the buffer."""

    def phase(
        self,
        steps: Sequence[CollectiveStep],
        ranks: Sequence[int],
        offset: int,
        after: Callable[[CollectiveStep], tuple[int, ...]],
    ) -> range:
        """Add the steps of a schedule among `ranks` on the buffer from offset on; after: what each waits for besides.
        Returns their places."""
        begin = len(self)
        for step in steps:
            earlier = tuple(begin + place for place in step.after)
            start, stop = step.start + offset, step.stop + offset
            self.append(CollectiveStep(step.action, ranks[step.peer], start, stop, (*earlier, *after(step))))
        return range(begin, len(self))

    def join(self, places: Sequence[int], rank: int) -> tuple[int, ...]:
        """Add one step that is complete when these are."""
        if len(places) <= 1:
            return tuple(places)
        self.append(CollectiveStep(CollectiveAction.COPY, rank, 0, 0, after=tuple(places)))
        return (len(self) - 1,)

    def receives(self, places: Sequence[int]) -> list[int]:
        return [place for place in places if self[place].action in (CollectiveAction.ADD, CollectiveAction.RECEIVE)]


def all_reduce(
    racks: Racks, rank: int, elements: int, chunks: int, inside: SubSteps, between: SubSteps
) -> list[CollectiveStep]:
    """inside: of reduce-scatter and all-gather; between: of all-reduce."""
    members, place = racks.place(rank)
    columns = racks.columns
    steps = _Steps()
    for chunk in range(chunks):
        start, stop = part(elements, chunks, chunk)
        if place >= columns:
            server = members[place % columns]
            steps.append(CollectiveStep(CollectiveAction.SEND, server, start, stop))
            steps.append(CollectiveStep(CollectiveAction.RECEIVE, server, start, stop, after=(len(steps) - 1,)))
            continue
        guests = members[place + columns :: columns]
        came = []
        for guest in guests:
            came.append(len(steps))
            steps.append(CollectiveStep(CollectiveAction.ADD, guest, start, stop))
        ended = _chunk(steps, racks, rank, (start, stop), tuple(came), inside, between)
        steps.extend(CollectiveStep(CollectiveAction.SEND, guest, start, stop, after=ended) for guest in guests)
    return steps


def _chunk(
    steps: _Steps,
    racks: Racks,
    rank: int,
    chunk: tuple[int, int],
    came: tuple[int, ...],
    inside: SubSteps,
    between: SubSteps,
) -> tuple[int, ...]:
    """came: the receives that all waits for. Returns what is complete when the chunk is."""
    members, place = racks.place(rank)
    columns, (start, stop) = racks.columns, chunk
    rack, column = members[:columns], [others[place] for others in racks.members]
    ready = steps.join(came, rank)
    own_start, own_stop = part(stop - start, columns, place)

    # Nothing may be added to what guests' vectors are still added to: a relay would send it on too early.
    added = steps.phase(
        inside(Operation.REDUCE_SCATTER, columns, place, stop - start), rack, start, lambda step: ready
    )
    own = steps.join([*ready, *steps.receives(added)], rank)
    summed = steps.phase(
        between(Operation.ALL_REDUCE, len(column), racks.members.index(members), own_stop - own_start),
        column,
        start + own_start,
        lambda step: own if not step.after else (),
    )
    total = steps.join([*own, *steps.receives(summed)], rank)
    free = steps.join(added, rank)

    def after(step: CollectiveStep) -> tuple[int, ...]:
        if step.action is CollectiveAction.RECEIVE:
            return free
        covers_own = step.start <= own_start and own_stop <= step.stop
        return total if covers_own or not step.after else ()

    gathered = steps.phase(inside(Operation.ALL_GATHER, columns, place, stop - start), rack, start, after)
    return steps.join([*total, *steps.receives(gathered)], rank)
