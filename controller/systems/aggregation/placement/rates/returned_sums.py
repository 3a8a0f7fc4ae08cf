"""The links that global sums come back on."""

from __future__ import annotations

from collections.abc import Iterable

from gradbed.controller.planning.multicast import multicast_tree
from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem, NodePair


def returned_sum_links(problem: AggregationProblem, switches: Iterable[str]) -> tuple[NodePair, ...]:
    """The links between switches, in direction of travel, that an ACK crosses on its way from the server to all
    workers and through all `switches`. ACKs carry the global sums, so they are as large as gradients.

    Links of hosts are not among them: what an ACK takes there a gradient takes in the other direction.
    """
    tree = multicast_tree(problem.topology, problem.server, problem.workers, switches)
    return tuple(edge for edge in tree.edges() if edge in problem.link_index)
