"""P4 programs as experiments name them, compiled when a network needs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from switch.program_cache import CompiledFiles
    from topo.emulation.network import SwitchKind

P4_SOURCES = Path(__file__).resolve().parent.parent / "p4src"


@dataclass(frozen=True)
class Program:
    """A program and the macros to compile it with. name: what plans call it. routed: the controller fills its table
    ipv4_routes, if it has one."""

    name: str
    source: Path
    macros: Mapping[str, str] = field(default_factory=dict, hash=False)
    routed: bool = True

    @classmethod
    def own(cls, name: str, **macros: object) -> Program:
        """p4src/NAME.p4."""
        return cls(name, P4_SOURCES / f"{name}.p4", {key: str(value) for key, value in macros.items()})

    def compiled(self, switch_kind: SwitchKind = "gradbed") -> CompiledFiles:
        """For BMv2 by the real p4c, where it is installed."""
        from switch.p4c import find_p4c
        from switch.program_cache import compiled_files

        return compiled_files(self.source, self.macros, find_p4c() if switch_kind == "bmv2" else None)


FORWARD = Program.own("forward")
"""What legacy switches run that are P4 switches."""
