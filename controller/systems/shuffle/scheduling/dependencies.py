"""The graph of who needs what from whom (S2 of the source), and clusters on it (S3, S4).

An edge (u, v) with weight x says that u needs sample x, which v stores. The source calls the graph acyclic; it is
not, since clusters need edges both ways. Edges are never listed: for any two workers a set of bits says which of the
one's needs the other stores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, members


@dataclass(frozen=True, slots=True)
class Cluster:
    """Receivers whose samples fit into one packet: each stores the samples of all others (the cluster of S3)."""

    workers: int
    """The receivers as a set of bits."""
    holders: int
    """Workers outside that store every sample of the cluster, from which senders and further receivers come."""
    receivers: tuple[tuple[int, int], ...]
    """Pairs (worker, sample) in the order in which they joined."""


class DependencyGraph:
    """The demands that are still open (S2). Bit p of a worker's sets is the p-th sample that it needed at first."""

    def __init__(self, instance: ShuffleInstance) -> None:
        self.instance = instance
        self.holders = instance.holders
        self.samples: list[list[int]] = [[] for _ in instance.workers]
        for worker, sample in instance.demands:
            self.samples[worker].append(sample)
        self.place = {
            (worker, sample): index
            for worker, samples in enumerate(self.samples)
            for index, sample in enumerate(samples)
        }
        self.open = [(1 << len(samples)) - 1 for samples in self.samples]
        self._reach: dict[int, int] = {}
        self.wanted = _wanted(instance, self.samples)
        """wanted[v][u]: which of v's needs u stores."""

    def cluster(self, worker: int, sample: int) -> Cluster:
        """Return the smallest cluster: one worker, one sample (S3)."""
        return Cluster(1 << worker, self.holders[sample] & ~(1 << worker), ((worker, sample),))

    def joined(self, cluster: Cluster, worker: int, sample: int) -> Cluster:
        own = 1 << worker
        return Cluster(
            cluster.workers | own,
            cluster.holders & self.holders[sample] & ~own,
            (*cluster.receivers, (worker, sample)),
        )

    def joinable(self, cluster: Cluster, worker: int) -> int:
        """Return the open needs of a holder that all workers of the cluster store: with any of them it may join
        (S4.1)."""
        found = self.open[worker]
        wanted = self.wanted[worker]
        for other, _ in cluster.receivers:
            found &= wanted[other]
        return found

    def joinable_or_short(self, cluster: Cluster, worker: int) -> tuple[int, int]:
        """Return `joinable` of any worker outside, and the open needs that all the cluster's workers but one
        store."""
        every, one_short = self.open[worker], 0
        wanted = self.wanted[worker]
        for other, _ in cluster.receivers:
            stored = wanted[other]
            one_short = one_short & stored | every & ~stored
            every &= stored
        return every, one_short

    def reach(self, trees: Trees, sample: int) -> int:
        """Return the workers that store a sample or have a neighbour that does (S4, "neighbours")."""
        found = self._reach.get(sample)
        if found is None:
            found = self.holders[sample]
            for holder in members(self.holders[sample]):
                found |= trees.neighbours[holder]
            found &= (1 << len(self.samples)) - 1
            self._reach[sample] = found
        return found

    def is_open(self, worker: int, sample: int) -> bool:
        return bool(self.open[worker] >> self.place[worker, sample] & 1)

    def close(self, worker: int, sample: int) -> None:
        """Take away a demand that is met (S6)."""
        bit = 1 << self.place[worker, sample]
        assert self.open[worker] & bit, "a demand is met once"
        self.open[worker] ^= bit


def _wanted(instance: ShuffleInstance, samples: list[list[int]]) -> list[list[int]]:
    workers = len(instance.workers)
    stored = np.zeros((workers, instance.samples), bool)
    for worker, held in enumerate(instance.stored):
        stored[worker, list(held)] = True
    found = []
    for own in samples:
        rows = np.packbits(stored[:, own], axis=1, bitorder="little")
        found.append([int.from_bytes(row.tobytes(), "little") for row in rows])
    return found
