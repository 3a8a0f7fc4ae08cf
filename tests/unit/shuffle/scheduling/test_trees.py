"""Hop counts are the links of the trees that packets follow, and the trees are breadth-first."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, bits_of
from gradbed.topo.graph import Topology, is_hop
from gradbed.topo.registry import parse_topology

FABRICS = ["fat-tree:4", "leaf-spine:3,2,3", "star:5", "bcube:4,1"]


def trees_of(fabric: str, variants: int = 1) -> Trees:
    topology = parse_topology(fabric)
    return Trees(topology, [host.name for host in topology.hosts], variants)


@pytest.mark.parametrize("fabric", FABRICS)
def test_unicast_takes_shortest_paths(fabric: str) -> None:
    trees = trees_of(fabric)
    for a, from_host in enumerate(trees.hosts):
        lengths = nx.single_source_shortest_path_length(trees.topology.graph, from_host)
        inside = 2 * fabric.startswith("bcube")
        assert trees.distances[a].tolist() == [max(0, lengths[host] - inside) for host in trees.hosts]


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("variants", [1, 4])
def test_hops_are_the_links_of_the_branches(fabric: str, variants: int) -> None:
    trees = trees_of(fabric, variants)
    draw = random.Random(1)
    for _ in range(50):
        sender, *receivers = draw.sample(range(len(trees.hosts)), draw.randint(2, len(trees.hosts)))
        for number in trees.of_sender[sender]:
            tree = trees.trees[number]
            branches = tree.branches(trees.hosts[sender], [trees.hosts[each] for each in receivers])
            hops = [link for link in branches if is_hop(trees.topology, trees.topology.link(*link))]
            assert len(hops) == trees.hops_on(number, sender, bits_of(receivers))
            reached = {trees.hosts[sender]}
            for start, end in branches:
                assert start in reached and end not in reached
                assert trees.topology.link(start, end)
                reached.add(end)
            assert reached >= {trees.hosts[each] for each in receivers}
            ends = {node for node in reached if not any(start == node for start, _ in branches)}
            assert ends <= {trees.hosts[each] for each in receivers}


@pytest.mark.parametrize("fabric", ["bcube:4,1", "bcube:3,2"])
def test_the_best_tree_is_the_best_of_all_variants(fabric: str) -> None:
    """Variants of a BCube's trees have other lengths between hosts, so none of them stands for another."""
    trees = trees_of(fabric, variants=6)
    draw = random.Random(2)
    chosen = set()
    for _ in range(60):
        sender, *others = draw.sample(range(len(trees.hosts)), 5)
        receivers = bits_of(others)
        hops = {tree: trees.hops_on(tree, sender, receivers) for tree in trees.of_sender[sender]}
        found = trees.best(sender, receivers)
        assert found == (hops[found[1]], found[1]) and found[0] == min(hops.values())
        chosen.add(trees.of_sender[sender].index(found[1]))
    assert len(chosen) > 1


def test_a_fat_tree_needs_a_tree_for_each_core_switch() -> None:
    trees = trees_of("fat-tree:4", variants=9)
    assert trees.of_sender == ((0, 1, 2, 3),) * 16
    cores = [{node for link in tree.links for node in link if node.startswith("c")} for tree in trees.trees]
    assert cores == [{"c1"}, {"c2"}, {"c3"}, {"c4"}]


def test_neighbours_share_a_switch() -> None:
    trees = trees_of("fat-tree:4")
    assert trees.neighbours[:4] == (0b10, 0b01, 0b1000, 0b0100)


def test_multicast_in_a_fat_tree() -> None:
    """h1 and h2 share a rack, h3 is in their pod, h5 in the next."""
    trees = trees_of("fat-tree:4")
    assert trees.hops(0, 0b10) == 2
    assert trees.hops(0, 0b110) == 5
    assert trees.hops(0, 0b10110) == 9


def test_servers_of_a_bcube_relay() -> None:
    """h1 has address 00, h2 01, h5 10 and h6 11: h6 is two switches away over either of the others."""
    trees = trees_of("bcube:4,1", variants=2)
    assert trees.distances[0, [1, 4, 5]].tolist() == [2, 2, 4]
    # To 01, 10 and 11: six links one way round.
    assert trees.hops(0, bits_of([1, 4, 5])) == 6
    # To 01 and 11 over 01; the variant over 10 takes more.
    assert sorted(trees.hops_on(tree, 0, bits_of([1, 5])) for tree in trees.of_sender[0]) == [4, 6]


def test_a_network_in_parts() -> None:
    whole = parse_topology("leaf-spine:2,1,2")
    torn = Topology(
        name="torn",
        hosts=whole.hosts,
        switches=whole.switches,
        links=tuple(link for link in whole.links if {link.a.node, link.b.node} != {"l2", "s1"}),
    )
    assert len(torn.links) == len(whole.links) - 1
    with pytest.raises(UserError, match="the network is not connected: no path from h1 to h3"):
        Trees(torn, [host.name for host in torn.hosts])
