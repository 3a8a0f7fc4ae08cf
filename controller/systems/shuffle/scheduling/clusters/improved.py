"""Our own scheduler: clusters are chosen together, by an integer program, and not one after the other.

The source takes the best cluster that it can grow from a random edge, and so spends demands that other clusters
needed more. Here clusters are listed and an integer program chooses those that save most hops together. Large
shuffles are solved in groups of demands: first those that can be met within a rack, rack by rack, then what is left
in pods, then everywhere. Then all packets are mixed and solved once more, with those found among the choices, so that
it only gets better.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from gradbed.controller.systems.shuffle.scheduling.bounds import regions
from gradbed.controller.systems.shuffle.scheduling.clusters.columns import (
    Column,
    Demand,
    Network,
    columns,
    compatible,
    near_enough,
)
from gradbed.controller.systems.shuffle.scheduling.clusters.emission import emit
from gradbed.controller.systems.shuffle.scheduling.clusters.partition import best_columns
from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees.trees import Trees

PROBED = 400
"""Demands of an area of which pairs are counted, to tell how many there are in all."""

Cluster = list[Demand]
"""The receivers of a packet; one alone is no coding."""


@dataclass(frozen=True)
class Improved:
    """pairs: of demands that fit together, in a group that is solved at once. every: clusters, up to which all of a
    small shuffle are listed, and not only those that grow by savings. gap, nodes: see best_columns. rounds: how often
    all packets of a large one are mixed and solved again."""

    pairs: int = 6_000
    every: int = 20_000
    gap: float = 0.002
    nodes: int = 1_000
    rounds: int = 1
    name: str = "improved"

    def schedule(self, instance: Instance, trees: Trees, seed: int) -> Schedule:
        draw = random.Random(seed)
        network = Network(instance, trees)
        found = [[demand] for demand in instance.demands]
        if self._parts(network, found, draw) > 1:
            for inside in _areas(network):
                own = [cluster for cluster in found if len(cluster) == 1 and inside >> cluster[0][0] & 1]
                solved = self._solved_in_parts(network, own, draw)
                taken = {demand for cluster in solved for demand in cluster}
                found = [*(cluster for cluster in found if cluster[0] not in taken), *solved]
            for _ in range(self.rounds):
                found = self._solved_in_parts(network, found, draw)
        else:
            found = self._solved(network, found, self.every)
        return emit(self.name, network, [cluster for cluster in found if len(cluster) > 1], seed)

    def _solved_in_parts(self, network: Network, clusters: list[Cluster], draw: random.Random) -> list[Cluster]:
        parts = self._parts(network, clusters, draw)
        mixed = draw.sample(clusters, len(clusters))
        return [cluster for part in range(parts) for cluster in self._solved(network, mixed[part::parts])]

    def _parts(self, network: Network, clusters: Sequence[Cluster], draw: random.Random) -> int:
        """Into how many groups to part the demands by chance, so that each has about as many pairs as are allowed."""
        demands = [demand for cluster in clusters for demand in cluster]
        probe = draw.sample(demands, min(PROBED, len(demands)))
        if len(probe) < 2:
            return 1
        density = np.count_nonzero(compatible(network, probe) & near_enough(network, probe)) / len(probe) ** 2
        size = max(2, int((2 * self.pairs / density) ** 0.5)) if density else len(demands)
        return -(-len(demands) // size)

    def _solved(self, network: Network, clusters: Sequence[Cluster], every: int = 0) -> list[Cluster]:
        """The same demands in clusters that take fewer hops, or as many."""
        demands = [demand for cluster in clusters for demand in cluster]
        offered = list(islice(columns(network, demands, every=True), every + 1)) if every else []
        if not 0 < len(offered) <= every:
            offered = list(columns(network, demands))
        if len(demands) > len(clusters):
            offered += self._former(network, clusters, demands)
        chosen = [column.demands for column in best_columns(len(demands), offered, self.gap, self.nodes)]
        taken = {place for places in chosen for place in places}
        alone = [(place,) for place in range(len(demands)) if place not in taken]
        return [[demands[place] for place in places] for places in (*chosen, *alone)]

    def _former(self, network: Network, clusters: Sequence[Cluster], demands: Sequence[Demand]) -> Iterator[Column]:
        """The clusters of before as columns."""
        nearest = network.nearest(demands).tolist()
        place = 0
        for cluster in clusters:
            places = tuple(range(place, place + len(cluster)))
            place += len(cluster)
            if len(cluster) > 1:
                receivers = sum(1 << worker for worker, _ in cluster)
                hops = network.least_hops(network.senders(cluster), receivers, every=False)
                yield Column(places, hops, sum(nearest[each] for each in places) - hops)


def _areas(network: Network) -> list[int]:
    """Racks, pods, everything, as sets of workers."""
    everybody = (1 << len(network.instance.workers)) - 1
    found = [inside & everybody for inside in regions(network.trees)]
    return [*(inside for inside in found if 2 < inside.bit_count() < everybody.bit_count()), everybody]
