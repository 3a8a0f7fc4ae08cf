"""Schedulers that choose clusters together, by an integer program: our own, and the one with the fewest hops."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.bounds import regions
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, SendQueues
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees import JoinedTrees, SteinerTrees, Trees, bits_of, members

# ---- Clusters among some demands, listed ----


Demand = tuple[int, int]
"""(worker, sample)"""

SENDERS_PER_DISTANCE = 4
"""In a tree, of holders that are equally far from their nearest receiver all cost the same; elsewhere nearly."""


@dataclass(frozen=True, slots=True)
class Column:
    """A cluster that could be sent as one packet. demands: places in the list that was asked about."""

    demands: tuple[int, ...]
    hops: int
    saved: int
    """Hops less than its receivers' unicasts from their nearest holders take."""


class ClusterCosts:
    """Costs of clusters on a network; shared by all lists of an instance."""

    def __init__(self, instance: ShuffleInstance, trees: Trees) -> None:
        self.instance = instance
        self.trees = trees
        self.holders = instance.holders
        self.distances = trees.distances[: len(instance.workers), : len(instance.workers)]
        self.steiner = None if trees.are_shortest else SteinerTrees(trees)

    @cached_property
    def stored(self) -> NDArray[np.bool_]:
        """Matrix of shape (workers, samples): true where the worker stores the sample."""
        found = np.zeros((len(self.instance.workers), self.instance.samples), bool)
        for worker, samples in enumerate(self.instance.stored):
            found[worker, list(samples)] = True
        return found

    @cached_property
    def by_distance(self) -> list[list[int]]:
        """Sets of other workers by distance for each worker, the nearest first."""
        return [
            [bits_of(np.flatnonzero(row == hops).tolist()) for hops in sorted(set(row.tolist()) - {0})]
            for row in self.distances
        ]

    def nearest(self, demands: Sequence[Demand]) -> NDArray[np.int64]:
        """Return the hops of each demand's unicast from its nearest holder."""
        if not demands:
            return np.zeros(0, np.int64)
        workers = [worker for worker, _ in demands]
        samples = [sample for _, sample in demands]
        away = np.where(self.stored[:, samples].T, self.distances[workers], np.iinfo(np.int64).max)
        found: NDArray[np.int64] = away.min(axis=1)
        return found

    def hops(self, sender: int, receivers: int) -> int:
        """Return the fewest hops of a packet, on any tree."""
        shortest = None if self.steiner is None else self.steiner.hops(receivers)
        return self.trees.hops(sender, receivers) if shortest is None else int(shortest[sender])

    def least_hops(self, holders: int, receivers: int, *, every: bool) -> int:
        """Return the fewest hops from the best sender among some holders.

        every: look at all of them, and not only at some of the nearest of each receiver.
        """
        shortest = None if self.steiner is None else self.steiner.hops(receivers)
        if shortest is not None:
            return int(shortest[list(members(holders))].min())
        senders = members(holders) if every else self.nearest_senders(holders, receivers, SENDERS_PER_DISTANCE)
        return min(self.trees.hops_of_each(senders, receivers))

    def nearest_senders(self, holders: int, receivers: int, most: int) -> Iterator[int]:
        """Return for each receiver the holders nearest to it, at most that many."""
        seen = 0
        for receiver in members(receivers):
            near = next(each & holders for each in self.by_distance[receiver] if each & holders) & ~seen
            seen |= near
            yield from islice(members(near), most)

    def senders(self, demands: Sequence[Demand]) -> int:
        """Return the workers that store all samples of a cluster, as a set."""
        found = -1
        for _, sample in demands:
            found &= self.holders[sample]
        return found & ~bits_of(worker for worker, _ in demands)


def compatible(network: ClusterCosts, demands: Sequence[Demand]) -> NDArray[np.bool_]:
    """Return which two demands fit into one packet, of shape (demands, demands).

    Each worker stores the other's sample, or needs the same one.
    """
    workers = np.array([worker for worker, _ in demands])
    samples = np.array([sample for _, sample in demands])
    stores = network.stored[np.ix_(workers, samples)]
    same = (samples[:, None] == samples) & (workers[:, None] != workers)
    found: NDArray[np.bool_] = (stores & stores.T) | same
    return found


def near_enough(network: ClusterCosts, demands: Sequence[Demand]) -> NDArray[np.bool_]:
    """Return which two demands could save hops on their own, of shape (demands, demands).

    A packet for both takes at least half of their distance and their unicasts.
    """
    workers = np.array([worker for worker, _ in demands])
    nearest = network.nearest(demands)
    found: NDArray[np.bool_] = network.distances[np.ix_(workers, workers)] < nearest[:, None] + nearest
    return found


