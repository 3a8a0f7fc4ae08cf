"""What a test bed's switches are to run, as the controller pushes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradbed.controller.southbound.p4runtime.pipeline import Pipeline
from gradbed.experiments.programs import Program

if TYPE_CHECKING:
    from gradbed.experiments.configuration.sections import SwitchProgramsSection
    from gradbed.experiments.setup import NetworkSetup


def pipelines_of(setup: NetworkSetup, by: SwitchProgramsSection) -> dict[str, Pipeline]:
    """By the names of programs; compiles them. by: what compiles."""
    found = {}
    for program in setup.switches.values():
        if isinstance(program, Program) and program.name not in found:
            files = program.compiled(by)
            found[program.name] = Pipeline.load(program.name, files.json, files.p4info, program.routed)
    return found
