"""Multicast without coding: each sample once, from its nearest holder to all who need it."""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.queues import Packet, Queues
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees.bits import members
from gradbed.controller.systems.shuffle.scheduling.trees.trees import Trees


@dataclass(frozen=True)
class UncodedMulticast:
    """The holder of each sample whose tree to all who need it has the fewest links."""

    name: str = "uncoded-multicast"

    def schedule(self, instance: Instance, trees: Trees, seed: int) -> Schedule:
        queues = Queues(instance, trees)
        receivers: dict[int, list[int]] = {}
        for worker, sample in instance.demands:
            receivers.setdefault(sample, []).append(worker)
        for sample, workers in sorted(receivers.items()):
            wanted = sum(1 << worker for worker in workers)
            found = [(*trees.best(holder, wanted), holder) for holder in members(instance.holders[sample])]
            hops, tree, sender = min(found)
            queues.add(Packet(sender, tuple((worker, sample) for worker in workers), tree, hops))
        return queues.schedule(self.name)
