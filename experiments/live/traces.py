"""What a switch's program does to a packet that the page shows: a switch of its own, with what the plan gives it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError
from gradbed.experiments.live.recording import Recording
from gradbed.experiments.programs import Program

if TYPE_CHECKING:
    from gradbed.switch.state.pipeline import Pipeline

NOTE = (
    "Tables hold what the plan in force says; registers are empty, whatever the switch had counted and kept when the "
    "packet came.\n\n"
)


def trace_of(recording: Recording, switch: str, port: int, frame: str) -> str:
    """As `gradbed p4 trace` prints it. UserError where there is no such switch, or its program has gone."""
    from gradbed.controller.planning.plan import SwitchPlan
    from gradbed.switch.insight.source import SourceMap
    from gradbed.switch.insight.trace.text import trace_text
    from gradbed.switch.insight.trace.trace import build_trace
    from gradbed.switch.insight.traced_switch import TracedSwitch

    told = recording.of("begin")[0]["programs"].get(switch)
    if told is None:
        raise UserError(f"{switch} is no P4 switch of this network")
    pipeline = _pipeline(told["name"], told["source"], tuple(told["macros"].items()))
    program: Any = pipeline.program
    plans = [row["plan"] for row in recording.of("plan") if row["switch"] == switch]
    with TracedSwitch(program) as traced:
        if plans:
            _fill(traced, pipeline, SwitchPlan.model_validate(plans[-1]))
        passage = traced.send(port, bytes.fromhex(frame))
    sources = SourceMap(program.model, [Path(told["source"]).parent])
    return NOTE + trace_text(
        build_trace(program, sources, port, bytes.fromhex(frame), passage.records, passage.outputs), sources
    )


@cache
def _pipeline(name: str, source: str, macros: tuple[tuple[str, str], ...]) -> Pipeline:
    from finsy.proto import p4i
    from google.protobuf import text_format

    from gradbed.switch.insight.instrumented import build_instrumented
    from gradbed.switch.state.pipeline import build_pipeline

    if not Path(source).is_file():
        raise UserError(f"the program {source} is not there any more")
    files = Program(name, Path(source), dict(macros)).compiled()
    info = text_format.Parse(files.p4info.read_text(encoding="utf-8"), p4i.P4Info())
    return build_pipeline(info, files.json.read_bytes(), build_instrumented)


def _fill(traced: Any, pipeline: Pipeline, plan: Any) -> None:
    from gradbed.controller.planning.plan import SwitchPlan
    from gradbed.controller.southbound.p4runtime.codec import batches
    from gradbed.controller.southbound.p4runtime.schema import ProgramSchema
    from gradbed.switch.insight.p4runtime_state import write_updates

    schema = ProgramSchema(pipeline.info)
    steps = batches(schema, SwitchPlan(program=plan.program), schema.normalised(plan))
    updates = [update.message for batch in steps for update in batch]
    write_updates(traced.device, pipeline, updates)
