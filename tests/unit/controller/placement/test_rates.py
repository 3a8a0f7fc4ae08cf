"""The linear program: known optima, a second formulation, and what its solutions must obey."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rate_program import ReturnedSums
from gradbed.controller.systems.aggregation.placement.rate_solver import SPLITS, RateSolver, quotient, solve_rates
from gradbed.topo.generators import fat_tree, star
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.controller.placement.examples import problems_with_switches, two_racks
from tests.unit.controller.placement.plain_program import plain_gamma


@pytest.mark.parametrize(
    ("programmable", "gamma"),
    [
        ((), 1.25),
        (("s2",), 2.5),
        (("s3",), 2.5),
        (("s4",), 2.5),
        (("s2", "s3"), 6.25),
        (("s4", "s2"), 2.5),
    ],
)
def test_two_racks(programmable: tuple[str, ...], gamma: float) -> None:
    assert solve_rates(two_racks(), programmable).gamma_bps == pytest.approx(gamma, abs=1e-6)
    assert RateSolver(two_racks()).gamma(programmable) * 10 == pytest.approx(gamma, abs=1e-6)


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("server_rate", [2, 10, 25])
@pytest.mark.parametrize("capacity", [None, 1.0, 7.0, 30.0, 200.0])
def test_star(workers: int, server_rate: int, capacity: float | None) -> None:
    topology = star(workers + 1, LinkModel(rate_bps=10))
    server, *others = [host.name for host in topology.hosts]
    tor = topology.attachment(server).name
    topology = topology.with_links([(server, tor)], rate_bps=server_rate)
    y = min(10, server_rate, np.inf if capacity is None else capacity / workers)
    gamma = min(10, y + (server_rate - y) / workers)
    problem = AggregationProblem.of(topology, others, server, capacity)
    assert solve_rates(problem, ()).gamma_bps == pytest.approx(gamma, abs=1e-6)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("returned_sums", [None, "by-switch", "together"])
@given(example=problems_with_switches())
@settings(max_examples=examples(10), deadline=None)
def test_as_the_plain_program(
    returned_sums: ReturnedSums | None, example: tuple[AggregationProblem, tuple[str, ...]]
) -> None:
    problem, programmable = example
    expected = plain_gamma(problem, programmable, returned_sums)
    solver = RateSolver(problem, returned_sums=returned_sums)
    rates = solve_rates(problem, programmable, returned_sums=returned_sums)
    assert rates.gamma_bps == pytest.approx(expected, rel=1e-6)
    assert solver.gamma(programmable) * solver.model.scale_bps == pytest.approx(expected, rel=1e-6)


@given(problems_with_switches())
@settings(max_examples=examples(25), deadline=None)
def test_a_solution_obeys_every_constraint(example: tuple[AggregationProblem, tuple[str, ...]]) -> None:
    problem, programmable = example
    rates = solve_rates(problem, programmable)
    sd, slack = problem.server_tor, 1e-5
    loads: Counter[int] = Counter()

    def carry(rate: float, start: str, goal: str) -> None:
        for link in problem.path(start, goal):
            loads[link] += rate

    carry(rates.f_bps, sd, problem.server)
    for worker in problem.workers:
        y, tor = rates.y_bps[worker], problem.topology.attachment(worker).name
        assert sum(y.values()) + rates.x_bps[worker] == pytest.approx(rates.gamma_bps)
        assert rates.gamma_bps <= problem.rate_bps(worker, tor) + slack
        assert rates.f_bps >= y.get(sd, 0) - slack
        for switch in programmable:
            assert rates.a_bps[switch] + rates.b_bps[switch] >= y.get(switch, 0) - slack
        for switch, rate in y.items():
            carry(rate, tor, switch)
        carry(rates.x_bps[worker], tor, problem.server)
    for switch in programmable:
        assert rates.f_bps >= rates.b_bps[switch] - slack
        carry(rates.a_bps[switch], switch, problem.server)
        carry(rates.b_bps[switch], switch, sd)
    assert all(load <= problem.link_rates_bps[link] + slack for link, load in loads.items())
    if problem.switch_capacity_bps is not None:
        for switch in (*programmable, sd):
            intake = sum(rates.y_bps[worker].get(switch, 0) for worker in problem.workers)
            intake += sum(rates.b_bps.values()) if switch == sd else 0
            assert intake <= problem.switch_capacity_bps + slack


@given(problems_with_switches())
@settings(max_examples=examples(20), deadline=None)
def test_orders_of_bounds(example: tuple[AggregationProblem, tuple[str, ...]]) -> None:
    """No ToR that sums <= its rates <= more switches; with the arrival of fragments the bound is not higher."""
    problem, programmable = example
    gamma = solve_rates(problem, programmable).gamma_bps
    slack = 1e-6 * gamma
    assert solve_rates(problem, (), server_tor=False).gamma_bps <= solve_rates(problem, ()).gamma_bps + slack
    assert solve_rates(problem, ()).gamma_bps <= gamma + slack
    assert solve_rates(problem, programmable, arrivals=True).gamma_bps <= gamma + slack


def test_arrivals_bind_where_the_server_s_link_is_slow() -> None:
    """By the source's program sd merges what T1 and T2 sum though it is never the same fragments."""
    problem = two_racks()
    topology = problem.topology.with_links([("h1", "s1")], rate_bps=4)
    slow = AggregationProblem.of(topology, problem.workers, problem.server)
    assert solve_rates(slow, ("s2", "s3")).gamma_bps == pytest.approx(plain_gamma(slow, ("s2", "s3")))
    assert solve_rates(slow, ("s2", "s3")).gamma_bps > 4.5
    assert solve_rates(slow, ("s2", "s3"), arrivals=True).gamma_bps == pytest.approx(4, abs=1e-6)


