"""The P4 programs that are fuzzed: all of p4src/, those of the benchmark, and those that tests use."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from gradbed.switch.program_cache import compiled_files

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("p4src", "tools/bench/switch/programs", "tests/p4/programs")
SOURCES = [source for folder in FOLDERS for source in sorted((ROOT / folder).glob("*.p4"))]
FEW_LANES = {"LANES": "32"}
"""The macro means something to aggregation.p4 alone."""


@functools.cache
def program_json(source: Path, *, few_lanes: bool = True) -> dict[str, Any]:
    files = compiled_files(source, FEW_LANES if few_lanes and source.stem == "aggregation" else {})
    program: dict[str, Any] = json.loads(files.json.read_text())
    return program
