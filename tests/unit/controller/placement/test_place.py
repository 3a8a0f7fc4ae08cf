"""Placement methods: what they choose, how good it is, and what they say to wrong input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement import greedy as greedy_module
from gradbed.controller.systems.aggregation.placement.lp_planner import place
from gradbed.controller.systems.aggregation.placement.methods import METHODS
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rate_solver import RateSolver
from gradbed.topo.generators import fat_tree, leaf_spine
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.controller.networks import network
from tests.unit.controller.placement.examples import random_problems, two_racks
from tools.bench.placement import random_fabric


def test_greedy_breaks_the_tie_of_two_racks() -> None:
    choice = place(two_racks(), 2)
    assert choice.programmable == ("s2", "s3")
    assert choice.rates.gamma_bps == pytest.approx(6.25, abs=1e-6)


def test_without_looking_ahead_the_room_left_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greedy_module, "LOOK_AHEAD_PROGRAMS", 0)
    assert place(two_racks(), 2).programmable == ("s2", "s3")


@pytest.mark.parametrize("seed", range(6))
def test_greedy_beside_the_optimum(seed: int) -> None:
    topology = random_fabric(seed)
    server, *workers = [host.name for host in topology.hosts]
    solver = RateSolver(AggregationProblem.of(topology, workers, server))
    best = place(solver.problem, 2, "exhaustive", solver=solver).rates.gamma_bps
    exact = place(solver.problem, 2, "milp", solver=solver).rates.gamma_bps
    found = place(solver.problem, 2, "greedy-gradients", solver=solver).rates.gamma_bps
    assert exact == pytest.approx(best, rel=1e-6)
    assert 0.6 * best < found <= best * (1 + 1e-6)


@pytest.mark.thorough
@given(random_problems())
@settings(max_examples=examples(4), deadline=None)
def test_every_method_chooses(problem: AggregationProblem) -> None:
    maximum = min(2, len(problem.topology.switches))
    solver = RateSolver(problem)
    gamma = {}
    for method in METHODS:
        choice = place(problem, maximum, method, solver=solver)
        assert problem.server_tor not in choice.programmable
        assert len(set(choice.programmable)) == len(choice.programmable)
        assert not METHODS[method].is_limited or len(choice.programmable) <= maximum
        gamma[method] = choice.rates.gamma_bps
    best = gamma["exhaustive"] * (1 + 1e-6)
    assert gamma["milp"] == pytest.approx(gamma["exhaustive"], rel=1e-6)
    assert all(
        gamma[method] <= best
        for method in ("greedy", "greedy-gradients", "random", "highest-degree", "server-tor", "none")
    )


def test_greedy_prefixes_are_the_choices_for_fewer_switches() -> None:
    topology = leaf_spine(4, 2, 3, LinkModel(rate_bps=10))
    server, *workers = [host.name for host in topology.hosts]
    solver = RateSolver(AggregationProblem.of(topology, workers, server))
    gammas = [solver.gamma(place(solver.problem, 4, solver=solver).programmable[:size]) for size in range(5)]
    assert gammas == pytest.approx(sorted(gammas))
    assert gammas[4] > 2 * gammas[0]


def test_baselines_on_a_fat_tree() -> None:
    topology = fat_tree(4, LinkModel(rate_bps=10))
    server, *workers = [host.name for host in topology.hosts]
    problem = AggregationProblem.of(topology, workers, server)
    solver = RateSolver(problem)

    def chosen(method: str, seed: int = 0) -> tuple[str, ...]:
        return place(problem, 3, method, seed, solver=solver).programmable

    assert chosen("none") == chosen("server-tor") == ()
    assert chosen("every-tor") == ("e2", "e3", "e4", "e5", "e6", "e7", "e8")
    assert set(chosen("grid")) > set(chosen("every-tor"))
    assert chosen("highest-degree") == ("c1", "c2", "c3")
    assert chosen("random", 1) == chosen("random", 1)
    assert len({chosen("random", seed) for seed in range(8)}) > 1
    none, atp = (place(problem, 0, method).rates.gamma_bps for method in ("none", "server-tor"))
    assert none == pytest.approx(10 / 15)
    assert atp == pytest.approx(1.25)


def test_planning_knows_no_limit_of_workers() -> None:
    """A packet's bitmap has 64 bits; a plan of more workers is still a plan."""
    topology = network([(0, 1)], [1, 100]).with_links(lambda link: True, rate_bps=10)
    problem = AggregationProblem.of(topology, [host.name for host in topology.hosts[1:]], "h1")
    assert place(problem, 1).rates.gamma_bps == pytest.approx(10)


def test_wrong_input() -> None:
    topology = two_racks().topology
    workers = ["h2", "h3"]

    def problem(**changes: object) -> AggregationProblem:
        given = {"topology": topology, "workers": workers, "server": "h1", **changes}
        return AggregationProblem.of(**given)  # type: ignore[arg-type]

    with pytest.raises(UserError, match="no host 'h99'"):
        problem(workers=["h2", "h99"])
    with pytest.raises(UserError, match="s2 is a switch"):
        problem(workers=["s2"])
    with pytest.raises(UserError, match="at least one worker"):
        problem(workers=[])
    with pytest.raises(UserError, match="worker named twice: h2"):
        problem(workers=["h2", "h2"])
    with pytest.raises(UserError, match="h2 cannot be both"):
        problem(server="h2")
    for capacity in (0, -1.0, math.inf, math.nan):
        with pytest.raises(UserError, match="capacity must be a positive number"):
            problem(switch_capacity_bps=capacity)
    with pytest.raises(UserError, match="between h3 and s2 has no rate"):
        problem(topology=topology.with_links([("h3", "s2")], rate_bps=None))
    with pytest.raises(UserError, match="not connected"):
        problem(topology=network([(0, 1)], [1, 2, 1]).with_links(lambda link: True, rate_bps=10))
    for maximum in (-1, 5):
        with pytest.raises(UserError, match=f"must be 0 to 4 .* got {maximum}"):
            place(problem(), maximum)
    with pytest.raises(UserError, match="unknown placement method 'best'"):
        place(problem(), 1, "best")
    with pytest.raises(UserError, match=r"demand of 100 bit/s .* cannot be met"):
        place(problem(), 1, demand_bps=100)
    with pytest.raises(UserError, match="rate must be positive"):
        place(problem(), 1, demand_bps=0)
    with pytest.raises(UserError, match="too many to try"):
        place(AggregationProblem.of(fat_tree(8, LinkModel(rate_bps=10)), ["h2"], "h1"), 20, "exhaustive")


@pytest.mark.parametrize(
    ("names", "message"), [(("s1",), "sums anyway"), (("s2", "s2"), "twice"), (("s9",), "no sw")]
)
def test_wrong_programmable_switches(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        two_racks().check_programmable(names)
