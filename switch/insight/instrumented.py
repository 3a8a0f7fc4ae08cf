"""A program built so that it reports what it does (switch/codegen/emit/probes.py, switch/runtime/trace.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradbed.common.c_library import shared_library
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen.emit.probes import RecordingProbes, Site
from gradbed.switch.codegen.layout import Layout
from gradbed.switch.codegen.program import BuiltProgram, generate
from gradbed.switch.runtime.library import RUNTIME_DIR


@dataclass(frozen=True)
class InstrumentedProgram(BuiltProgram):
    """A gradbed.switch.device.Program whose records refer to `sites` by number."""

    sites: tuple[Site, ...]
    layout: Layout


def build_instrumented(bmv2_json: Mapping[str, Any]) -> InstrumentedProgram:
    """Generate and compile. Raises as gradbed.switch.codegen.build_program does."""
    model = load_program(bmv2_json)
    probes = RecordingProbes()
    text = generate(model, probes=probes)
    # Packets are few here, and the text is long since its loops are unrolled: compiling is what a person waits for.
    library = shared_library("instrumented", (), text, include_dirs=(RUNTIME_DIR,), optimise="-O0")
    return InstrumentedProgram(dict(bmv2_json), library, model, tuple(probes.sites), Layout(model))
