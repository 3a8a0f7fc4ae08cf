"""The sending side of repairs: fragments that were lost go again, alone or summed with others, whichever takes fewer
hops. Those in a sum are wanted by different receivers, each of whom holds all but its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from gradbed.formats.shuffle import COMPONENTS
from gradbed.hosts.systems.shuffle.description import RepairGroup, RepairTree

RepairRoute = RepairTree | RepairGroup


@dataclass(frozen=True, order=True)
class Wanted:
    """A fragment of a sample that a worker asks for."""

    receiver: int
    sample: int
    fragment: int


@dataclass
class Repair:
    """One packet. route: None: unicast to its one receiver."""

    wanted: list[Wanted] = field(default_factory=list)
    hops: int = 0
    route: RepairRoute | None = None

    @property
    def components(self) -> list[tuple[int, int]]:
        """(sample, fragment) of each fragment in the sum."""
        return list(dict.fromkeys((each.sample, each.fragment) for each in self.wanted))

    @property
    def receivers(self) -> int:
        """As a set of bits."""
        return reduce(or_, (1 << each.receiver for each in self.wanted), 0)


class RepairPlanner:
    """Of one sender. routes: to several receivers. holders: for each sample the workers that hold it for good, as a
    set of bits."""

    def __init__(
        self, sender: int, routes: Sequence[RepairRoute], distances: Sequence[int], holders: Mapping[int, int]
    ) -> None:
        self._sender = sender
        self._routes = routes
        self._distances = distances
        self._holders = holders

    def plan(self, wanted: Sequence[Wanted]) -> list[Repair]:
        """Packets that bring everybody what they want."""
        repairs: list[Repair] = []
        for each in sorted(set(wanted)):
            alone = self._distances[each.receiver]
            joined = [
                (hops - repair.hops, place, hops, route)
                for place, repair in enumerate(repairs)
                if self._fits(repair, each)
                for hops, route in self._together(repair, each)
            ]
            if joined and min(joined)[0] < alone:
                _, place, hops, route = min(joined)
                repairs[place].wanted.append(each)
                repairs[place].hops, repairs[place].route = hops, self._routes[route]
            else:
                repairs.append(Repair([each], alone))
        return repairs

    def _fits(self, repair: Repair, more: Wanted) -> bool:
        """Whether everybody could still decode what they want."""
        if repair.receivers >> more.receiver & 1:
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

    def _together(self, repair: Repair, more: Wanted) -> Iterator[tuple[int, int]]:
        """Hops to all of them, and the place of the route."""
        receivers = [each.receiver for each in (*repair.wanted, more)]
        for place, route in enumerate(self._routes):
            hops = route.hops(self._sender, receivers)
            if hops is not None:
                yield hops, place
