"""P4 programs as experiments name them, compiled when a network needs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gradbed.experiments.configuration.sections import SwitchProgramsSection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradbed.switch.program_cache import CompiledFiles

P4_SOURCES = Path(__file__).resolve().parents[1] / "p4src"

OURS = SwitchProgramsSection()


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

    def compiled(self, by: SwitchProgramsSection = OURS) -> CompiledFiles:
        """UserError where p4c is asked for and is not there."""
        from gradbed.switch.p4lang.p4c import find_p4c, require_p4c
        from gradbed.switch.program_cache import compiled_files

        if by.compiler == "p4c":
            return compiled_files(self.source, self.macros, require_p4c())
        with_p4c = by.compiler is None and by.model == "bmv2"
        return compiled_files(self.source, self.macros, find_p4c() if with_p4c else None)


SwitchProgram = Program | Literal["openflow"]
"""What a switch runs; gradbed.controller.planning.legacy.OPENFLOW: it is a bridge of Open vSwitch."""

FORWARD = Program.own("forward")
"""What legacy switches run that are P4 switches."""