def columns(
    network: ClusterCosts, demands: Sequence[Demand], *, every: bool = False, most: int | None = None
) -> Iterator[Column]:
    """Clusters of two and more demands that save hops, each once.

    every: all that save any; else those in which two near demands are joined by others one after the other, each of
    which saves more. most: of the clusters of two, go on from so many that save most.
    """
    if not demands:
        return
    fits = compatible(network, demands)
    if not every:
        fits &= near_enough(network, demands)
    rows = np.packbits(np.triu(fits), axis=1, bitorder="little")
    later = [int.from_bytes(row.tobytes(), "little") for row in rows]
    nearest = network.nearest(demands).tolist()

    def grown(
        cluster: tuple[int, ...], workers: int, holders: int, others: int, apart: int, saved: int
    ) -> Iterator[Column]:
        for place in members(others):
            worker, sample = demands[place]
            joined, senders = workers | 1 << worker, holders & network.holders[sample] & ~(1 << worker)
            if not senders:
                continue
            hops = network.least_hops(senders, joined, every=every)
            now = apart + nearest[place] - hops
            if now > (0 if every else saved):
                yield Column((*cluster, place), hops, now)
            if every or now > saved:
                yield from grown(
                    (*cluster, place), joined, senders, others & later[place], apart + nearest[place], max(now, saved)
                )

    for first, (worker, sample) in enumerate(demands):
        yield from grown((first,), 1 << worker, network.holders[sample], later[first], nearest[first], 0)


# ---- The choice: every demand is met once and hops are fewest (set packing) ----


