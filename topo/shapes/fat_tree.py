"""The k-ary fat-tree of Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network Architecture"
(SIGCOMM 2008).

k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts. Host x of edge switch e in pod p
has address 10.p.e.x, x from 2. Ports, with half = k/2:

    edge          1..half down to its hosts, half+1..k up to the aggregation switches of its pod
    aggregation   1..half down to the edge switches of its pod, half+1..k up to its group of core switches
    core          port p+1 down to pod p; core switches j*half..j*half+half-1 hang on aggregation switch j of each pod

Names count over the whole network (c1.., a1.., e1.., h1..); so do the numbers: core, then aggregation, then edge.
"""

from __future__ import annotations

from gradbed.common.errors import UserError
from gradbed.topo.addressing import make_host, make_switch
from gradbed.topo.graph import MAX_SWITCH_NUMBER, Endpoint, Host, Link, Topology
from gradbed.topo.link import UNLIMITED, LinkModel


def fat_tree(k: int, model: LinkModel = UNLIMITED) -> Topology:
    """The fat-tree of k-port switches; `model`: of every link. UserError for an impossible k."""
    if k < 2 or k % 2:
        raise UserError(f"a fat-tree needs an even k >= 2, got {k}")
    if 5 * k * k // 4 > MAX_SWITCH_NUMBER:
        raise UserError(f"a fat-tree's switches are numbered with 16 bits, so k is at most 228, got {k}")
    half = k // 2
    cores = [make_switch(f"c{i + 1}", i + 1, "core") for i in range(half * half)]
    aggregations = [make_switch(f"a{i + 1}", len(cores) + i + 1, "aggregation") for i in range(k * half)]
    edges = [make_switch(f"e{i + 1}", len(cores) + len(aggregations) + i + 1, "edge") for i in range(k * half)]
    hosts: list[Host] = []
    links: list[Link] = []

    def connect(a: str, a_port: int, b: str, b_port: int) -> None:
        links.append(Link(a=Endpoint(node=a, port=a_port), b=Endpoint(node=b, port=b_port), model=model))

    for pod in range(k):
        for e in range(half):
            edge = edges[pod * half + e]
            for x in range(half):
                host = make_host(f"h{len(hosts) + 1}", f"10.{pod}.{e}", x, edge)
                hosts.append(host)
                connect(host.name, 0, edge.name, 1 + x)
            for j in range(half):
                connect(edge.name, 1 + half + j, aggregations[pod * half + j].name, 1 + e)
        for j in range(half):
            for i in range(half):
                connect(aggregations[pod * half + j].name, 1 + half + i, cores[j * half + i].name, 1 + pod)
    return Topology(
        name=f"fat-tree:{k}",
        hosts=tuple(hosts),
        switches=(*cores, *aggregations, *edges),
        links=tuple(links),
    )
