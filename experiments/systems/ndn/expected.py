"""What an exchange takes of the network, by its graph."""

from __future__ import annotations

from functools import cached_property

import networkx

from gradbed.controller.planning.multicast import multicast_tree
from gradbed.experiments.systems.ndn.phase import NdnPhase
from gradbed.hosts.collectives.recursive_doubling import partners
from gradbed.hosts.learning.fragments import fragment_count
from gradbed.hosts.learning.workload import gradient_values


class Expected:
    """Of a phase, once the service has answered."""

    def __init__(self, phase: NdnPhase) -> None:
        self._phase = phase
        self._exchange = phase.configuration.workload.exchange
        self._graph = phase.topology.graph

    @cached_property
    def sum_of_distances(self) -> int:
        """Over all ordered pairs of peers, in links."""
        peers = self._phase.job.peers
        found = 0
        for peer in peers:
            distances = networkx.single_source_shortest_path_length(self._graph, peer)
            found += sum(distances[other] for other in peers)
        return found

    @property
    def transmissions(self) -> int:
        """For a fragment of every peer: the links of all publishers' trees; with unicast a copy for each pair."""
        if self._exchange == "unicast":
            return self.sum_of_distances
        return sum(self._phase.answer["tree_edges"])

    def links_of_a_fragment(self, index: int) -> float:
        """That a frame of a peer's crosses: of its tree, or, with copies, on the way to another peer, mean."""
        if self._exchange != "unicast":
            return int(self._phase.answer["tree_edges"][index])
        peers = self._phase.job.peers
        distances = networkx.single_source_shortest_path_length(self._graph, peers[index])
        return float(sum(distances[other] for other in peers)) / (len(peers) - 1)

    @property
    def fragments(self) -> int:
        """Of a gradient."""
        return fragment_count(gradient_values(self._phase.job.settings), self._phase.configuration.workload.lanes)

    @cached_property
    def spanning_edges(self) -> int:
        """Of a tree that spans the peers, the first one's."""
        first, *others = self._phase.job.peers
        return 1 + len(multicast_tree(self._phase.topology, first, others, ()).edges())

    @property
    def _doubling_hops(self) -> float:
        """All vectors that peers send, whole, times the links on their way."""
        peers = self._phase.job.peers
        found = 0
        for rank, peer in enumerate(peers):
            distances = networkx.single_source_shortest_path_length(self._graph, peer)
            found += sum(distances[peers[each.peer]] for each in partners(len(peers), rank) if each.sends)
        return found

    @property
    def hops(self) -> float:
        """Bytes times hops of a round by gradient bytes, without headers and Interests: trees, distances, or the
        ring's 2 (n - 1) / n gradients over each of the tree's links in both directions, or those that
        recursive doubling sends."""
        if self._exchange == "recursive-doubling":
            return self._doubling_hops
        if self._exchange == "ring":
            peers = len(self._phase.job.peers)
            return 4 * (peers - 1) / peers * self.spanning_edges
        return self.transmissions
