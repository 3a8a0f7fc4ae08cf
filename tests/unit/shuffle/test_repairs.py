"""Whether lost fragments go again alone or together: whichever takes fewer hops, and everybody can decode it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import networkx as nx
import pytest

from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.formats.shuffle import COMPONENTS
from gradbed.hosts.systems.shuffle.config import RepairGroup, RepairTree
from gradbed.hosts.systems.shuffle.sending import RepairPlanner, RepairRoute, Wanted
from gradbed.topo.generators import fat_tree
from gradbed.topo.registry import parse_topology

TOPOLOGY = fat_tree(4)
TREES = Trees(TOPOLOGY, [host.name for host in TOPOLOGY.hosts])
SENDER = 0
EVERYBODY = (1 << 16) - 1
REPAIR_TREES = [RepairTree(bift_id=1, hosts=EVERYBODY, up=TREES.up(0))]


def planner(holders: dict[int, int], routes: Sequence[RepairRoute] = REPAIR_TREES) -> RepairPlanner:
    return RepairPlanner(SENDER, routes, TREES.distances[SENDER].tolist(), holders)


def test_one_goes_alone() -> None:
    (repair,) = planner({7: 1}).plan([Wanted(15, 7, 2), Wanted(15, 7, 2)])
    assert (repair.components, repair.route, repair.hops) == ([(7, 2)], None, 6)


def test_neighbours_far_away_share_a_packet_of_the_same_fragment() -> None:
    (repair,) = planner({7: 1}).plan([Wanted(14, 7, 0), Wanted(15, 7, 0)])
    assert (repair.components, repair.receivers, repair.hops) == ([(7, 0)], 0b11 << 14, 7)


def test_different_fragments_are_summed_where_each_holds_the_others() -> None:
    wanted = [Wanted(14, 7, 0), Wanted(15, 8, 3)]
    (repair,) = planner({7: 1 | 1 << 15, 8: 1 | 1 << 14}).plan(wanted)
    assert (repair.components, repair.hops, repair.route) == ([(7, 0), (8, 3)], 7, REPAIR_TREES[0])
    assert len(planner({7: 1 | 1 << 15, 8: 1}).plan(wanted)) == 2, "one could not decode it"


def test_without_trees_and_groups_everything_is_unicast() -> None:
    found = planner({7: 1}, routes=[]).plan([Wanted(14, 7, 0), Wanted(15, 7, 0)])
    assert [repair.route for repair in found] == [None, None]


def test_a_group_takes_what_goes_to_its_members_if_that_is_cheaper() -> None:
    """Its packets go to all of them: eight hops, for as many as want one."""
    group = RepairGroup(dst_ip="239.128.0.1", members=0b111 << 13, cost_hops=8)
    found = planner({7: 1}, [group]).plan([Wanted(13, 7, 0), Wanted(14, 7, 0), Wanted(15, 7, 0), Wanted(12, 7, 0)])
    assert [(repair.receivers, repair.route, repair.hops) for repair in found] == [
        (1 << 12, None, 6),
        (0b111 << 13, group, 8),
    ]
    dear = group.model_copy(update={"cost_hops": 12})
    assert len(planner({7: 1}, [dear]).plan([Wanted(14, 7, 0), Wanted(15, 7, 0)])) == 2


def test_a_tree_takes_what_goes_to_hosts_that_it_reaches() -> None:
    (tree,) = REPAIR_TREES
    for hosts, repairs in ((0b11 << 14, 1), (1 << 15, 2)):
        found = planner({7: 1}, [tree.model_copy(update={"hosts": hosts | 1})])
        assert len(found.plan([Wanted(14, 7, 0), Wanted(15, 7, 0)])) == repairs


def test_nobody_has_two_fragments_in_one_packet() -> None:
    found = planner({7: EVERYBODY, 8: EVERYBODY}).plan([Wanted(15, 7, 0), Wanted(15, 7, 1), Wanted(15, 8, 0)])
    assert len(found) == 3


@pytest.mark.parametrize("seed", range(30))
def test_all_is_served_decodable_and_in_no_more_hops_than_alone(seed: int) -> None:
    draw = random.Random(seed)
    holders = {sample: draw.getrandbits(16) | 1 for sample in range(12)}
    wanted = [
        Wanted(worker, sample, draw.randrange(2))
        for worker in range(1, 16)
        for sample in draw.sample(range(12), 3)
        if not holders[sample] >> worker & 1
    ]
    found = planner(holders).plan(wanted)
    assert sorted(each for repair in found for each in repair.wanted) == sorted(set(wanted))
    alone = 0
    for repair in found:
        assert len(repair.components) <= COMPONENTS
        for each in repair.wanted:
            others = [
                sample for sample, fragment in repair.components if (sample, fragment) != (each.sample, each.fragment)
            ]
            assert all(holders[sample] >> each.receiver & 1 for sample in others)
        one_by_one = sum(int(TREES.distances[SENDER, each.receiver]) for each in repair.wanted)
        alone += one_by_one
        assert repair.hops <= one_by_one
        if repair.route is not None:
            assert repair.hops == TREES.hops_on(0, SENDER, repair.receivers)
    assert sum(repair.hops for repair in found) < alone, "something is gained by sums"


@pytest.mark.parametrize("kind", ["fat-tree:4", "bcube:3,1", "leaf-spine:3,2,2"])
def test_hops_are_those_of_the_tree(kind: str) -> None:
    topology = parse_topology(kind)
    trees = Trees(topology, [host.name for host in topology.hosts])
    draw = random.Random(1)
    for _ in range(30):
        sender, *receivers = draw.sample(range(len(topology.hosts)), 4)
        number = trees.of_sender[sender][0]
        tree = RepairTree(bift_id=1, hosts=(1 << len(trees.hosts)) - 1, up=trees.up(number))
        graph = nx.Graph((a, b, {"hop": not trees.is_inside(a, b)}) for a, b in trees.trees[number].links)
        names = [topology.hosts[each].name for each in (sender, *receivers)]
        edges = {
            frozenset(edge)
            for other in names[1:]
            for edge in nx.utils.pairwise(nx.shortest_path(graph, names[0], other))
        }
        assert tree.hops(sender, receivers) == sum(graph.edges[tuple(edge)]["hop"] for edge in edges)
