"""The recordings in tests/p4/recorded/bmv2, and which of their programs have changed since."""

from __future__ import annotations

import functools
from pathlib import Path

from tools.recordings import Recording, read_recording

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).parent / "recorded"
PATHS = {path.name.removesuffix(".json.gz"): path for path in sorted((RECORDED / "bmv2").glob("*.json.gz"))}


@functools.cache
def recording(name: str) -> Recording:
    return read_recording(PATHS[name])


def changed_programs(root: Path = ROOT) -> dict[str, list[str]]:
    """By program the files that differ from those of a recording."""
    changed: dict[str, set[str]] = {}
    for name in PATHS:
        if names := recording(name).changed_sources(root):
            changed.setdefault(recording(name).program, set()).update(names)
    return {program: sorted(names) for program, names in sorted(changed.items())}
