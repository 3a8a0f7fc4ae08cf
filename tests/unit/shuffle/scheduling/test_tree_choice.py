"""Which of equally short trees packets take: one rule for all schedulers, and what it does to links."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import networkx as nx
import pytest

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance, epochs
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, SendQueues
from gradbed.controller.systems.shuffle.scheduling.schedule import (
    TREE_CHOICES,
    Schedule,
    TreeChoice,
    check_schedule,
    with_trees_chosen,
)
from gradbed.controller.systems.shuffle.scheduling.schedulers import SCHEDULERS, scheduler_named
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.topo.graph import Topology
from gradbed.topo.registry import parse_topology

FAST = [name for name in SCHEDULERS if name != "exact"]


def drawn(fabric: str, name: str, samples: int = 240, variants: int = 4) -> tuple[ShuffleInstance, Trees, Schedule]:
    topology = parse_topology(fabric)
    hosts = [host.name for host in topology.hosts]
    master = hosts.pop() if name == "coded-master" else None
    instance = next(epochs(hosts, [100] * samples, 0.3, seed=1, master=master))
    trees = Trees(topology, instance.hosts, variants)
    return instance, trees, scheduler_named(name).schedule(instance, trees, seed=1)


def loads(topology: Topology, instance: ShuffleInstance, schedule: Schedule) -> Counter[tuple[str, str]]:
    """Packets on every direction of every link, by networkx: the union of paths on the tree."""
    found: Counter[tuple[str, str]] = Counter()
    graphs = [nx.Graph(tree.links) for tree in schedule.trees]
    for sent in schedule.transmissions:
        graph, sender = graphs[sent.tree], instance.hosts[sent.sender]
        links = set()
        for worker, _ in sent.receivers:
            path = nx.shortest_path(graph, sender, instance.hosts[worker])
            links |= set(pairwise(path))
        found.update(links)
    return found


def over_cores(found: Counter[tuple[str, str]]) -> list[int]:
    """Packets that each core switch of a k=4 fat-tree sends, copies included."""
    return [sum(packets for (a, _), packets in found.items() if a == core) for core in ("c1", "c2", "c3", "c4")]


@pytest.mark.parametrize("name", FAST)
def test_whoever_decides_the_packets_are_spread_over_all_cores(name: str) -> None:
    """The first tree has them all over one; by the rule no core has half as much again as its share, by chance
    (ECMP) twice as much."""
    instance, trees, schedule = drawn("fat-tree:4", name)
    most = {}
    for rule in TREE_CHOICES:
        chosen = with_trees_chosen(schedule, instance, trees, rule, seed=1)
        check_schedule(instance, chosen, trees.topology)
        assert chosen.hops == schedule.hops and chosen.queues == schedule.queues
        cores = over_cores(loads(trees.topology, instance, chosen))
        most[rule] = 4 * max(cores) / sum(cores)
    assert most["first"] > 3.5
    assert most["least-loaded"] < 1.5 and most["ecmp"] < 2


@pytest.mark.parametrize("rule", ["least-loaded", "ecmp"])
def test_the_busiest_link_carries_less_for_the_same_hops(rule: TreeChoice) -> None:
    instance, trees, schedule = drawn("fat-tree:4", "hop-aware")
    chosen = with_trees_chosen(schedule, instance, trees, rule, seed=1)
    before, after = (loads(trees.topology, instance, each) for each in (schedule, chosen))
    assert sum(before.values()) == sum(after.values())
    assert max(after.values()) < max(before.values())


def test_large_samples_count_for_more_than_small_ones() -> None:
    """On two spines: after one packet of 1,000 bytes the next four, of 100 bytes, all go over the other one."""
    topology = parse_topology("leaf-spine:2,2,5")
    hosts = [host.name for host in topology.hosts]
    stored = [(place,) if place < 5 else () for place in range(10)]
    needed = [() if place < 5 else (place - 5,) for place in range(10)]
    instance = ShuffleInstance(tuple(hosts), (1000, 100, 100, 100, 100), tuple(stored), tuple(needed))
    trees = Trees(topology, instance.hosts, variants=2)
    drawn = (scheduler_named("unicast-nearest").schedule(instance, trees, seed) for seed in range(100))
    schedule = next(each for each in drawn if each.transmissions[0].samples == (0,))
    chosen = with_trees_chosen(schedule, instance, trees, "least-loaded", seed=1)
    first, *others = (sent.tree for sent in chosen.transmissions)
    assert len(others) == 4 and set(others) == {1 - first}


def test_the_busiest_link_of_a_tree_decides() -> None:
    """From l1 to l3 500 bytes over s1, from l2 to l3 300 over s2; then from l2 to l3: over s1 is a link with 500 and
    one that is free, over s2 are two with 300."""
    topology = parse_topology("leaf-spine:3,2,3")
    hosts = [host.name for host in topology.hosts]  # three at each leaf
    ends = ((0, 6), (3, 7), (4, 8))
    stored: list[tuple[int, ...]] = [()] * 9
    needed: list[tuple[int, ...]] = [()] * 9
    for sample, (sender, receiver) in enumerate(ends):
        stored[sender], needed[receiver] = (sample,), (sample,)
    instance = ShuffleInstance(tuple(hosts), (500, 300, 100), tuple(stored), tuple(needed))
    trees = Trees(topology, instance.hosts, variants=2)
    queues = SendQueues(instance, trees)
    for sample, (sender, receiver) in enumerate(ends):
        hops, tree = trees.best(sender, 1 << receiver)
        queues.add(CodedPacket(sender, ((receiver, sample),), tree, hops))
    chosen = with_trees_chosen(queues.schedule("by hand"), instance, trees, "least-loaded", seed=1)
    first, second, third = (sent.tree for sent in chosen.transmissions)
    assert second != first and third == second


@pytest.mark.parametrize("fabric", ["bcube:4,1", "leaf-spine:4,4,4"])
def test_ecmp_keeps_a_flow_on_one_tree_and_flows_apart(fabric: str) -> None:
    instance, trees, schedule = drawn(fabric, "unicast-random", samples=320)
    chosen = with_trees_chosen(schedule, instance, trees, "ecmp", seed=1)
    check_schedule(instance, chosen, trees.topology)
    of_flow: dict[tuple[int, int], set[int]] = {}
    for sent in chosen.transmissions:
        of_flow.setdefault((sent.sender, sent.receivers[0][0]), set()).add(sent.tree)
    assert all(len(taken) == 1 for taken in of_flow.values()) and len(of_flow) < len(chosen.transmissions)
    assert chosen != with_trees_chosen(schedule, instance, trees, "ecmp", seed=2)


def test_a_steiner_tree_that_is_shorter_is_kept() -> None:
    instance, trees, schedule = drawn("bcube:4,1", "improved", samples=128, variants=1)
    beside = [sent.number for sent in schedule.transmissions if sent.tree >= len(trees.trees)]
    assert beside, "some packets take such a tree"
    for rule in TREE_CHOICES:
        chosen = with_trees_chosen(schedule, instance, trees, rule, seed=1)
        check_schedule(instance, chosen, trees.topology)
        assert all(chosen.transmissions[each].tree == schedule.transmissions[each].tree for each in beside)
