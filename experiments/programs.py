"""The P4 programs of p4src/, compiled."""

from __future__ import annotations

from pathlib import Path

from controller.systems.aggregation.slots import DEFAULT_SLOTS
from switch.p4c import find_p4c
from switch.program_cache import CompiledFiles, compiled_files
from topo.network import SwitchKind

P4_SOURCES = Path(__file__).resolve().parent.parent / "p4src"


def aggregation_program(lanes: int, switch_kind: SwitchKind, slots: int = DEFAULT_SLOTS) -> CompiledFiles:
    """p4src/aggregation.p4 for gradient packets of `lanes` int32; for BMv2 by the real p4c, where it is installed."""
    macros = {"LANES": str(lanes), "SLOTS": str(slots)}
    return compiled_files(P4_SOURCES / "aggregation.p4", macros, _compiler(switch_kind))


def forward_program(switch_kind: SwitchKind) -> CompiledFiles:
    """p4src/forward.p4, which legacy switches run where they are not OpenFlow switches."""
    return compiled_files(P4_SOURCES / "forward.p4", {}, _compiler(switch_kind))


def _compiler(switch_kind: SwitchKind) -> str | None:
    return find_p4c() if switch_kind == "bmv2" else None
