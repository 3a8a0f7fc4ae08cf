"""p4lang/tutorials: the exercises' tests with PTF, and each solution in its topology in Mininet."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gradbed.emulation.debian_mininet import PLACE
from tools.conformance.suites import ptf
from tools.conformance.suites.environment import SUPPORT, SuiteEnvironment
from tools.conformance.suites.ptf import last_error
from tools.conformance.suites.result import SuiteResult

TIME_LIMIT_S = 120.0


def groups(folder: Path) -> dict[str, Callable[[SuiteEnvironment], list[SuiteResult]]]:
    """Return `make test` of each exercise that has tests, and `make run` of each that has a solution."""
    exercises = sorted(path.parent for path in folder.glob("exercises/*/Makefile"))
    tests = [exercise for exercise in exercises if (exercise / "runptf.sh").is_file()]
    solved = [exercise for exercise in exercises if list(exercise.glob("solution/*.p4"))]
    made: dict[str, Callable[[SuiteEnvironment], list[SuiteResult]]] = {}
    made |= {f"test/{exercise.name}": partial(_make_test, exercise) for exercise in tests}
    return made | {f"run/{exercise.name}": partial(_make_run, exercise) for exercise in solved}


def _make_test(exercise: Path, env: SuiteEnvironment) -> list[SuiteResult]:
    """Run the tests with PTF."""
    ended = env.run(["make", "test"], cwd=exercise, time_limit_s=TIME_LIMIT_S, more={"PYTHONPATH": str(SUPPORT)})
    return ptf.results_of(ended, f"test/{exercise.name}", TIME_LIMIT_S)


def _make_run(exercise: Path, env: SuiteEnvironment) -> list[SuiteResult]:
    """Start the solution in its topology, which loads the tables, and end it."""
    name = f"run/{exercise.name}"
    for program in exercise.glob("solution/*"):
        (exercise / program.name).write_bytes(program.read_bytes())
    modules = env.scratch / "modules"
    modules.mkdir()
    (modules / "mininet").symlink_to(PLACE.parent)
    paths = os.pathsep.join((str(SUPPORT), str(modules)))
    command = ["sh", "-c", "echo exit | make run"]
    ended = env.run(command, cwd=exercise, time_limit_s=TIME_LIMIT_S, more={"PYTHONPATH": paths})
    return [result_of_run(ended.output, ended.status, name)]


def result_of_run(output: str, status: int | None, name: str) -> SuiteResult:
    """Judge a run by the status of make and by errors in its output, which do not always change the status."""
    if status is None:
        return SuiteResult(name, "stopped", f"after {TIME_LIMIT_S:g} s")
    if status or "Traceback (most recent call last)" in output or "Caught exception" in output:
        return SuiteResult(name, "failed", last_error(output))
    return SuiteResult(name, "passed")
