"""Trees of fewest links: as short as the best of all, counted as they are sent, and used where breadth-first ones are
longer."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import networkx as nx
import pytest

from gradbed.controller.systems.shuffle.delivery import hosts_behind
from gradbed.controller.systems.shuffle.scheduling import trees as trees_module
from gradbed.controller.systems.shuffle.scheduling.clusters import ClusterCosts, Exact, Improved
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.schedule import BadSchedule, check_schedule
from gradbed.controller.systems.shuffle.scheduling.trees import JoinedTrees, SteinerTrees, Tree, Trees, bits_of
from gradbed.topo.graph import Topology, is_hop
from gradbed.topo.registry import parse_topology


def trees_of(fabric: str, variants: int = 2) -> Trees:
    topology = parse_topology(fabric)
    return Trees(topology, [host.name for host in topology.hosts], variants)


def is_tree_between(tree: Tree, hosts: list[str], topology: Topology) -> bool:
    """Its links are the network's, and its leaves are these hosts."""
    graph = nx.Graph(tree.links)
    leaves = {node for node, degree in graph.degree if degree == 1}
    return nx.is_tree(graph) and leaves == set(hosts) and all(topology.graph.has_edge(*link) for link in graph.edges)


@pytest.mark.parametrize("fabric", ["bcube:2,1", "bcube:3,1"])
def test_they_are_as_short_as_the_shortest_of_all_trees(fabric: str) -> None:
    """Of every set of switches that hangs together the spanning tree is tried."""
    trees = trees_of(fabric)
    topology, found = trees.topology, SteinerTrees(trees)
    between = topology.graph.subgraph(switch.name for switch in topology.switches)
    draw = random.Random(1)
    for _ in range(6):
        sender, *receivers = draw.sample(range(len(trees.hosts)), 4)
        ends = {topology.attachment(trees.hosts[host]).name for host in (sender, *receivers)}
        others = sorted(set(between) - ends)
        least = next(
            len(ends) + more - 1
            for more in range(len(others) + 1)
            if any(nx.is_connected(between.subgraph({*ends, *added})) for added in combinations(others, more))
        )
        hops = found.hops(bits_of(receivers))
        assert hops is not None and hops[sender] == least


@pytest.mark.parametrize("fabric", ["bcube:4,1", "bcube:2,2", "torus:3,3,2", "fat-tree:4"])
def test_the_tree_has_the_links_that_were_counted_and_is_never_longer_than_breadth_first(fabric: str) -> None:
    trees = trees_of(fabric)
    found, draw = SteinerTrees(trees), random.Random(2)
    shorter = 0
    for _ in range(40):
        sender, *receivers = draw.sample(range(len(trees.hosts)), draw.randint(2, 7))
        hops = found.hops(bits_of(receivers))
        assert hops is not None
        tree = found.tree(sender, bits_of(receivers))
        names = [trees.hosts[host] for host in (sender, *receivers)]
        assert tree.root == names[0] and is_tree_between(tree, names, trees.topology)
        assert sum(is_hop(trees.topology, trees.topology.link(*link)) for link in tree.links) == hops[sender]
        assert set(tree.branches(names[0], names[1:])) == set(tree.links)
        breadth_first = trees.hops(sender, bits_of(receivers))
        assert hops[sender] <= breadth_first
        shorter += bool(hops[sender] < breadth_first)
    assert trees.are_shortest == (fabric == "fat-tree:4")
    assert bool(shorter) != trees.are_shortest


def test_too_many_receivers_are_left_to_breadth_first_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees_module, "MOST_RECEIVERS", 2)
    found = SteinerTrees(trees_of("bcube:4,1"))
    assert found.hops(0b110) is not None and found.hops(0b1110) is None


def test_trees_are_joined_where_no_circle_comes_of_it() -> None:
    trees = trees_of("bcube:4,1")
    found, joined, draw = SteinerTrees(trees), JoinedTrees(), random.Random(3)
    asked = []
    for _ in range(60):
        sender, *receivers = draw.sample(range(16), 4)
        tree = found.tree(sender, bits_of(receivers))
        asked.append((joined.add(tree), tree, [trees.hosts[host] for host in (sender, *receivers)]))
    assert len(joined.trees) < len(asked) / 2
    for place, tree, (first, *others) in asked:
        whole = joined.trees[place]
        assert nx.is_tree(nx.Graph(whole.links))
        assert set(map(frozenset, whole.branches(first, others))) == set(map(frozenset, tree.links))


def corner() -> tuple[ShuffleInstance, Trees]:
    """On BCube(4,1) servers 11, 12 and 21 need a sample that 00 alone stores."""
    topology = parse_topology("bcube:4,1")
    hosts = tuple(host.name for host in topology.hosts)
    stored: list[tuple[int, ...]] = [()] * 16
    needed: list[tuple[int, ...]] = [()] * 16
    stored[0] = (0,)
    for worker in (5, 6, 9):
        needed[worker] = (0,)
    return ShuffleInstance(hosts, (10,), tuple(stored), tuple(needed)), Trees(topology, hosts, variants=2)


@pytest.mark.parametrize("scheduler", [Improved(), Exact()])
def test_a_steiner_tree_is_strictly_better(scheduler: Improved | Exact) -> None:
    """00 to 11, 12 and 21: over 01 to switch 1 of level 1 with 11 and 21, and from 11 to 12. Seven links; every
    breadth-first tree from 00 takes eight."""
    instance, trees = corner()
    receivers = bits_of((5, 6, 9))
    assert min(trees.hops_on(tree, 0, receivers) for tree in trees.of_sender[0]) == 8
    schedule = scheduler.schedule(instance, trees, seed=1)
    check_schedule(instance, schedule, trees.topology)
    (packet,) = schedule.transmissions
    assert (packet.hops, packet.tree) == (7, len(trees.trees))
    assert len(schedule.trees) == len(trees.trees) + 1


@pytest.mark.parametrize("every", [True, False])
def test_clusters_are_judged_by_what_they_take_on_steiner_trees(every: bool) -> None:
    """To list clusters the same seven links count as for sending, and not the eight of breadth-first trees."""
    network = ClusterCosts(*corner())
    assert network.least_hops(1, bits_of((5, 6, 9)), every=every) == network.hops(0, bits_of((5, 6, 9))) == 7


def test_the_check_counts_on_the_tree_that_the_schedule_names() -> None:
    instance, trees = corner()
    schedule = Improved().schedule(instance, trees, seed=1)
    extra = schedule.trees[-1]
    cut_short = Tree(extra.root, extra.links[:-1])
    for wrong, words in (((cut_short,), "does not reach all"), ((), "there is no tree")):
        with pytest.raises(BadSchedule, match=words):
            check_schedule(instance, replace(schedule, trees=(*schedule.trees[:-1], *wrong)), trees.topology)
    with pytest.raises(BadSchedule, match="takes 8 hops, not 7"):
        check_schedule(instance, replace(schedule, trees=(*schedule.trees[:-1], schedule.trees[0])), trees.topology)


def test_behind_the_links_of_a_tree_are_the_hosts_that_it_reaches() -> None:
    trees = trees_of("bcube:4,1")
    tree = SteinerTrees(trees).tree(0, bits_of((5, 6, 9)))
    behind = hosts_behind(tree, trees.hosts)
    for parent, child in tree.links:
        assert behind[parent, child] | behind[child, parent] == bits_of((0, 5, 6, 9))
        assert not behind[parent, child] & behind[child, parent]
