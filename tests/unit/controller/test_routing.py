from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import pairwise, permutations
from random import Random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.controller.planning.diff import switch_diff
from gradbed.controller.planning.plan import Lpm, SwitchPlan
from gradbed.controller.planning.routing import link_name, remaining_network, routing_plan, shortest_routes
from gradbed.topo.generators import fat_tree, leaf_spine
from gradbed.topo.graph import Topology
from gradbed.topo.registry import parse_topology
from tests.examples import examples
from tests.unit.controller.networks import REGULAR, network, random_networks, routes_alone
from tests.unit.controller.plan_walker import IPV4_DST, PlanWalker


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
@settings(max_examples=examples(60), deadline=None)
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


def test_subnets_that_lie_together_and_go_the_same_way_are_one_entry() -> None:
    topology = fat_tree(4)
    plan = routes_alone(topology)
    # The two subnets of a pod are one for the core; elsewhere they mostly go two ways.
    sizes = {name: len(switch.entries) for name, switch in plan.switches.items()}
    assert {sizes[switch.name] for switch in topology.switches if switch.tier == "core"} == {4}
    assert all(sizes[switch.name] <= (9 if switch.tier == "edge" else 8) for switch in topology.switches)
    assert {str(prefix) for prefix in prefixes(plan["c1"])} == {f"10.{pod}.0.0/23" for pod in range(4)}


def prefixes(switch: SwitchPlan) -> Iterator[IPv4Network]:
    for entry in switch.entries:
        prefix = entry.match[IPV4_DST]
        assert isinstance(prefix, Lpm)
        yield IPv4Network((prefix.value, prefix.prefix_bits))


def test_hosts_of_a_subnet_that_is_spread_have_an_entry_each_or_one_for_neighbours() -> None:
    topology = network([(0, 1)], [2, 1], shared_subnet=True)
    plan = routes_alone(topology)
    assert {str(prefix) for prefix in prefixes(plan["s1"])} == {"10.0.0.2/32", "10.0.0.3/32", "10.0.0.4/32"}
    assert {str(prefix) for prefix in prefixes(plan["s2"])} == {"10.0.0.2/31", "10.0.0.4/32"}
    check_all_pairs(topology)


def check_paths(topology: Topology) -> None:
    """For every pair of hosts: the way through the plan is that of the next hops towards the one host's switch."""
    routes = shortest_routes(topology)
    walker = PlanWalker(topology, routes_alone(topology))
    at = {host.name: topology.attachment(host.name).name for host in topology.hosts}
    for destination in at:
        towards = nx.DiGraph(routes.next_hops[at[destination]].items())
        towards.add_node(at[destination])
        for source in at.keys() - {destination}:
            way = nx.shortest_path(towards, at[source], at[destination])
            assert walker.send(source, destination).path == (source, *way, destination)


@pytest.mark.parametrize(
    "shape", ["fat-tree:4", "leaf-spine:5,3,2", "dragonfly:4,2,2", "torus:3,3,2", "bcube:3,1", "optical-electrical:2"]
)
def test_paths_by_prefix_are_those_by_host_on_every_shape_and_after_a_failure(shape: str) -> None:
    topology = parse_topology(shape)
    check_paths(topology)
    down = [link_name(link) for link in topology.switch_links[:: max(1, len(topology.switch_links) // 3)]]
    check_paths(remaining_network(topology, down))


@given(random_networks(), st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_paths_by_prefix_are_those_by_host_on_random_networks(topology: Topology, random: Random) -> None:
    down = [link_name(link) for link in topology.switch_links if random.random() < 0.3]
    check_paths(remaining_network(topology, down))


def test_a_failure_is_written_only_to_switches_with_hosts_that_go_another_way() -> None:
    topology = parse_topology("torus:3,3,2")
    rest = remaining_network(topology, [link_name(topology.switch_links[0])])
    before, after = shortest_routes(topology), shortest_routes(rest)
    programs = {switch.name: "forward" for switch in topology.switches}
    old, new = routing_plan(topology, before, programs), routing_plan(rest, after, programs)
    homes = {topology.attachment(host.name).name for host in topology.hosts}
    left_alone = 0
    for name in programs:
        same = all(before.next_hop(name, home) == after.next_hop(name, home) for home in homes - {name})
        assert bool(switch_diff(old[name], new[name])) != same
        left_alone += same
    assert 0 < left_alone < len(programs)


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
