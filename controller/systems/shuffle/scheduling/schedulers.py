"""Schedulers by name: baselines, with and without coding, those of the source and ours, and those of plug-ins."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from gradbed.common.errors import UserError
from gradbed.common.plugins import load_plugin, plugin_failures, plugins
from gradbed.controller.systems.shuffle.scheduling.clusters import Exact, Improved
from gradbed.controller.systems.shuffle.scheduling.hop_aware import HopAware
from gradbed.controller.systems.shuffle.scheduling.instance import Cluster, DependencyGraph, ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, SendQueues, Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Scheduler, check_schedule
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, bits_of, members

# ---- Unicast ----


@dataclass(frozen=True)
class Unicast:
    """Send each sample on its own."""

    nearest: bool
    """Whether the holder with the fewest hops sends it; otherwise a random holder."""
    needs_master: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "unicast-nearest" if self.nearest else "unicast-random"

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        draw = random.Random(seed)
        queues = SendQueues(instance, trees)
        # In random order, as coded packets: in order of workers, all senders would send to the same worker at once.
        for worker, sample in draw.sample(instance.demands, len(instance.demands)):
            queues.add(unicast(instance, trees, worker, sample, draw, nearest=self.nearest))
        return queues.schedule(self.name)


def unicast(
    instance: ShuffleInstance, trees: Trees, worker: int, sample: int, draw: random.Random, *, nearest: bool = True
) -> CodedPacket:
    """Return the packet that sends one sample to a worker."""
    holders = list(members(instance.holders[sample]))
    if nearest:
        distances = trees.distances[holders, worker].tolist()
        least = min(distances)
        holders = [holder for holder, distance in zip(holders, distances, strict=True) if distance == least]
    sender = draw.choice(holders)
    hops, tree = trees.best(sender, 1 << worker)
    return CodedPacket(sender, ((worker, sample),), tree, hops)


# ---- Multicast without coding ----


@dataclass(frozen=True)
class UncodedMulticast:
    """Send each sample once, from the holder whose tree to all workers that need it has the fewest links."""

    name: str = "uncoded-multicast"
    needs_master: ClassVar[bool] = False

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        queues = SendQueues(instance, trees)
        receivers: dict[int, list[int]] = {}
        for worker, sample in instance.demands:
            receivers.setdefault(sample, []).append(worker)
        for sample, workers in sorted(receivers.items()):
            wanted = sum(1 << worker for worker in workers)
            found = [(*trees.best(holder, wanted), holder) for holder in members(instance.holders[sample])]
            hops, tree, sender = min(found)
            queues.add(CodedPacket(sender, tuple((worker, sample) for worker in workers), tree, hops))
        return queues.schedule(self.name)


# ---- Coding: as many receivers as possible for every packet ----

TRIED_SAMPLES = 4
"""Samples that are tried for each worker that could join a cluster."""


@dataclass(frozen=True)
class LargestCluster:
    """Grow clusters until no worker can join, each time by the receiver after which most others still could."""

    master: bool = False
    """Whether one host that stores everything sends every packet, as in the classical coded shuffle; otherwise a
    random worker that stores a packet's samples sends it."""

    @property
    def name(self) -> str:
        return "coded-master" if self.master else "coded-largest"

    @property
    def needs_master(self) -> bool:
        return self.master

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        if self.master and instance.master is None:
            raise UserError(f"{self.name} needs a master: a host that is no worker and stores every sample")
        draw = random.Random(seed)
        graph = DependencyGraph(instance)
        queues = SendQueues(instance, trees)
        for worker, sample in draw.sample(instance.demands, len(instance.demands)):
            if not graph.is_open(worker, sample):
                continue
            cluster = self._grown(graph, graph.cluster(worker, sample), draw)
            sender = len(instance.workers) if self.master else draw.choice(list(members(cluster.holders)))
            hops, tree = trees.best(sender, cluster.workers)
            queues.add(CodedPacket(sender, cluster.receivers, tree, hops))
            for receiver in cluster.receivers:
                graph.close(*receiver)
        return queues.schedule(self.name)

    def _grown(self, graph: DependencyGraph, cluster: Cluster, draw: random.Random) -> Cluster:
        while True:
            best: Cluster | None = None
            for worker in members(cluster.holders):
                places = list(members(graph.joinable(cluster, worker)))
                if len(places) > TRIED_SAMPLES:
                    places = draw.sample(places, TRIED_SAMPLES)
                for place in places:
                    joined = graph.joined(cluster, worker, graph.samples[worker][place])
                    # Some worker has to be able to send it.
                    if (self.master or joined.holders) and (
                        best is None or joined.holders.bit_count() > best.holders.bit_count()
                    ):
                        best = joined
            if best is None:
                return cluster
            cluster = best


# ---- Schedulers by name ----

SCHEDULERS: Mapping[str, Scheduler] = {
    scheduler.name: scheduler
    for scheduler in (
        Unicast(nearest=False),
        Unicast(nearest=True),
        UncodedMulticast(),
        LargestCluster(master=True),
        LargestCluster(),
        HopAware(),
        HopAware(count_loans=True),
        Improved(),
        Exact(),
    )
}
"""The schedulers of gradbed itself by name; those of other packages are plug-ins of the group gradbed.schedulers."""


@dataclass(frozen=True)
class PluginScheduler:
    """A scheduler of another package: a `Scheduler` class, or a function that yields the packets.

    A function yields the sender and the receivers of each packet, which takes the sender's shortest tree to its
    receivers; packets are sent in this order. A class has a method `schedule`, and decides on trees and loans, too.
    Either may have an attribute `needs_master`.
    """

    name: str

    @property
    def needs_master(self) -> bool:
        return bool(getattr(load_plugin("schedulers", self.name), "needs_master", False))

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        plugin = load_plugin("schedulers", self.name)
        with plugin_failures("schedulers", self.name):
            if isinstance(plugin, type):
                schedule: Schedule = plugin().schedule(instance, trees, seed)
            else:
                queues = SendQueues(instance, trees)
                for sender, receivers in plugin(instance, trees, seed):
                    hops, tree = trees.best(sender, bits_of(worker for worker, _ in receivers))
                    queues.add(CodedPacket(sender, tuple(receivers), tree, hops))
                schedule = queues.schedule(self.name)
            check_schedule(instance, schedule, trees.topology)
        return schedule


def scheduler_names() -> list[str]:
    """Return the names of all schedulers, those of plug-ins last."""
    return list(dict.fromkeys([*SCHEDULERS, *plugins("schedulers")]))


def scheduler_named(name: str, timing: Timing | None = None) -> Scheduler:
    """Return the scheduler of a name.

    Args:
        name: A name of SCHEDULERS, or of a plug-in.
        timing: Timing for schedulers that let packets wait for loans.

    Raises:
        UserError: There is none of that name, or the plug-in cannot be loaded.
    """
    found = SCHEDULERS.get(name)
    if found is None:
        if name not in plugins("schedulers"):
            raise UserError(f"unknown scheduler {name!r}: choose one of {', '.join(scheduler_names())}")
        load_plugin("schedulers", name)
        return PluginScheduler(name)
    return replace(found, timing=timing) if timing and isinstance(found, HopAware) else found
