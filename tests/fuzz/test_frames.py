"""Random and mutated frames to every program of p4src/: no finding of the sanitizers, no stall, no leak.

What bounds a frame's time is the number of events that it causes; a parser that goes round in circles has its own
bound (GB_MAX_PARSER_STEPS).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gradbed.common.c_library import compiler
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen.program import generate
from gradbed.switch.runtime.library import RUNTIME_DIR
from tests.fuzz.sanitized import build_driver, run_driver
from tests.fuzz.sources import SOURCES, program_json
from tests.sanitizers import FLAGS, STRICT

RUNS, FRAMES = 8, 4_000
NIGHTLY_FRAMES = 1_000_000
NIGHTLY_RUNS = 20


@pytest.mark.thorough
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_some_frames(source: Path, tmp_path: Path) -> None:
    program = program_json(source)
    driver = build_driver(program, tmp_path)
    # Frames must not merely be dropped at the door, also by programs that want a MAC address of their own.
    assert sum(run_driver(driver, program, seed, FRAMES) for seed in range(RUNS)) > RUNS * FRAMES // 1000


@pytest.mark.commit_cases(6)
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_compiler_warns_of_nothing(source: Path, tmp_path: Path) -> None:
    """But of variables and labels that generated code does not use."""
    file = tmp_path / "program.c"
    file.write_text(generate(load_program(program_json(source))))
    command = [compiler()[0], *FLAGS, *STRICT, "-Wno-unused", "-fsyntax-only", f"-I{RUNTIME_DIR}", str(file)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_million_frames(source: Path, tmp_path: Path) -> None:
    """Each run has other table entries and other frames to start from."""
    program = program_json(source, few_lanes=False)
    driver = build_driver(program, tmp_path)
    for seed in range(NIGHTLY_RUNS):
        entries = 40 if seed % 2 else 5_000  # large tables are searched otherwise than small ones
        run_driver(driver, program, seed, NIGHTLY_FRAMES // NIGHTLY_RUNS, entries=entries)