def best_columns(demands: int, offered: Sequence[Column], gap: float = 0.0, nodes: int | None = None) -> list[Column]:
    """Disjoint columns that save most hops together; demands that are in none are sent on their own.

    gap: by what share the savings may be below the most possible. nodes: of the search tree, after which the best
    that was found is taken (a limit in time would give another result on another machine).
    """
    if not offered:
        return []
    rows = np.concatenate([column.demands for column in offered])
    starts = np.cumsum([0, *(len(column.demands) for column in offered)])
    packing = csc_array((np.ones(len(rows)), rows, starts), shape=(demands, len(offered)))
    result = milp(
        [-column.saved for column in offered],
        constraints=LinearConstraint(packing, -np.inf, 1),
        integrality=np.ones(len(offered)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": gap, **({} if nodes is None else {"node_limit": nodes})},
    )
    if result.x is None:
        return _one_after_the_other(offered)
    return [column for column, chosen in zip(offered, result.x, strict=True) if chosen > 0.5]


def _one_after_the_other(offered: Sequence[Column]) -> list[Column]:
    """Return as many as are disjoint of the columns that save most for each demand."""
    taken: set[int] = set()
    found = []
    for column in sorted(offered, key=lambda column: -column.saved / len(column.demands)):
        if taken.isdisjoint(column.demands):
            taken.update(column.demands)
            found.append(column)
    return found


# ---- From chosen clusters to a schedule ----


SENDERS = 16
"""Up to so many holders of a cluster all may send it; of more, those that are nearest to its receivers."""


def emit(name: str, network: ClusterCosts, clusters: Sequence[Sequence[Demand]], seed: int) -> Schedule:
    """A packet for each cluster and for every demand that is in none, in any order: one worker after the other would
    all be sent to at the same time.

    Of the senders with fewest hops the one with the shortest queue sends. Where only a Steiner tree is so short, it
    is added to the trees; which of equally short ones a packet takes is chosen later (schedule.py).
    """
    instance, trees = network.instance, network.trees
    clustered = {demand for cluster in clusters for demand in cluster}
    alone = [[demand] for demand in instance.demands if demand not in clustered]
    queues = SendQueues(instance, trees)
    queued: Counter[int] = Counter()
    shorter = JoinedTrees()
    for cluster in random.Random(seed).sample([*clusters, *alone], len(clusters) + len(alone)):
        receivers = bits_of(worker for worker, _ in cluster)
        holders = network.senders(cluster)
        near = network.nearest_senders(holders, receivers, SENDERS)
        senders = members(holders) if holders.bit_count() <= SENDERS else near
        hops = {sender: network.hops(sender, receivers) for sender in senders}
        least = min(hops.values())
        sender = min((each for each in hops if hops[each] == least), key=queued.__getitem__)
        queued[sender] += 1
        hops_on_best, tree = trees.best(sender, receivers)
        if hops_on_best > least:
            assert network.steiner is not None, "breadth-first trees are as short as any"
            tree = len(trees.trees) + shorter.add(network.steiner.tree(sender, receivers))
        queues.add(CodedPacket(sender, tuple(cluster), tree, least))
    schedule = queues.schedule(name)
    return replace(schedule, trees=(*schedule.trees, *shorter.trees))


# ---- The fewest hops of packets without loans ----


MAX_COLUMNS = 100_000
"""More take the integer program too long."""


@dataclass(frozen=True)
class Exact:
    """The scheduler with the fewest hops of all schedules without loans, for small instances (ours)."""

    name: str = "exact"
    needs_master: ClassVar[bool] = False

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        network = ClusterCosts(instance, trees)
        offered = list(islice(columns(network, instance.demands, every=True), MAX_COLUMNS + 1))
        if len(offered) > MAX_COLUMNS:
            raise UserError(
                f"exact: this shuffle has more than {MAX_COLUMNS:,} clusters to choose of; take fewer samples, or "
                "the scheduler improved"
            )
        chosen = best_columns(len(instance.demands), offered)
        clusters = [[instance.demands[place] for place in column.demands] for column in chosen]
        return emit(self.name, network, clusters, seed)


# ---- Our own scheduler ----
#
# Our own scheduler: clusters are chosen together, by an integer program, and not one after the other.
#
# The source takes the best cluster that it can grow from a random edge, and so spends demands that other clusters
# needed more. Here clusters are listed and an integer program chooses those that save most hops together. Large
# shuffles are solved in groups of demands: first those that can be met within a rack, rack by rack, then what is left
# in pods, then everywhere. Then all packets are mixed and solved once more, with those found among the choices, so
# that it only gets better.


PROBED = 400
"""Demands of an area of which pairs are counted, to tell how many there are in all."""

Cluster = list[Demand]
"""The receivers of a packet; one alone is no coding."""


@dataclass(frozen=True)
class Improved:
    """Our scheduler: clusters as columns of a set-partitioning program (docs/shuffle-scheduling.md)."""

    pairs: int = 6_000
    """Largest number of pairs of demands that fit together, in a group that is solved at once."""
    every: int = 20_000
    """Number of clusters up to which all of a small shuffle are listed, and not only those that grow by savings."""
    gap: float = 0.002
    """See best_columns."""
    nodes: int = 1_000
    """See best_columns."""
    rounds: int = 1
    """How often all packets of a large shuffle are mixed and solved again."""
    name: str = "improved"
    needs_master: ClassVar[bool] = False

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        draw = random.Random(seed)
        network = ClusterCosts(instance, trees)
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

    def _solved_in_parts(self, network: ClusterCosts, clusters: list[Cluster], draw: random.Random) -> list[Cluster]:
        parts = self._parts(network, clusters, draw)
        mixed = draw.sample(clusters, len(clusters))
        return [cluster for part in range(parts) for cluster in self._solved(network, mixed[part::parts])]

    def _parts(self, network: ClusterCosts, clusters: Sequence[Cluster], draw: random.Random) -> int:
        """Into how many groups to part the demands by chance, so that each has about as many pairs as are allowed."""
        demands = [demand for cluster in clusters for demand in cluster]
        probe = draw.sample(demands, min(PROBED, len(demands)))
        if len(probe) < 2:
            return 1
        density = np.count_nonzero(compatible(network, probe) & near_enough(network, probe)) / len(probe) ** 2
        size = max(2, int((2 * self.pairs / density) ** 0.5)) if density else len(demands)
        return -(-len(demands) // size)

    def _solved(self, network: ClusterCosts, clusters: Sequence[Cluster], every: int = 0) -> list[Cluster]:
        """Return the same demands in clusters that take fewer hops, or as many."""
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

    def _former(
        self, network: ClusterCosts, clusters: Sequence[Cluster], demands: Sequence[Demand]
    ) -> Iterator[Column]:
        """Return the clusters of before as columns."""
        nearest = network.nearest(demands).tolist()
        place = 0
        for cluster in clusters:
            places = tuple(range(place, place + len(cluster)))
            place += len(cluster)
            if len(cluster) > 1:
                receivers = sum(1 << worker for worker, _ in cluster)
                hops = network.least_hops(network.senders(cluster), receivers, every=False)
                yield Column(places, hops, sum(nearest[each] for each in places) - hops)


def _areas(network: ClusterCosts) -> list[int]:
    """Racks, pods, everything, as sets of workers."""
    everybody = (1 << len(network.instance.workers)) - 1
    found = [inside & everybody for inside in regions(network.trees)]
    return [*(inside for inside in found if 2 < inside.bit_count() < everybody.bit_count()), everybody]
