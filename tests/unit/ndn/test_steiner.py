"""Trees that pushes follow, against the least tree there is (Steiner), searched exhaustively on small graphs."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest

from gradbed.controller.planning.multicast import multicast_tree
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology
from tests.unit.ndn.runs import run


def least_links(graph: nx.Graph, terminals: frozenset[str]) -> int:
    """Links of a least tree that spans the terminals (Dreyfus and Wagner, Networks 1, 1971)."""
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    first, *others = sorted(terminals)
    cost = {(frozenset([each]), node): distance[each][node] for each in others for node in graph}
    for size in range(2, len(others) + 1):
        for chosen in map(frozenset, itertools.combinations(others, size)):
            anchor = min(chosen)
            rest = sorted(chosen - {anchor})
            halves = [
                chosen - frozenset(part) for n in range(1, len(rest) + 1) for part in itertools.combinations(rest, n)
            ]
            joined = {node: min(cost[half, node] + cost[chosen - half, node] for half in halves) for node in graph}
            for node in graph:
                cost[chosen, node] = min(joined[other] + distance[other][node] for other in graph)
    return cost[frozenset(others), first]


def peers_of(kind: str, count: int) -> tuple[nx.Graph, list[str]]:
    topology = parse_topology(kind, LinkModel())
    names = [host.name for host in topology.hosts]
    return topology.graph, [names[index * len(names) // count] for index in range(count)]


def test_the_search_knows_a_tree_that_is_shorter_than_shortest_paths() -> None:
    """A wheel: spokes of two links, rim of one."""
    graph = nx.cycle_graph(["a", "b", "c", "d"])
    for each in "abcd":
        nx.add_path(graph, ["hub", f"{each}'", each])
    assert least_links(graph, frozenset("abc")) == 2
    assert least_links(graph, frozenset(["hub", "a", "b", "c", "d"])) == 5


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize(
    ("kind", "peers", "planned", "least"),
    [
        ("star:4", 4, 16, 16),
        ("leaf-spine:3,2,2", 4, 28, 28),
        ("dragonfly:3,2,2", 5, 47, 45),
        ("torus:3,3,3", 5, 61, 55),
    ],
)
def test_shortest_path_trees_beside_least_trees(kind: str, peers: int, planned: int, least: int) -> None:
    """expected_hops is no least: a shortest-path tree of each publisher, which the run reports as what it is."""
    graph, hosts = peers_of(kind, peers)
    assert peers * least_links(graph, frozenset(hosts)) == least
    topology = parse_topology(kind, LinkModel())
    for host in hosts:
        tree = nx.Graph([(host, topology.attachment(host).name)])
        tree.add_edges_from(multicast_tree(topology, host, [each for each in hosts if each != host], ()).edges())
        assert nx.is_tree(tree)
        assert all(graph.has_edge(*edge) for edge in tree.edges)
        for other in hosts:
            assert nx.shortest_path_length(tree, host, other) == nx.shortest_path_length(graph, host, other)
    result = run(topology={"kind": kind}, workload={"peers": peers, "rounds": 1, "values": 96})
    assert result.failures == []
    assert result.metrics["expected_hops"] == planned >= least
