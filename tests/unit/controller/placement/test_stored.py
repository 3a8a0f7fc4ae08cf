"""Placements that were solved before come from the cache, and are those that the solver would find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import Routes, shortest_routes
from gradbed.controller.systems.aggregation.placement import lp_planner as place
from gradbed.controller.systems.aggregation.placement import options as stored
from gradbed.controller.systems.aggregation.placement import rate_solver as rates
from gradbed.controller.systems.aggregation.placement.lp_planner import LpPlanner
from gradbed.controller.systems.aggregation.placement.methods import METHODS
from gradbed.controller.systems.aggregation.placement.options import PlannerOptions, StoredPlanner, stored_rates
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rate_solver import solve_rates
from gradbed.topo.generators import fat_tree
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import choose_hosts

OPTIONS = {"maximum": 2, "method": "highest-degree", "switch_capacity_bps": None, "seed": 1, "demand_bps": None}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A planner or a set of switches for each time that something is solved."""
    found: list[Any] = []
    choose, solve = LpPlanner.choose, rates.solve_rates

    def choosing(self: LpPlanner, *asked: Any) -> Any:
        found.append(self)
        return choose(self, *asked)

    def solving(*asked: Any) -> Any:
        found.append(asked[1])
        return solve(*asked)

    monkeypatch.setattr(LpPlanner, "choose", choosing)
    monkeypatch.setattr(rates, "solve_rates", solving)
    return found


def job(rate_bps: int = 10_000_000) -> tuple[Topology, Routes, tuple[str, ...], str]:
    topology = fat_tree(4, LinkModel(rate_bps=rate_bps))
    workers, server = choose_hosts(topology, 5)
    return topology, shortest_routes(topology), tuple(workers), server


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_choice_of_the_cache_is_that_of_the_solver(method: str, solved: list[Any]) -> None:
    options = {**OPTIONS, "method": method}
    expected = LpPlanner(**options).choose(*job())
    del solved[:]
    first, second = (StoredPlanner(options).choose(*job()) for _ in range(2))
    assert len(solved) == 1
    assert first == second == expected
    assert repr(first) == repr(second) == repr(expected)


@pytest.mark.parametrize("server_tor", [False, True])
def test_rates_of_the_cache_are_those_of_the_solver(server_tor: bool, solved: list[Any]) -> None:
    problem = AggregationProblem(*job(), switch_capacity_bps=7e6)
    first, second = (stored_rates(problem, ("a1",) if server_tor else (), server_tor) for _ in range(2))
    assert len(solved) == 1
    assert first == second == solve_rates(problem, first.programmable, server_tor)


def others() -> Iterator[tuple[dict[str, Any], tuple[Topology, Routes, tuple[str, ...], str]]]:
    """What differs in one thing from OPTIONS and job()."""
    topology, routes, workers, server = job()
    changed = {"maximum": 3, "method": "random", "switch_capacity_bps": 5e6, "seed": 2, "demand_bps": 1e5}
    for name, value in changed.items():
        yield {**OPTIONS, name: value}, (topology, routes, workers, server)
    yield {**OPTIONS, "switches": ("a1",)}, (topology, routes, workers, server)
    yield OPTIONS, job(20_000_000)
    yield OPTIONS, (topology, routes, workers[:-1], server)
    yield OPTIONS, (topology, routes, (*workers[:-1], server), workers[-1])
    start, goal = next((a, b) for b, hops in routes.next_hops.items() for a in hops if routes.distance(a, b) == 4)
    nearer = [
        name
        for name in topology.graph[start]
        if name in routes.next_hops and name != goal and routes.distance(name, goal) == 3
    ]
    detour = next(name for name in nearer if name != routes.next_hop(start, goal))
    hops = {**routes.next_hops, goal: {**routes.next_hops[goal], start: detour}}
    yield OPTIONS, (topology, replace(routes, next_hops=hops), workers, server)


def test_what_was_not_asked_before_is_solved(solved: list[Any]) -> None:
    asked = [(OPTIONS, job()), *others()]
    for number, (options, of_job) in enumerate(asked, start=1):
        StoredPlanner(options).choose(*of_job)
        assert len(solved) == number
    for options, of_job in asked:
        assert StoredPlanner(options).choose(*of_job) == LpPlanner(**options).choose(*of_job)


def test_other_rates_are_solved(solved: list[Any]) -> None:
    problem = AggregationProblem(*job())
    for number, (each, switches, server_tor) in enumerate(
        [
            (problem, (), False),
            (problem, (), True),
            (problem, ("a1",), True),
            (replace(problem, switch_capacity_bps=7e6), ("a1",), True),
        ],
        start=1,
    ):
        stored_rates(each, switches, server_tor)
        assert len(solved) == number


def test_another_solver_solves_again(solved: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    digest = stored._solver()
    StoredPlanner(OPTIONS).choose(*job())
    monkeypatch.setattr(stored, "version", lambda package: f"another {package}")
    stored._solver.cache_clear()
    assert stored._solver() != digest
    StoredPlanner(OPTIONS).choose(*job())
    stored._solver.cache_clear()
    assert len(solved) == 2


def test_the_solvers_code_is_all_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[Path] = []
    monkeypatch.setattr(stored, "digest_of", lambda texts, found: files.extend(found) or "")
    stored._solver.__wrapped__()
    names = {path.name for path in files}
    assert {Path(module.__file__ or "").name for module in (place, rates)} < names
    assert {"labels.py", "methods.py", "greedy.py", "problem.py", "rate_program.py"} < names


def test_what_is_refused_is_refused_again(solved: list[Any], cache: Path) -> None:
    planner = PlannerOptions(placement="greedy", programmable=1, demand_mbps=1e6).planner()
    assert planner is not None
    for _ in range(2):
        with pytest.raises(UserError, match="cannot be met"):
            planner.choose(*job())
    assert len(solved) == 2
    assert list((cache / "placements").iterdir()) == []


@pytest.mark.parametrize("left", ["", "{", "null"])
def test_half_a_file_is_solved_again(left: str, solved: list[Any], cache: Path) -> None:
    expected = StoredPlanner(OPTIONS).choose(*job())
    (file,) = (cache / "placements").iterdir()
    file.write_text(left)
    assert [StoredPlanner(OPTIONS).choose(*job()) for _ in range(2)] == [expected] * 2
    assert len(solved) == 2


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_CACHE", "/proc/nowhere")
    with pytest.raises(UserError, match="set GRADBED_CACHE"):
        StoredPlanner(OPTIONS).choose(*job())


def test_an_empty_list_names_no_switches() -> None:
    """A study may say `named: []`: a placement that chooses does so, and explicit says which option it lacks."""
    assert PlannerOptions(placement="greedy", programmable=1, switches=()).planner() is not None
    with pytest.raises(UserError, match=r"explicit needs the names of switches \(--switches; switches.named in a"):
        PlannerOptions(placement="explicit", switches=()).planner()
