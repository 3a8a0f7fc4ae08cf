"""The exercises with p4c and on BMv2, where they are installed: students may take their solutions there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradbed.cli.commands.exercise import EXERCISES
from gradbed.experiments.exercises.checks import KINDS
from gradbed.experiments.exercises.exercise import Exercise, exercises
from gradbed.experiments.exercises.solution import Solution, copied
from gradbed.switch.compiler import compile_p4
from gradbed.switch.p4lang.bmv2 import find_simple_switch
from gradbed.switch.p4lang.p4c import compile_with_p4c, find_p4c
from gradbed.switch.stf import read_stf
from gradbed.switch.stf.bmv2_target import run_script_on_bmv2

pytestmark = pytest.mark.nightly

KNOWN = exercises(EXERCISES).values()
PACKETS = [(each, check) for each in KNOWN for check in each.checks if check.suffix == ".stf"]

needs_p4c = pytest.mark.skipif(find_p4c() is None, reason="p4c's p4c-bm2-ss is not installed")
needs_bmv2 = pytest.mark.skipif(find_simple_switch() is None, reason="BMv2's simple_switch is not installed")


def by_p4c(program: Path, folder: Path) -> dict[str, Any]:
    p4c = find_p4c()
    assert p4c is not None
    output = folder / f"{program.stem}.json"
    compile_with_p4c(p4c, program, {}, output, folder / f"{program.stem}.p4info.txt")
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def solved(exercise: Exercise, folder: Path) -> Solution:
    exercise.solve(folder / "solved")
    return copied(folder / "solved", exercise.program, folder / "subject")


@needs_p4c
@pytest.mark.parametrize("exercise", KNOWN, ids=lambda each: each.name)
def test_with_p4c_the_starter_compiles_and_the_solution_passes(exercise: Exercise, tmp_path: Path) -> None:
    by_p4c(exercise.folder / "starter" / exercise.program, tmp_path)
    subject = solved(exercise, tmp_path)
    vars(subject)["json"] = by_p4c(subject.program, tmp_path)  # in place of our compiler's
    for check in exercise.checks:
        if check.suffix != ".yaml":
            assert KINDS[check.suffix](subject, check) is None, check.name


@needs_bmv2
@pytest.mark.parametrize("compiler", ["gradbed", pytest.param("p4c", marks=needs_p4c)])
@pytest.mark.parametrize(("exercise", "check"), PACKETS, ids=lambda each: getattr(each, "name", ""))
def test_on_bmv2_the_solution_passes_the_packet_tests(
    exercise: Exercise, check: Path, compiler: str, tmp_path: Path
) -> None:
    subject = solved(exercise, tmp_path)
    program = compile_p4(subject.program).json if compiler == "gradbed" else by_p4c(subject.program, tmp_path)
    outcome = run_script_on_bmv2(program, read_stf(check))
    assert not outcome.failures and not outcome.not_possible
