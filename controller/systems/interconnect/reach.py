"""Which ways lead from a hybrid switch to another one on the links that are up, and the detours where none does.

Loads choose among the usable ways alone. A way is usable if all of its links are up, to the end: so a packet on one
never comes to a switch that knows no way on. Where no way is left, a packet goes to a neighbour nearer to the
destination (in mesh links and light paths), which has a usable way or is on such a detour itself: no circles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import networkx as nx

from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import PLANES, hybrid_name, optical_name, size_of

SwitchPosition = tuple[int, int]
"""(unit, sub-unit) of a hybrid switch."""

MESH_FIRST = 1 << PLANES
"""Of `usable`, as in p4src/include/interconnect/ways.p4: bit p is plane p with light first, this one the
mesh first."""


@dataclass(frozen=True)
class Reach:
    """Reachability in one network; `topology` has the links that are up."""

    topology: Topology

    @cached_property
    def n(self) -> int:
        return size_of(self.topology)

    @property
    def places(self) -> Iterator[SwitchPosition]:
        return product(range(self.n), range(self.n))

    def usable(self, here: SwitchPosition, there: SwitchPosition) -> int | None:
        """Return the ways for packets from `here` to another hybrid switch, in the bits of interconnect/ways.p4.

        None of its bits is the mesh link of the unit. None: none is up.
        """
        (unit, sub_unit), (to_unit, to_sub_unit) = here, there
        if unit == to_unit:
            return 0 if self._mesh(here, there) else None
        found = 0
        corner = to_unit, sub_unit
        for plane in range(PLANES):
            if self.light(plane, here, corner) and (corner == there or self._mesh(corner, there)):
                found |= 1 << plane
        corner = unit, to_sub_unit
        if corner != here and self._mesh(here, corner) and self._planes(corner, there):
            found |= MESH_FIRST
        return found or None

    def detour(self, here: SwitchPosition, there: SwitchPosition) -> SwitchPosition | None:
        """Return the neighbour to send to where no way is usable; None: `there` is cut off."""
        distances = self._distances.get(there, {})
        nearer = [
            other for other in sorted(self._graph[here]) if distances.get(other, here) == distances.get(here, -1) - 1
        ]
        return nearer[0] if nearer else None

    def light(self, plane: int, here: SwitchPosition, there: SwitchPosition) -> bool:
        """Return whether the light path by that plane is up, between switches of one sub-unit number in two units."""
        optical = optical_name(here[1] + self.n * plane)
        return all((hybrid_name(*end), optical) in self._up for end in (here, there))

    def _planes(self, here: SwitchPosition, there: SwitchPosition) -> list[int]:
        return [plane for plane in range(PLANES) if self.light(plane, here, there)]

    def _mesh(self, here: SwitchPosition, there: SwitchPosition) -> bool:
        return (hybrid_name(*here), hybrid_name(*there)) in self._up

    @cached_property
    def _up(self) -> frozenset[tuple[str, str]]:
        ends = [(link.a.node, link.b.node) for link in self.topology.switch_links]
        return frozenset((*ends, *((b, a) for a, b in ends)))

    @cached_property
    def _graph(self) -> nx.Graph:
        """Hybrid switches that a mesh link or a light path joins."""
        graph: nx.Graph = nx.Graph()
        graph.add_nodes_from(self.places)
        for here, there in product(self.places, repeat=2):
            same_unit, same_sub_unit = here[0] == there[0], here[1] == there[1]
            if here < there and (
                (same_unit and self._mesh(here, there)) or (same_sub_unit and self._planes(here, there))
            ):
                graph.add_edge(here, there)
        return graph

    @cached_property
    def _distances(self) -> Mapping[SwitchPosition, Mapping[SwitchPosition, int]]:
        return dict(nx.all_pairs_shortest_path_length(self._graph))
