"""Clusters among some demands, listed so that an integer program can choose of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.trees.bits import bits_of, members
from gradbed.controller.systems.shuffle.scheduling.trees.steiner import SteinerTrees
from gradbed.controller.systems.shuffle.scheduling.trees.trees import Trees

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


class Network:
    """What clusters cost on a network; shared by all lists of an instance."""

    def __init__(self, instance: Instance, trees: Trees) -> None:
        self.instance = instance
        self.trees = trees
        self.holders = instance.holders
        self.distances = trees.distances[: len(instance.workers), : len(instance.workers)]
        self.steiner = None if trees.are_shortest else SteinerTrees(trees)

    @cached_property
    def stored(self) -> NDArray[np.bool_]:
        """(workers, samples)"""
        found = np.zeros((len(self.instance.workers), self.instance.samples), bool)
        for worker, samples in enumerate(self.instance.stored):
            found[worker, list(samples)] = True
        return found

    @cached_property
    def by_distance(self) -> list[list[int]]:
        """For each worker sets of others, the nearest first."""
        return [
            [bits_of(np.flatnonzero(row == hops).tolist()) for hops in sorted(set(row.tolist()) - {0})]
            for row in self.distances
        ]

    def nearest(self, demands: Sequence[Demand]) -> NDArray[np.int64]:
        """Hops of each demand's unicast from its nearest holder."""
        if not demands:
            return np.zeros(0, np.int64)
        workers = [worker for worker, _ in demands]
        samples = [sample for _, sample in demands]
        away = np.where(self.stored[:, samples].T, self.distances[workers], np.iinfo(np.int64).max)
        found: NDArray[np.int64] = away.min(axis=1)
        return found

    def hops(self, sender: int, receivers: int) -> int:
        """The fewest of a packet, on any tree."""
        shortest = None if self.steiner is None else self.steiner.hops(receivers)
        return self.trees.hops(sender, receivers) if shortest is None else int(shortest[sender])

    def least_hops(self, holders: int, receivers: int, *, every: bool) -> int:
        """From the best sender among some holders. every: look at all of them, and not only at some of the nearest of
        each receiver."""
        shortest = None if self.steiner is None else self.steiner.hops(receivers)
        if shortest is not None:
            return int(shortest[list(members(holders))].min())
        senders = members(holders) if every else self.nearest_senders(holders, receivers, SENDERS_PER_DISTANCE)
        return min(self.trees.hops_of_each(senders, receivers))

    def nearest_senders(self, holders: int, receivers: int, most: int) -> Iterator[int]:
        """For each receiver the holders nearest to it, at most so many of them."""
        seen = 0
        for receiver in members(receivers):
            near = next(each & holders for each in self.by_distance[receiver] if each & holders) & ~seen
            seen |= near
            yield from islice(members(near), most)

    def senders(self, demands: Sequence[Demand]) -> int:
        """Who stores all samples of a cluster, as a set."""
        found = -1
        for _, sample in demands:
            found &= self.holders[sample]
        return found & ~bits_of(worker for worker, _ in demands)


def compatible(network: Network, demands: Sequence[Demand]) -> NDArray[np.bool_]:
    """(demands, demands): which two fit into one packet, since each worker stores the other's sample or needs the
    same one."""
    workers = np.array([worker for worker, _ in demands])
    samples = np.array([sample for _, sample in demands])
    stores = network.stored[np.ix_(workers, samples)]
    same = (samples[:, None] == samples) & (workers[:, None] != workers)
    found: NDArray[np.bool_] = (stores & stores.T) | same
    return found


def near_enough(network: Network, demands: Sequence[Demand]) -> NDArray[np.bool_]:
    """(demands, demands): which two could save hops on their own: a packet for both takes at least half of their
    distance and their unicasts."""
    workers = np.array([worker for worker, _ in demands])
    nearest = network.nearest(demands)
    found: NDArray[np.bool_] = network.distances[np.ix_(workers, workers)] < nearest[:, None] + nearest
    return found


def columns(
    network: Network, demands: Sequence[Demand], *, every: bool = False, most: int | None = None
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
