"""Topologies that planning must handle, regular ones and random connected ones."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
from hypothesis import strategies as st

from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import routing_plan, shortest_routes
from gradbed.controller.systems.aggregation.job_plan import JobPlan, choose_job, job_plan
from gradbed.controller.systems.aggregation.placement.planner import SharedPathPlacement
from gradbed.topo.addressing import make_host, make_switch
from gradbed.topo.generators import fat_tree, leaf_spine, star
from gradbed.topo.graph import Endpoint, Link, Topology

REGULAR = {
    "fat-tree:4": fat_tree(4),
    "fat-tree:6": fat_tree(6),
    "leaf-spine:4,2,2": leaf_spine(4, 2, 2),
    "leaf-spine:3,3,1": leaf_spine(3, 3, 1),
    "star:5": star(5),
}


def network(switch_links: list[tuple[int, int]], hosts_below: list[int], shared_subnet: bool = False) -> Topology:
    """Switches s1.. with the given links between them and that many hosts below each; ports in order of linking.

    shared_subnet: all hosts in one /24 instead of one /24 a switch.
    """
    switches = [make_switch(f"s{i + 1}", i + 1, "hub") for i in range(len(hosts_below))]
    ports = [0] * len(switches)
    hosts, links = [], []

    def port(index: int) -> Endpoint:
        ports[index] += 1
        return Endpoint(node=switches[index].name, port=ports[index])

    for index, count in enumerate(hosts_below):
        for place in range(count):
            position = len(hosts) if shared_subnet else place
            hosts.append(
                make_host(f"h{len(hosts) + 1}", f"10.0.{0 if shared_subnet else index}", position, switches[index])
            )
            links.append(Link(a=Endpoint(node=hosts[-1].name, port=0), b=port(index)))
    links += [Link(a=port(a), b=port(b)) for a, b in switch_links]
    return Topology(name="net", hosts=tuple(hosts), switches=tuple(switches), links=tuple(links))


def shared_path_job(topology: Topology, job: int, workers: Sequence[str], server: str) -> JobPlan:
    """The plan of a job that the default planner makes."""
    routes = shortest_routes(topology)
    return job_plan(topology, routes, job, choose_job(topology, routes, workers, server, SharedPathPlacement()))


def routes_alone(topology: Topology, program: str = "aggregation") -> Plan:
    """The plan without any system, with the same program in all switches."""
    return routing_plan(topology, shortest_routes(topology), {switch.name: program for switch in topology.switches})


@st.composite
def random_networks(draw: st.DrawFn) -> Topology:
    """Connected, 1 to 9 switches with some extra links, at least 3 hosts."""
    count = draw(st.integers(1, 9))
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    for node in range(1, count):
        graph.add_edge(draw(st.integers(0, node - 1)), node)
    for _ in range(draw(st.integers(0, count))):
        a, b = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        if a != b:
            graph.add_edge(a, b)
    hosts = draw(
        st.lists(st.integers(0, 3), min_size=count, max_size=count).filter(lambda numbers: sum(numbers) >= 3)
    )
    return network(list(graph.edges), hosts, shared_subnet=draw(st.booleans()))
