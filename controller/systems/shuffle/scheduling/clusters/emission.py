"""From chosen clusters to a schedule: senders that have least to send, and Steiner trees where they are shorter."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gradbed.controller.systems.shuffle.scheduling.clusters.columns import Demand, Network
from gradbed.controller.systems.shuffle.scheduling.queues import Packet, Queues
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees.bits import bits_of, members
from gradbed.controller.systems.shuffle.scheduling.trees.steiner import JoinedTrees

SENDERS = 16
"""Up to so many holders of a cluster all may send it; of more, those that are nearest to its receivers."""


def emit(name: str, network: Network, clusters: Sequence[Sequence[Demand]], seed: int) -> Schedule:
    """A packet for each cluster and for every demand that is in none, in any order: one worker after the other would
    all be sent to at the same time.

    Of the senders with fewest hops the one with the shortest queue sends. Where only a Steiner tree is so short, it
    is added to the trees; which of equally short ones a packet takes is chosen later (tree_choice.py).
    """
    instance, trees = network.instance, network.trees
    clustered = {demand for cluster in clusters for demand in cluster}
    alone = [[demand] for demand in instance.demands if demand not in clustered]
    queues = Queues(instance, trees)
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
        queues.add(Packet(sender, tuple(cluster), tree, least))
    schedule = queues.schedule(name)
    return replace(schedule, trees=(*schedule.trees, *shorter.trees))
