from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations

import networkx as nx
import pytest
from hypothesis import given, settings

from common.errors import UserError
from controller.planning.routing import shortest_routes
from tests.unit.controller.networks import REGULAR, network, random_networks, routes_alone
from tests.unit.controller.plan_walker import PlanWalker
from topo.graph import Topology
from topo.shapes.fat_tree import fat_tree
from topo.shapes.leaf_spine import leaf_spine


def check_all_pairs(topology: Topology) -> None:
    walker = PlanWalker(topology, routes_alone(topology))
    distances = dict(nx.all_pairs_shortest_path_length(topology.graph))
    for source, destination in permutations([host.name for host in topology.hosts], 2):
        arrival = walker.send(source, destination)
        assert arrival.node == destination
        assert arrival.dst_mac == topology.host(destination).mac
        assert len(arrival.path) - 1 == distances[source][destination]


@pytest.mark.parametrize("name", REGULAR)
def test_every_host_reaches_every_other_along_a_shortest_path(name: str) -> None:
    check_all_pairs(REGULAR[name])


@given(random_networks())
@settings(max_examples=60, deadline=None)
def test_random_networks_are_routed_along_shortest_paths(topology: Topology) -> None:
    check_all_pairs(topology)


@pytest.mark.parametrize("name", REGULAR)
def test_routes_between_all_switches_are_shortest_paths(name: str) -> None:
    topology = REGULAR[name]
    routes = shortest_routes(topology)
    graph = topology.graph.subgraph(switch.name for switch in topology.switches)
    for a, b in permutations([switch.name for switch in topology.switches], 2):
        path = routes.path(a, b)
        assert nx.is_path(graph, path)
        assert len(path) - 1 == routes.distance(a, b) == nx.shortest_path_length(graph, a, b)


def test_routes_do_not_depend_on_anything_but_the_topology() -> None:
    topology = fat_tree(4)
    again = Topology.from_json(topology.to_json())
    assert shortest_routes(topology) == shortest_routes(again)
    assert routes_alone(topology) == routes_alone(again)


def test_a_subnet_behind_another_switch_is_one_entry() -> None:
    topology = fat_tree(4)
    plan = routes_alone(topology)
    # Core and aggregation: one /24 for each of 8 edge switches; edge: 7 of those and its own two hosts.
    sizes = {name: len(switch.entries) for name, switch in plan.switches.items()}
    assert sizes == {s.name: 9 if s.tier == "edge" else 8 for s in topology.switches}


def test_hosts_of_a_subnet_that_is_spread_have_an_entry_each() -> None:
    topology = network([(0, 1)], [2, 1], shared_subnet=True)
    plan = routes_alone(topology)
    assert {name: len(switch.entries) for name, switch in plan.switches.items()} == {"s1": 3, "s2": 3}
    check_all_pairs(topology)


@pytest.mark.parametrize(
    ("topology", "subnet_traffic"),
    [
        (fat_tree(4), {("edge", "aggregation"): 2 * 2, ("aggregation", "core"): 4 * 2}),
        (fat_tree(6), {("edge", "aggregation"): 3 * 3, ("aggregation", "core"): 9 * 3}),
        (leaf_spine(4, 2, 2), {("leaf", "spine"): 2 * 2}),
    ],
    ids=lambda value: value.name if isinstance(value, Topology) else "",
)
def test_destinations_are_spread_over_all_equal_uplinks(
    topology: Topology, subnet_traffic: dict[tuple[str, str], int]
) -> None:
    """All to all: a switch's uplinks differ by no more than what its hosts below send to one subnet."""
    walker = PlanWalker(topology, routes_alone(topology))
    used: Counter[tuple[str, str]] = Counter()
    for source, destination in permutations([host.name for host in topology.hosts], 2):
        path = walker.send(source, destination).path[1:-1]
        used.update(pairwise(path))
    for (lower, upper), quantum in subnet_traffic.items():
        tier = {switch.name: switch.tier for switch in topology.switches}
        for switch in (name for name in tier if tier[name] == lower):
            loads = [used[switch, n] for n in topology.neighbours(switch) if tier.get(n) == upper]
            assert len(loads) > 1
            assert min(loads) > 0
            assert max(loads) - min(loads) <= quantum, (switch, loads)


def test_a_network_in_two_parts_is_refused() -> None:
    with pytest.raises(UserError, match="not connected: no path from s3 to s1"):
        shortest_routes(network([(0, 1)], [1, 1, 1]))


@pytest.mark.parametrize("k", [4, 6, 8])
def test_traffic_to_one_host_comes_in_over_all_links_of_its_switch(k: int) -> None:
    """Incast: no link into a switch carries much more than its share of the other switches' traffic to it."""
    topology = fat_tree(k)
    routes = shortest_routes(topology)
    for edge in (switch.name for switch in topology.switches if switch.tier == "edge"):
        others = [s.name for s in topology.switches if s.tier == "edge" and s.name != edge]
        arriving = Counter(routes.path(other, edge)[-2] for other in others)
        assert len(arriving) == k // 2
        assert max(arriving.values()) <= 1.5 * len(others) / (k // 2)
