"""Schedulers to compare with: without coding, and with coding that does not look at the network."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.dependencies import Cluster, DependencyGraph
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, SendQueues
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, members

# ---- Unicast: each sample on its own, from any holder or from the nearest ----


@dataclass(frozen=True)
class Unicast:
    """Sends each sample on its own, from the holder with the fewest hops (nearest) or from any holder."""

    nearest: bool

    @property
    def name(self) -> str:
        return "unicast-nearest" if self.nearest else "unicast-random"

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        draw = random.Random(seed)
        queues = SendQueues(instance, trees)
        # In any order, as coded packets: one worker after the other would all be sent to at the same time.
        for worker, sample in draw.sample(instance.demands, len(instance.demands)):
            queues.add(unicast(instance, trees, worker, sample, draw, nearest=self.nearest))
        return queues.schedule(self.name)


def unicast(
    instance: ShuffleInstance, trees: Trees, worker: int, sample: int, draw: random.Random, *, nearest: bool = True
) -> CodedPacket:
    """Return the packet that brings a worker one sample."""
    holders = list(members(instance.holders[sample]))
    if nearest:
        distances = trees.distances[holders, worker].tolist()
        least = min(distances)
        holders = [holder for holder, distance in zip(holders, distances, strict=True) if distance == least]
    sender = draw.choice(holders)
    hops, tree = trees.best(sender, 1 << worker)
    return CodedPacket(sender, ((worker, sample),), tree, hops)


# ---- Multicast without coding: each sample once, to all who need it ----


@dataclass(frozen=True)
class UncodedMulticast:
    """Sends each sample once, from the holder whose tree to all who need it has the fewest links."""

    name: str = "uncoded-multicast"

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
"""Of each worker that could join: those after which most others still could are looked for among so many."""


@dataclass(frozen=True)
class LargestCluster:
    """Clusters grow until nobody can join, each time by the receiver that leaves most others who could.

    master: the classical coded shuffle, in which one host stores everything and sends every packet; else any worker
    that stores a packet's samples sends it.
    """

    master: bool = False

    @property
    def name(self) -> str:
        return "coded-master" if self.master else "coded-largest"

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
                    # Somebody has to send it.
                    if (self.master or joined.holders) and (
                        best is None or joined.holders.bit_count() > best.holders.bit_count()
                    ):
                        best = joined
            if best is None:
                return cluster
            cluster = best
