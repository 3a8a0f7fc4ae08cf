"""Sizes of networks, from their graphs: distances, switches, links, ports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import OPTICAL, optical_electrical
from gradbed.topo.shapes import dragonfly, fat_tree, torus


@dataclass(frozen=True)
class NetworkSize:
    """Size of one network."""

    family: str
    name: str
    hosts: int
    switches: int
    links: int
    diameter: int
    """Largest number of links between two hosts."""
    mean_distance: float
    """Mean number of links between two different hosts."""
    electrical_ports: int
    """Ports of electrical and hybrid switches."""
    optical_ports: int
    """Ports of optical switches."""


def size_of_network(family: str, topology: Topology) -> NetworkSize:
    """Return the size of a network, from all distances between switches, weighted by their hosts."""
    number = {switch.name: place for place, switch in enumerate(topology.switches)}
    ends = np.array([(number[link.a.node], number[link.b.node]) for link in topology.switch_links]).reshape(-1, 2)
    count = len(number)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count)).tocsr()
    distance = shortest_path(graph, directed=False, unweighted=True)
    hosts = np.zeros(count)
    for host in topology.hosts:
        hosts[number[topology.attachment(host.name).name]] += 1
    edges = np.flatnonzero(hosts)
    between, weights = distance[np.ix_(edges, edges)] + 2, np.outer(hosts[edges], hosts[edges])
    np.fill_diagonal(weights, hosts[edges] * (hosts[edges] - 1))
    optical = {switch.name for switch in topology.switches if switch.tier == OPTICAL}
    ports = [end.node for link in topology.links for end in (link.a, link.b) if end.node in number]
    return NetworkSize(
        family,
        topology.name,
        len(topology.hosts),
        count,
        len(topology.links),
        int(between[weights > 0].max()),
        float((between * weights).sum() / weights.sum()),
        sum(port not in optical for port in ports),
        sum(port in optical for port in ports),
    )


def sizes(n: int) -> Iterator[NetworkSize]:
    """Yield the size of the interconnect of this n, and of other networks with as many hosts or the next larger
    number.
    """
    yield size_of_network("optical-electrical", optical_electrical(n))
    k = next(k for k in range(2, 1000, 2) if k**3 // 4 >= n**3)
    yield size_of_network("fat-tree", fat_tree(k))
    yield size_of_network("dragonfly", balanced_dragonfly(n**3))
    yield size_of_network("torus", torus(n, n, n))


def balanced_dragonfly(hosts: int) -> Topology:
    """Return the smallest balanced dragonfly with at least so many hosts, with as few groups as will do.

    It has a = 2p = 2h routers, hosts and global links (Kim et al., "Technology-driven, highly-scalable dragonfly
    topology", ISCA 2008, section 3.1).
    """
    p = next(p for p in range(1, 1000) if 2 * p * p * (2 * p * p + 1) >= hosts)
    return dragonfly(-(-hosts // (2 * p * p)), 2 * p, p)
