"""The sending side of repairs: fragments that were lost go again, alone or summed with others, whichever takes fewer
hops. Those in a sum are wanted by different receivers, each of whom holds all but its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

from hosts.systems.shuffle.coded_format import COMPONENTS
from hosts.systems.shuffle.description import RepairTree


@dataclass(frozen=True, order=True)
class Wanted:
    """A fragment of a sample that a worker asks for."""

    receiver: int
    sample: int
    fragment: int


@dataclass
class Repair:
    """One packet. tree: place among the trees; None: unicast to its one receiver."""

    wanted: list[Wanted] = field(default_factory=list)
    hops: int = 0
    tree: int | None = None

    @property
    def components(self) -> list[tuple[int, int]]:
        """(sample, fragment) of each fragment in the sum."""
        return list(dict.fromkeys((each.sample, each.fragment) for each in self.wanted))

    @property
    def receivers(self) -> int:
        """As a set of bits."""
        return reduce(or_, (1 << each.receiver for each in self.wanted), 0)


def hops_on(tree: RepairTree, sender: int, receivers: Sequence[int]) -> int:
    """Links of the tree that a packet takes: those above some of the workers and not above all."""
    up = [tree.up[worker] for worker in (sender, *receivers)]
    return (reduce(or_, up) ^ reduce(and_, up)).bit_count()


class RepairPlanner:
    """Of one sender. holders: for each sample the workers that hold it for good, as a set of bits."""

    def __init__(
        self, sender: int, trees: Sequence[RepairTree], distances: Sequence[int], holders: Mapping[int, int]
    ) -> None:
        self._sender = sender
        self._trees = trees
        self._distances = distances
        self._holders = holders

    def plan(self, wanted: Sequence[Wanted]) -> list[Repair]:
        """Packets that bring everybody what they want."""
        repairs: list[Repair] = []
        for each in sorted(set(wanted)):
            alone = self._distances[each.receiver]
            joined = [
                (hops - repair.hops, place, hops, tree)
                for place, repair in enumerate(repairs)
                if self._fits(repair, each)
                for hops, tree in [self._together(repair, each)]
            ]
            if joined and min(joined)[0] < alone:
                _, place, hops, tree = min(joined)
                repairs[place].wanted.append(each)
                repairs[place].hops, repairs[place].tree = hops, tree
            else:
                repairs.append(Repair([each], alone))
        return repairs

    def _fits(self, repair: Repair, more: Wanted) -> bool:
        """Whether everybody could still decode what they want."""
        if not self._trees or repair.receivers >> more.receiver & 1:
            return False
        if len({*repair.components, (more.sample, more.fragment)}) > COMPONENTS:
            return False
        return all(
            (other.sample, other.fragment) == (more.sample, more.fragment)
            or (self._has(more.receiver, other.sample) and self._has(other.receiver, more.sample))
            for other in repair.wanted
        )

    def _has(self, worker: int, sample: int) -> bool:
        return bool(self._holders.get(sample, 0) >> worker & 1)

    def _together(self, repair: Repair, more: Wanted) -> tuple[int, int]:
        """Fewest hops to all of them, and the tree."""
        receivers = [each.receiver for each in (*repair.wanted, more)]
        return min((hops_on(tree, self._sender, receivers), place) for place, tree in enumerate(self._trees))
