"""The P4 programs of p4src/, compiled."""

from __future__ import annotations

from pathlib import Path

from switch.program_cache import CompiledFiles, compiled_files

P4_SOURCES = Path(__file__).resolve().parent.parent / "p4src"


def aggregation_program(lanes: int) -> CompiledFiles:
    """p4src/aggregation.p4 for gradient packets of `lanes` int32."""
    return compiled_files(P4_SOURCES / "aggregation.p4", {"LANES": str(lanes)})