def test_alike_programs_are_solved_once() -> None:
    topology = fat_tree(4, LinkModel(rate_bps=10))
    server, *workers = [host.name for host in topology.hosts]
    solver = RateSolver(AggregationProblem.of(topology, workers, server))
    gammas = {switch: solver.gamma((switch,)) for switch in solver.problem.candidates}
    assert solver.solved < solver.asked
    for switch, gamma in gammas.items():
        assert gamma * 10 == pytest.approx(plain_gamma(solver.problem, (switch,)), rel=1e-6)


def test_a_quotient_is_small_and_its_solution_fits_the_original() -> None:
    problem = two_racks(workers=30)
    program = RateSolver(problem).model.program(("s2", "s3"))
    reduced = quotient(program)
    assert reduced.program.matrix.shape[1] <= 10
    assert len(reduced.column_class) == program.matrix.shape[1]
    mirrored = quotient(RateSolver(problem).model.program(("s3", "s2")))
    assert mirrored.signature == reduced.signature
    other = quotient(RateSolver(problem).model.program(("s2", "s4")))
    assert other.signature != reduced.signature


@given(problems_with_switches())
@settings(max_examples=examples(20), deadline=None)
def test_splits(example: tuple[AggregationProblem, tuple[str, ...]]) -> None:
    """free and alike are both optimal; with same nobody's split differs from another's."""
    problem, programmable = example
    solver = RateSolver(problem, arrivals=True)
    free, alike, same = (solver.rates(programmable, splits=splits) for splits in SPLITS)
    assert free.gamma_bps == pytest.approx(alike.gamma_bps, rel=1e-6)
    assert same.gamma_bps <= free.gamma_bps * (1 + 1e-6)
    for switch in programmable:
        sums = same.a_bps[switch] + same.b_bps[switch]
        assert max(y.get(switch, 0) for y in same.y_bps.values()) <= sums + 1e-5
    spread = sum(same.a_bps.values()) + sum(same.b_bps.values())
    spread += max(y.get(problem.server_tor, 0) for y in same.y_bps.values())
    assert spread <= same.gamma_bps + 1e-5
