"""Coding that does not look at the network: as many receivers as possible for every packet."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.dependencies import Cluster, DependencyGraph
from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.queues import Packet, Queues
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees.bits import members
from gradbed.controller.systems.shuffle.scheduling.trees.trees import Trees

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

    def schedule(self, instance: Instance, trees: Trees, seed: int) -> Schedule:
        if self.master and instance.master is None:
            raise UserError(f"{self.name} needs a master: a host that is no worker and stores every sample")
        draw = random.Random(seed)
        graph = DependencyGraph(instance)
        queues = Queues(instance, trees)
        for worker, sample in draw.sample(instance.demands, len(instance.demands)):
            if not graph.is_open(worker, sample):
                continue
            cluster = self._grown(graph, graph.cluster(worker, sample), draw)
            sender = len(instance.workers) if self.master else draw.choice(list(members(cluster.holders)))
            hops, tree = trees.best(sender, cluster.workers)
            queues.add(Packet(sender, cluster.receivers, tree, hops))
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
