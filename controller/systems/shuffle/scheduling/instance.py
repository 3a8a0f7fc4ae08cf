"""A shuffle instance (S2 of the source): the samples that workers store and those that they need, epoch after epoch.

Also the dependency graph of an instance, and clusters on it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, members


@dataclass(frozen=True)
class ShuffleInstance:
    """Storage before a shuffle and demand after it: the two inputs of the dependency graph (S2).

    Samples are numbered from 0, workers by their place in `workers`.

    Raises:
        UserError: A sample is unknown, or needed and not stored by any host, or the lists do not fit together.
    """

    workers: tuple[str, ...]
    """Names of hosts."""
    sizes_bytes: tuple[int, ...]
    """The size of every sample."""
    stored: tuple[tuple[int, ...], ...]
    """For each worker the samples that it stores, in ascending order."""
    needed: tuple[tuple[int, ...], ...]
    """For each worker all samples that it must hold in the end, in ascending order; what it stores is no demand."""
    master: str | None = None
    """A host that is no worker and stores every sample, for the classical scheme; its number is len(workers)."""

    def __post_init__(self) -> None:
        if len(set(self.workers)) != len(self.workers):
            raise UserError("a worker is named twice")
        if self.master in self.workers:
            raise UserError(f"the master {self.master} is a worker, too: it takes a host of its own")
        for name, lists in (("stored", self.stored), ("needed", self.needed)):
            if len(lists) != len(self.workers):
                raise UserError(f"{len(self.workers)} workers, but {len(lists)} lists of {name} samples")
            for worker, samples in zip(self.workers, lists, strict=True):
                if list(samples) != sorted(set(samples)):
                    raise UserError(f"{name} samples of {worker} are not in ascending order, each once")
                if samples and not 0 <= samples[0] <= samples[-1] < len(self.sizes_bytes):
                    wrong = samples[0] if samples[0] < 0 else samples[-1]
                    raise UserError(
                        f"{worker} has sample {wrong} among its {name} ones, but samples are numbered from 0 to "
                        f"{len(self.sizes_bytes) - 1}"
                    )
        if any(size < 1 for size in self.sizes_bytes):
            raise UserError("a sample has at least one byte")
        for number, sample in self.demands:
            if not self.holders[sample]:
                raise UserError(f"{self.workers[number]} needs sample {sample}, which no worker stores")

    @classmethod
    def of(
        cls,
        stored: Mapping[str, Iterable[int]],
        needed: Mapping[str, Iterable[int]],
        sizes_bytes: Sequence[int],
        master: str | None = None,
    ) -> ShuffleInstance:
        """Make an instance from sets of samples by host; workers are the hosts of `stored`, in its order."""
        unknown = needed.keys() - stored.keys()
        if unknown:
            raise UserError(f"{min(unknown)} needs samples, but is no worker")
        return cls(
            workers=tuple(stored),
            sizes_bytes=tuple(sizes_bytes),
            stored=tuple(tuple(sorted(set(samples))) for samples in stored.values()),
            needed=tuple(tuple(sorted(set(needed.get(worker, ())))) for worker in stored),
            master=master,
        )

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.sizes_bytes)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts by number: the workers, then the master where there is one."""
        return self.workers if self.master is None else (*self.workers, self.master)

    @cached_property
    def holders(self) -> tuple[int, ...]:
        """The workers that store each sample, as a set of bits: bit w is worker w. The master is none of them."""
        found = [0] * len(self.sizes_bytes)
        for worker, samples in enumerate(self.stored):
            for sample in samples:
                found[sample] |= 1 << worker
        return tuple(found)

    @cached_property
    def every_holder(self) -> tuple[int, ...]:
        """`holders` with the master, where there is one."""
        master = 0 if self.master is None else 1 << len(self.workers)
        return tuple(holders | master for holders in self.holders)

    @cached_property
    def demands(self) -> tuple[tuple[int, int], ...]:
        """Pairs (worker, sample) of what is needed and not stored, in ascending order: the edges' sources of S2."""
        return tuple(
            (worker, sample)
            for worker, (needed, stored) in enumerate(zip(self.needed, map(set, self.stored), strict=True))
            for sample in needed
            if sample not in stored
        )

    def stores(self, sender: int, sample: int) -> bool:
        """Return whether a worker, or the master, stores a sample."""
        if sender == len(self.workers):
            return self.master is not None
        return bool(self.holders[sample] >> sender & 1)


# ---- Storage models: what workers store before each epoch (ours, not of the source) ----


Replacement = Literal["random", "least-recent"]
"""Which samples leave a full cache: any, or those that were needed longest ago."""


def parts(samples: int, workers: int, draw: random.Random) -> list[list[int]]:
    """Deal every sample to one worker, in parts that differ by at most one: the demand of an epoch."""
    order = draw.sample(range(samples), samples)
    return [sorted(order[worker::workers]) for worker in range(workers)]


def places_of(samples: int, workers: int, share: float) -> int:
    """Return the number of samples that a worker stores.

    Raises:
        UserError: The workers together could not store everything.
    """
    places = min(samples, math.ceil(share * samples - 1e-9))
    if not 0 < share <= 1 or places < math.ceil(samples / workers):
        raise UserError(f"a worker stores between 1/{workers} and 1 of all samples, got {share:g}")
    return places


def epochs(
    hosts: Sequence[str],
    sizes_bytes: Sequence[int],
    share: float,
    seed: int,
    replacement: Replacement = "random",
    master: str | None = None,
    first: Sequence[Sequence[int]] | None = None,
) -> Iterator[ShuffleInstance]:
    """Yield the shuffle before each epoch, one after the other without end.

    Before the first, each worker stores a part of its own and, as long as there is room, others by chance. After a
    shuffle it stores what it needed, and what the rule keeps of the rest. first: the workers' own parts before the
    first; None: by chance.
    """
    samples, workers = len(sizes_bytes), len(hosts)
    places = places_of(samples, workers, share)
    draw = random.Random(seed)
    # For each worker the samples that it stores, those that it needed last at the end.
    kept: list[list[int]] = []
    for own in first or parts(samples, workers, draw):
        of_others = sorted(set(range(samples)).difference(own))
        kept.append([*draw.sample(of_others, places - len(own)), *own])
    while True:
        needed = parts(samples, workers, draw)
        yield ShuffleInstance(
            workers=tuple(hosts),
            sizes_bytes=tuple(sizes_bytes),
            stored=tuple(tuple(sorted(own)) for own in kept),
            needed=tuple(map(tuple, needed)),
            master=master,
        )
        for worker, new in enumerate(needed):
            fresh = set(new)
            former = [sample for sample in kept[worker] if sample not in fresh]
            room = min(len(former), places - len(new))
            if replacement == "random":
                former = draw.sample(former, len(former))
            kept[worker] = [*former[len(former) - room :], *new]


# ---- The dependency graph (S2 of the source), and clusters on it (S3, S4) ----


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
