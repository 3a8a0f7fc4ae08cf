"""Greedy placement on the program with returned sums: what packets reach with it, beside other placements."""

from __future__ import annotations

import functools
from itertools import combinations

import pytest

from gradbed.controller.systems.aggregation.placement import greedy as greedy_module
from gradbed.controller.systems.aggregation.placement import labels as assignment_module
from gradbed.controller.systems.aggregation.placement.greedy import exchanged, greedy, packet_greedy, packet_rate_bps
from gradbed.controller.systems.aggregation.placement.labels import designations
from gradbed.controller.systems.aggregation.placement.lp_planner import place
from gradbed.controller.systems.aggregation.placement.planner import Rates
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem, highest_degree
from gradbed.controller.systems.aggregation.placement.rate_solver import RateSolver
from gradbed.formats.aggregation import Designation
from gradbed.topo.generators import fat_tree
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import choose_hosts
from tools.bench.placement import random_fabric

FABRICS, FEW = range(40), 8
"""FEW: without --nightly; each is another draw of the same."""
CAPACITY_BPS = 20e6


def fabric_problem(seed: int, capacity_bps: float | None = CAPACITY_BPS) -> AggregationProblem:
    topology = random_fabric(seed)
    server, *workers = [host.name for host in topology.hosts]
    return AggregationProblem.of(topology, workers, server, capacity_bps)


def check_against_highest_degree(
    monkeypatch: pytest.MonkeyPatch, seed: int, maximum: int, capacity_bps: float | None
) -> None:
    problem = fabric_problem(seed, capacity_bps)
    # What the placement asks for need not be found out again.
    reached = functools.cache(functools.partial(packet_rate_bps, problem))
    monkeypatch.setattr(greedy_module, "packet_rate_bps", lambda _, programmable: reached(programmable))
    chosen = place(problem, maximum).programmable
    assert reached(chosen) >= reached(highest_degree(problem, maximum)) * (1 - 1e-9)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.nightly] if seed >= FEW else []) for seed in FABRICS]
)
def test_never_below_highest_degree_in_packets(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    check_against_highest_degree(monkeypatch, seed, 2, CAPACITY_BPS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("maximum", "capacity_bps"), [(1, None), (2, None), (3, None), (1, CAPACITY_BPS), (3, CAPACITY_BPS)]
)
def test_never_below_highest_degree_in_packets_with_other_limits(
    monkeypatch: pytest.MonkeyPatch, maximum: int, capacity_bps: float | None
) -> None:
    for seed in FABRICS:
        check_against_highest_degree(monkeypatch, seed, maximum, capacity_bps)


def fat_tree_problem() -> AggregationProblem:
    topology = fat_tree(4, LinkModel(rate_bps=10))
    return AggregationProblem.of(topology, *choose_hosts(topology, 15))


@pytest.mark.thorough
def test_four_core_switches_where_gradients_alone_lead_astray() -> None:
    problem = fat_tree_problem()
    chosen = greedy(RateSolver(problem, returned_sums="by-switch"), 4)
    assert set(chosen) == {"c1", "c2", "c3", "c4"}
    assert set(place(problem, 4).programmable) == set(chosen)
    assert packet_rate_bps(problem, chosen) == pytest.approx(10)
    assert packet_rate_bps(problem, place(problem, 4, "greedy-gradients").programmable) < 8


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [11, 18])
def test_packets_beside_the_best_of_all_placements(seed: int) -> None:
    problem = fabric_problem(seed)
    best_bps = max(packet_rate_bps(problem, chosen) for chosen in combinations(problem.candidates, 2))
    assert packet_rate_bps(problem, packet_greedy(problem, 2)) >= 0.99 * best_bps


def test_an_exchange_mends_a_first_step_that_was_best_alone() -> None:
    problem = fabric_problem(26, None)
    solver = RateSolver(problem, returned_sums="by-switch")
    chosen = greedy(solver, 2)
    better = exchanged(solver, chosen)
    best = max(solver.gamma(others) for others in combinations(problem.candidates, 2))
    assert solver.gamma(chosen) < 0.99 * best
    assert solver.gamma(better) == pytest.approx(best)
    assert len(better) == len(chosen)


def test_labels_are_not_made_for_a_rival_that_cannot_win(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def counted(problem: AggregationProblem, programmable: tuple[str, ...]) -> float:
        asked.append(programmable)
        return packet_rate_bps(problem, programmable)

    monkeypatch.setattr(greedy_module, "packet_rate_bps", counted)
    problem = fabric_problem(0)
    chosen = packet_greedy(problem, 1)
    rival = highest_degree(problem, 1)
    bounds = RateSolver(problem, arrivals=True)
    assert bounds.gamma(rival) * bounds.model.scale_bps < packet_rate_bps(problem, chosen)
    assert asked == [chosen]


def test_no_further_labels_are_made_once_packets_reach_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Rates] = []

    def counted(problem: AggregationProblem, rates: Rates, period: int) -> dict[str, tuple[Designation, ...]]:
        made.append(rates)
        return designations(problem, rates, period)

    monkeypatch.setattr(assignment_module, "designations", counted)
    problem = fat_tree_problem()
    assert packet_rate_bps(problem, ("c1", "c2", "c3", "c4")) == pytest.approx(10)
    assert len(made) == 1
    packet_rate_bps(problem, ("e2", "e3"))
    assert len(made) > 2
