"""The five examples of the source, on its machines #1 to #5 (workers 0 to 4)."""

from __future__ import annotations

import random

from gradbed.controller.systems.shuffle.scheduling.hop_aware import Growth, HopAware, Limits
from gradbed.controller.systems.shuffle.scheduling.instance import Cluster, DependencyGraph, ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import Loan, SendQueues, Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import check_schedule
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, members
from gradbed.topo.generators import fat_tree

HOSTS = ("h1", "h5", "h9", "h10", "h13")
"""Machines #3 and #4 share a rack; the others are in pods of their own."""


def machines(fifth: tuple[int, ...] = (3, 7)) -> ShuffleInstance:
    """Figure 2 of the source, as far as the examples tell it. fifth: what machine #5 stores."""
    return ShuffleInstance(
        workers=HOSTS,
        sizes_bytes=(100,) * 11,
        stored=((3, 4), (4, 7, 9), (7, 10), (3,), fifth),
        needed=((7,), (3, 10), (4, 9), (), ()),
    )


def growth(instance: ShuffleInstance, loans: int, threshold_us: int = 1200, *, count_loans: bool = True) -> Growth:
    trees = Trees(fat_tree(4), instance.hosts)
    queues = SendQueues(instance, trees, Timing(threshold_us=threshold_us))
    limits = Limits(loans=loans)
    return Growth(DependencyGraph(instance), trees, queues, limits, count_loans, random.Random(1))


def first_two(graph: DependencyGraph) -> Cluster:
    return graph.joined(graph.cluster(0, 7), 1, 3)


def test_example_1_edges_follow_needs_and_storage() -> None:
    graph = DependencyGraph(machines())

    def edges(need: int, store: int) -> list[int]:
        return [graph.samples[need][place] for place in members(graph.wanted[need][store])]

    assert edges(0, 1) == [7] and edges(1, 0) == [3]
    assert edges(0, 2) == [7] and edges(2, 0) == [4]
    assert edges(1, 2) == [10] and edges(2, 1) == [4, 9]


def test_example_2_machines_1_and_2_are_a_cluster_with_weights_3_and_7() -> None:
    """The source says 2 and 3; its own figure has no sample 2."""
    graph = DependencyGraph(machines())
    cluster = graph.cluster(0, 7)
    joinable = graph.joinable(cluster, 1)
    assert [graph.samples[1][place] for place in members(joinable)] == [3]
    assert sorted(sample for _, sample in first_two(graph).receivers) == [3, 7]


def test_example_3_machine_3_cannot_join_since_it_does_not_store_3() -> None:
    found = growth(machines(), loans=0)
    cluster = first_two(found.graph)
    assert not cluster.holders >> 2 & 1
    start = found.solution(cluster, ())
    assert start is not None
    assert list(found.joinable_edges(start)) == []


def test_example_4_machine_5_may_send_to_machines_1_and_2() -> None:
    found = growth(machines(), loans=0)
    solution = found.solution(first_two(found.graph), ())
    assert solution is not None
    assert (solution.sender, solution.loans) == (4, ())
    # Machines #5, #1 and #2 are in different pods: three links at hosts, three at racks, three at pods.
    assert solution.loss == 9 / 2


def test_example_5_machine_3_joins_with_a_sample_that_machine_4_lends() -> None:
    found = growth(machines(), loans=1)
    start = found.solution(first_two(found.graph), ())
    assert start is not None
    assert ((2, 4), (Loan(lender=3, borrower=2, sample=3),)) in found.joinable_edges(start)


def test_example_5_pays_by_the_sources_loss_and_not_by_that_with_loans() -> None:
    """With a machine #5 that stores all three samples: a packet of 12 hops for three, or of 9 for two."""
    instance = machines(fifth=(3, 4, 7))
    for count_loans, samples, loss in ((False, [3, 4, 7], 12 / 3), (True, [3, 7], 9 / 2)):
        found = growth(instance, loans=1, count_loans=count_loans)
        best = found.expanded(found.graph.cluster(0, 7))
        assert sorted(sample for _, sample in best.cluster.receivers) == samples
        assert best.loss == loss
    trees = Trees(fat_tree(4), instance.hosts)
    schedule = HopAware().schedule(instance, trees, seed=1)
    check_schedule(instance, schedule, trees.topology)
    assert any(transmission.kind == "B" for transmission in schedule.transmissions)


def test_a_sender_whose_loan_comes_too_late_is_none() -> None:
    """S4.3 asks S5: nothing else is queued, so the whole way of the loan is waiting."""
    instance = ShuffleInstance(
        workers=HOSTS,
        sizes_bytes=(100,) * 2,
        stored=((1,), (0,), (0,), (1,), ()),
        needed=((0,), (1,), (), (), ()),
    )
    for threshold_us, loans in ((1000, 1), (10, 0)):
        found = growth(instance, 1, threshold_us)
        solution = found.solution(found.graph.joined(found.graph.cluster(0, 0), 1, 1), ())
        assert (0 if solution is None else len(solution.loans)) == loans
