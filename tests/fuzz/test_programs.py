"""Random P4 programs: our compiler and switch do what an interpreter of the specification does.

`python -m tests.fuzz.programs` runs as many as one likes, makes what differs smaller, and tells which constructs of
the language there were.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import ROOT
from tests.fuzz.programs.case import FRAMES, Case, Finding, case_of, judge
from tests.fuzz.programs.constructs import CONSTRUCTS
from tests.fuzz.programs.page import page, programs_by_construct
from tests.fuzz.programs.search import Coverage, Outcome, search
from tests.fuzz.programs.shrinking import shrink

SEEDS = 10
NIGHTLY_SEEDS = 1000


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_program(seed: int, tmp_path: Path) -> None:
    case, finding = judge(lambda: case_of(seed, tmp_path))
    assert finding is None, finding.text
    assert case is not None
    assert len(case.frames) == 40


@pytest.mark.nightly
def test_a_thousand_random_programs(tmp_path: Path) -> None:
    """Other ones than above; every construct of the generator is among them."""
    coverage = Coverage()
    for outcome in search(range(SEEDS, SEEDS + NIGHTLY_SEEDS), tmp_path):
        assert outcome.finding is None, f"seed {outcome.seed}: {outcome.finding.text}"
        coverage.see(outcome)
    assert coverage.missing == []


def test_a_page_tells_what_was_counted() -> None:
    coverage = Coverage()
    coverage.see(Outcome(1, None, {"|+| of bit": 7, "enum": None}))
    coverage.see(Outcome(2, None, {"|+| of bit": 5}))
    text = page(coverage, "command", 2, 40, 4, 0)
    assert "| `\\|+\\| of bit` | 2 | 12 |" in text
    assert "| `enum` | 1 | - |" in text
    counted = programs_by_construct(text)
    assert (counted["|+| of bit"], counted["enum"], counted["exit"]) == (2, 1, 0)


def test_the_documented_page_is_of_a_thousand_programs_of_this_generator() -> None:
    text = (ROOT / "docs" / "random-programs.md").read_text(encoding="utf-8")
    assert f"{NIGHTLY_SEEDS:,} programs of {FRAMES} frames each, without a difference" in text
    counted = programs_by_construct(text)
    assert tuple(counted) == CONSTRUCTS, (
        "docs/random-programs.md: write it again (python -m tests.fuzz.programs --page)"
    )
    assert min(counted.values()) > 0


def test_a_seed_names_a_case(tmp_path: Path) -> None:
    assert case_of(5, tmp_path) == case_of(5, tmp_path)
    assert case_of(5, tmp_path).program != case_of(6, tmp_path).program


@pytest.mark.thorough
def test_shrinking_keeps_what_was_found(tmp_path: Path) -> None:
    """Of a program with any exclusive or in it little else is left."""

    def has_one(make: Callable[[], Case]) -> tuple[Case | None, Finding | None]:
        case = make()
        line = next(
            (line for line in case.program.text.splitlines() if " ^ " in line and "meta.m1" not in line), None
        )
        return case, None if line is None else Finding("found", line, frame=3)

    found = shrink(1, tmp_path, 80, has_one)
    assert found is not None
    case, finding = found
    assert case is not None
    assert " ^ " in finding.text
    assert len(case.frames) == 1
    whole = case_of(1, tmp_path).program.text
    assert len(case.program.text) < len(whole) / 2
