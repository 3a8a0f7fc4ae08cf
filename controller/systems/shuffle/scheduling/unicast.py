"""Shuffles without coding: each sample on its own, from any holder or from the nearest."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.queues import Packet, Queues
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees.bits import members
from gradbed.controller.systems.shuffle.scheduling.trees.trees import Trees


@dataclass(frozen=True)
class Unicast:
    """nearest: from the holder with the fewest hops (of equally near ones any), else from any holder."""

    nearest: bool

    @property
    def name(self) -> str:
        return "unicast-nearest" if self.nearest else "unicast-random"

    def schedule(self, instance: Instance, trees: Trees, seed: int) -> Schedule:
        draw = random.Random(seed)
        queues = Queues(instance, trees)
        # In any order, as coded packets: one worker after the other would all be sent to at the same time.
        for worker, sample in draw.sample(instance.demands, len(instance.demands)):
            queues.add(unicast(instance, trees, worker, sample, draw, nearest=self.nearest))
        return queues.schedule(self.name)


def unicast(
    instance: Instance, trees: Trees, worker: int, sample: int, draw: random.Random, *, nearest: bool = True
) -> Packet:
    """The packet that brings a worker one sample."""
    holders = list(members(instance.holders[sample]))
    if nearest:
        distances = trees.distances[holders, worker].tolist()
        least = min(distances)
        holders = [holder for holder, distance in zip(holders, distances, strict=True) if distance == least]
    sender = draw.choice(holders)
    hops, tree = trees.best(sender, 1 << worker)
    return Packet(sender, ((worker, sample),), tree, hops)
