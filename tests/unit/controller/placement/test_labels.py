"""Labels of packets: every fragment once, shares met, fan-ins true, and what packets then reach."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.aggregation.placement.labels import (
    achievable_rates,
    best_period,
    designations,
    destination_shares,
    rounded_counts,
)
from gradbed.controller.systems.aggregation.placement.lp_planner import LpPlanner
from gradbed.controller.systems.aggregation.placement.methods import METHODS
from gradbed.controller.systems.aggregation.placement.planner import Rates
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rate_solver import SPLITS, solve_rates
from gradbed.formats.aggregation import DIRECT, Designation
from gradbed.topo.generators import fat_tree
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import choose_hosts
from tests.examples import examples
from tests.unit.controller.networks import network
from tests.unit.controller.placement.examples import problems_with_switches, two_racks

Labels = dict[str, tuple[Designation, ...]]


@given(problems_with_switches(), st.integers(1, 40))
@settings(max_examples=examples(30), deadline=None)
def test_labels_are_consistent(example: tuple[AggregationProblem, tuple[str, ...]], period: int) -> None:
    problem, programmable = example
    rates = solve_rates(problem, programmable, arrivals=True)
    labels = designations(problem, rates, period)
    assert labels == designations(problem, rates, period)
    check_shares(problem, rates, labels, period)
    check_fan_ins(problem, labels, period)
    for one in problem.workers:
        for other in problem.workers:
            if rates.y_bps[one] == rates.y_bps[other]:
                assert labels[one] == labels[other]
    reached = achievable_rates(problem, labels)
    assert reached.gamma_bps <= rates.gamma_bps * (1 + 1e-6)


def check_shares(problem: AggregationProblem, rates: Rates, labels: Labels, period: int) -> None:
    numbers = {switch.name: switch.number for switch in problem.topology.switches}
    for worker in problem.workers:
        assert len(labels[worker]) == period
        sent = Counter(label.switch_number for label in labels[worker])
        shares = {numbers[switch]: rate / rates.gamma_bps for switch, rate in rates.y_bps[worker].items()}
        shares[0] = rates.x_bps[worker] / rates.gamma_bps
        assert sent.keys() <= shares.keys()
        for number, share in shares.items():
            assert abs(sent[number] - period * share) < 1 + 1e-5


def check_fan_ins(problem: AggregationProblem, labels: Labels, period: int) -> None:
    sd = problem.topology.switch(problem.server_tor).number
    for fragment in range(period):
        row = [labels[worker][fragment] for worker in problem.workers]
        at_sd = sum(label.switch_number == sd or label.next_switch == sd for label in row)
        for label in row:
            if label.switch_number == 0:
                assert label == DIRECT
            elif label.switch_number == sd:
                assert label == Designation(sd, at_sd)
            else:
                assert label.fan_in == sum(other.switch_number == label.switch_number for other in row)
                assert (label.next_switch, label.next_fan_in) in ((0, 0), (sd, at_sd))
        # All copies of a fragment that meet at a switch bear the same label.
        assert len({label.switch_number for label in row}) == len(set(row))


def test_the_two_racks_reach_the_bound() -> None:
    """Both racks split 5 : 1.25, the other way round, and the sets of either ToR are nested."""
    problem = two_racks()
    rates = solve_rates(problem, ("s2", "s3"), arrivals=True)
    assert best_period(problem, rates) == 5
    assert achievable_rates(problem, designations(problem, rates, 5)).gamma_bps == pytest.approx(6.25)


@given(problems_with_switches(), st.sampled_from([16, 50]))
@settings(max_examples=examples(25), deadline=None)
def test_two_kinds_of_workers_are_always_nested(
    example: tuple[AggregationProblem, tuple[str, ...]], period: int
) -> None:
    problem, programmable = example
    rates = solve_rates(problem, programmable)
    first = problem.workers[: (len(problem.workers) + 1) // 2]
    model = {worker: problem.workers[0] if worker in first else problem.workers[-1] for worker in problem.workers}
    two_kinds = replace(
        rates,
        y_bps={worker: rates.y_bps[model[worker]] for worker in problem.workers},
        x_bps={worker: rates.x_bps[model[worker]] for worker in problem.workers},
    )
    labels = designations(problem, two_kinds, period)
    counts = rounded_counts(destination_shares(problem, two_kinds), period)
    for place, switch in enumerate((*programmable, problem.server_tor)):
        number = problem.topology.switch(switch).number
        union = {
            fragment
            for word in labels.values()
            for fragment, label in enumerate(word)
            if label.switch_number == number
        }
        assert len(union) == counts[:, place].max()


def test_three_pairwise_halves_cannot_be_nested() -> None:
    """Workers 1, 2, 3 use switches {1, 2}, {2, 3}, {1, 3} by halves: three nested pairs of halves would make the
    first half of the fragments equal to the second."""
    topology = network([(0, 1), (0, 2), (0, 3)], [1, 1, 1, 1]).with_links(lambda link: True, rate_bps=10)
    workers = ("h2", "h3", "h4")
    problem = AggregationProblem.of(topology, workers, "h1")
    switches = ("s2", "s3", "s4")
    rates = Rates(
        switches,
        2.0,
        {
            worker: {s: 1.0 for s in switches if s != left_out}
            for worker, left_out in zip(workers, switches, strict=True)
        },
        dict.fromkeys(workers, 0.0),
        dict.fromkeys(switches, 1.0),
        dict.fromkeys(switches, 0.0),
        0.0,
    )
    labels = designations(problem, rates, 8)
    sets = Counter((label.switch_number, fragment) for word in labels.values() for fragment, label in enumerate(word))
    # The program counts 3 * 4 sums; 16 is the least there is: for each fragment two switches.
    assert len(sets) == 16


@pytest.mark.parametrize("period", [4, 10, 64, 100])
def test_fragments_of_a_switch_come_evenly(period: int) -> None:
    problem = two_racks()
    labels = designations(problem, solve_rates(problem, ("s2", "s3"), arrivals=True), period)
    for word in labels.values():
        for number in (2, 3):
            places = [fragment for fragment, label in enumerate(word) if label.switch_number == number]
            for end in range(period):
                seen = sum(place < end for place in places)
                # Van der Corput: off by less than 1 + log2(period) / 2 anywhere.
                assert abs(seen - len(places) * end / period) < 1 + period.bit_length() / 2


def test_straight_packets_and_no_labels_are_one() -> None:
    problem = two_racks()
    none = achievable_rates(problem, dict.fromkeys(problem.workers, ()))
    straight = achievable_rates(problem, dict.fromkeys(problem.workers, (DIRECT,) * 3))
    assert none.gamma_bps == straight.gamma_bps == 10 / 8
    assert none.link_packets["s1", "h1"] == 8


def test_periods_must_fit() -> None:
    problem = two_racks()
    with pytest.raises(UserError, match="at least 1 fragment"):
        designations(problem, solve_rates(problem, ()), 0)
    labels = dict.fromkeys(problem.workers, (DIRECT,) * 3)
    with pytest.raises(UserError, match="same period"):
        achievable_rates(problem, {**labels, "h2": (DIRECT,) * 2})


@pytest.mark.parametrize("method", METHODS)
def test_the_planner(method: str) -> None:
    problem = two_racks()
    planner = LpPlanner(2, method)
    choice = planner.choose(problem.topology, shortest_routes(problem.topology), problem.workers, problem.server)
    assert choice.rates is not None
    assert choice.designations.keys() == set(problem.workers)
    reached = achievable_rates(problem, choice.designations).gamma_bps
    assert 0.98 * choice.rates.gamma_bps <= reached <= choice.rates.gamma_bps * (1 + 1e-6)
    if method == "none":
        assert set(choice.designations.values()) == {()}


def test_the_planner_takes_named_switches_and_a_demand() -> None:
    problem = two_racks()
    asked = problem.topology, shortest_routes(problem.topology), problem.workers, problem.server
    choice = LpPlanner(switches=("s4",)).choose(*asked)
    assert choice.programmable == ("s4",)
    for planner in (LpPlanner(1, demand_bps=5), LpPlanner(switches=("s4",), demand_bps=5)):
        with pytest.raises(UserError, match="cannot be met"):
            planner.choose(*asked)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    ("method", "share"), [("greedy", 0.99), ("every-tor", 0.77), ("highest-degree", 0.99), ("grid", 0.78)]
)
def test_packets_come_near_the_bound_on_a_fat_tree(method: str, share: float) -> None:
    """Of gradients alone nearly all gets through; what their sums take on the way back depends on the switches."""
    topology = fat_tree(4, LinkModel(rate_bps=10_000_000))
    routes = shortest_routes(topology)
    workers, server = choose_hosts(topology, 15)
    choice = LpPlanner(3, method).choose(topology, routes, workers, server)
    problem = AggregationProblem(topology, routes, workers, server)
    bound = solve_rates(problem, choice.programmable).gamma_bps
    gradients = 0.0
    for splits in SPLITS:
        rates = solve_rates(problem, choice.programmable, arrivals=True, splits=splits)
        labels = designations(problem, rates, best_period(problem, rates))
        gradients = max(gradients, achievable_rates(problem, labels).gamma_bps)
    assert 0.94 * bound < gradients <= bound * (1 + 1e-6)
    reached = achievable_rates(problem, choice.designations, returned_sums=True).gamma_bps
    assert share * bound < reached <= bound * (1 + 1e-6)
