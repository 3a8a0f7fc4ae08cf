"""The network that is left when links are down."""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx

from gradbed.topo.graph import Link, Topology

LinkName = frozenset[str]
"""The names of a link's two nodes."""


def link_name(link: Link) -> LinkName:
    return frozenset((link.a.node, link.b.node))


def remaining_network(topology: Topology, down: Collection[LinkName]) -> Topology:
    """The same nodes with the links that are up, and of those that are down the first ones without which switches
    could not reach each other, or a host its only switch: packets for what is cut off are lost there, and everything
    else is planned as if it were not there."""
    if not down:
        return topology
    hosts = {host.name for host in topology.hosts}
    left = nx.Graph()
    kept = {link_name(link) for link in topology.links} - set(down)
    left.add_nodes_from(topology.graph)
    # Hosts do not forward: no path between switches runs through one.
    left.add_edges_from(tuple(name) for name in kept if not name & hosts)
    linked = {host for name in kept for host in name & hosts}
    for link in topology.links:
        name = link_name(link)
        host = next(iter(name & hosts), None)
        if name in kept or (host is not None and host in linked):
            continue
        if host is not None:
            linked.add(host)
        elif not nx.has_path(left, *name):
            left.add_edge(*name)
        else:
            continue
        kept.add(name)
    links = tuple(link for link in topology.links if link_name(link) in kept)
    return Topology(name=topology.name, hosts=topology.hosts, switches=topology.switches, links=links)
