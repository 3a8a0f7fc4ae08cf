"""The P4 programs that are fuzzed: all of p4src/, and those of the benchmark."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from switch.program_cache import compiled_files

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*(ROOT / "p4src").glob("*.p4"), *(ROOT / "experiments/bench_switch/programs").glob("*.p4")])
FEW_LANES = {"LANES": "32"}
"""The macro means something to aggregation.p4 alone."""


@functools.cache
def program_json(source: Path, *, few_lanes: bool = True) -> dict[str, Any]:
    files = compiled_files(source, FEW_LANES if few_lanes and source.stem == "aggregation" else {})
    program: dict[str, Any] = json.loads(files.json.read_text())
    return program
