"""Lower bounds on the hops of a schedule (ours; docs/shuffle-scheduling.md, "Bounds").

The packet lower bound (points 1 and 2): let m_i be the distance of receiver i of a packet from the nearest holder of
its sample. Walk around the packet's tree, from the sender past the receivers and back: every link is passed twice,
and between two receivers there are at least as many links as the larger of their m, since each stores the other's
sample. So the packet takes at least (sum m_i + max m_i) / 2 hops. Since max m_i is at least the mean, a receiver's
share is at least (m_i + m_i / c) / 2 in a packet for c; and c is at most the number of copies of its sample, for all
others and the sender store it. Where workers lend samples, c may be larger, at a loan for each that lacks the sample;
a loan shortens the walk by its own hops, and takes them itself. With one copy of every sample nothing can be saved
without loans.

The cut-set lower bound (point 3): of every host, rack and pod the distinct samples that have to come in and those
that have to go out, each in a packet of its own, since what comes out of a cut's packets is no more than what went
in.

A master, which stores everything, is a holder like any other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import networkx as nx

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, bits_of, members


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on the total number of hops."""

    packets: int
    """The packet lower bound."""
    cuts: int
    """The cut-set lower bound."""

    @property
    def best(self) -> int:
        """The higher of both."""
        return max(self.packets, self.cuts)


def bounds(instance: ShuffleInstance, trees: Trees, *, loans: bool = True) -> Bounds:
    """Return both lower bounds. loans: whether workers may lend each other samples."""
    return Bounds(packet_bound(instance, trees, loans=loans), cut_bound(instance, trees))


def packet_bound(instance: ShuffleInstance, trees: Trees, *, loans: bool = True) -> int:
    """Return the packet lower bound.

    Of a sample that several workers need only the farthest counts: the others may hear the same packet.
    """
    distances = trees.distances
    off_diagonal = [
        int(distances[a, b]) for a in range(len(instance.workers)) for b in range(len(instance.workers)) if a != b
    ]
    least_loan = min(off_diagonal, default=1)
    largest = max(1, len(instance.hosts) - 1)
    farthest: dict[int, tuple[int, float]] = {}
    for worker, sample in instance.demands:
        holders = list(members(instance.every_holder[sample]))
        nearest = int(distances[holders, worker].min())
        if sample not in farthest or nearest > farthest[sample][0]:
            copies = len(holders)
            extra = nearest / min(copies, largest)
            if loans:
                for size in range(copies + 1, largest + 1):
                    extra = min(extra, nearest / size + least_loan * (size - copies))
                    if least_loan * (size - copies) >= extra:
                        break
            farthest[sample] = nearest, (nearest + extra) / 2  # (m + m/c) / 2
    return math.ceil(sum(share for _, share in farthest.values()) - 1e-6)


def cut_bound(instance: ShuffleInstance, trees: Trees) -> int:
    """Return the cut-set lower bound: a sum over regions of the network, whose cuts have no link in common."""
    wanted: defaultdict[int, int] = defaultdict(int)
    for worker, sample in instance.demands:
        wanted[sample] |= 1 << worker
    found = regions(trees)
    around: list[list[int]] = [[] for _ in trees.hosts]
    for number, inside in enumerate(found):
        for host in members(inside):
            around[host].append(number)
    total = 0
    for sample, takers in wanted.items():
        holders = instance.every_holder[sample]
        # It enters regions of takers alone, and leaves those alone that have all holders, the first one as well.
        entered = {number for worker in members(takers) for number in around[worker]}
        total += sum(not holders & found[number] for number in entered)
        total += sum(
            not holders & ~found[number] and bool(takers & ~found[number])
            for number in around[next(members(holders))]
        )
    return total


def regions(trees: Trees) -> list[int]:
    """Return the sets of hosts that are parts of the network at some height: hosts, racks, pods.

    A node's height is its distance from the nearest host. A region is what hangs together below a height; the links
    that leave it are between that height and the next, so that no link leaves two regions of different height.
    """
    topology = trees.topology
    heights = nx.multi_source_dijkstra_path_length(topology.graph, {host.name for host in topology.hosts})
    number = {host: index for index, host in enumerate(trees.hosts)}
    found = []
    for height in range(int(max(heights.values()))):
        below = topology.graph.subgraph(node for node, at in heights.items() if at <= height)
        for component in nx.connected_components(below):
            # Where a region's links to the next height are insides of servers, leaving it is no hop.
            leaving = [
                (node, other)
                for node in component
                for other in topology.graph[node]
                if other not in component and not trees.is_inside(node, other)
            ]
            inside = bits_of(number[node] for node in component if node in number)
            if leaving and inside:
                found.append(inside)
    return found
