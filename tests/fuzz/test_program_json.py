"""Damaged copies of our compiled programs: refused in one line, or code that reaches outside of nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen import MalformedProgram
from gradbed.switch.codegen.program import generate
from tests.fuzz.sanitized import build_driver, run_driver
from tests.fuzz.sources import SOURCES, program_json
from tests.unit.codegen.test_malformed import damage, places

COPIES = 40
NIGHTLY_COPIES = 500
NIGHTLY_BUILDS = 25
NIGHTLY_FRAMES = 3_000


def accepted_copies(program: dict[str, Any], seed: int, copies: int) -> Iterator[dict[str, Any]]:
    """Damage the program once to three times; yield those copies that the loader takes, unless nothing changed."""
    rng = random.Random(seed)
    where = places(program)
    for _ in range(copies):
        damaged = program
        for _ in range(rng.randint(1, 3)):
            try:
                damaged = damage(damaged, rng, where)
            except (KeyError, IndexError, TypeError):
                break  # an earlier change took the place away
        try:
            generate(load_program(damaged))
        except MalformedProgram as error:
            assert str(error) and "\n" not in str(error)
        else:
            if damaged != program:
                yield damaged


# The largest takes as long as all others together.
@pytest.mark.commit_cases(4)
@pytest.mark.parametrize(
    "source",
    [pytest.param(path, marks=[pytest.mark.nightly] if path.stem == "ndn" else [], id=path.stem) for path in SOURCES],
)
def test_damaged_programs(source: Path) -> None:
    accepted = list(accepted_copies(program_json(source), 1, COPIES))
    assert len(accepted) < COPIES


@pytest.mark.nightly
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_frames_through_damaged_programs(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path))  # nobody needs them again
    original = program_json(source)
    for number, program in enumerate(accepted_copies(original, 2, NIGHTLY_COPIES)):
        if number % (NIGHTLY_COPIES // NIGHTLY_BUILDS // 2) == 0:
            driver = build_driver(program, tmp_path)
            run_driver(driver, program, number, NIGHTLY_FRAMES, parser_of=original)
