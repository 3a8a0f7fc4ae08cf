"""The setup of gradbed p4 trace and coverage: a program, its sources, and the switch's contents."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradbed.cli import options
from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem

if TYPE_CHECKING:
    from gradbed.switch.insight.recorder import InstrumentedProgram
    from gradbed.switch.insight.source import SourceMap
    from gradbed.switch.insight.traced_switch import TracedSwitch
    from gradbed.switch.state.pipeline import ForwardingPipeline

Entries = Annotated[
    list[Path] | None,
    typer.Option(
        "--entries",
        "-e",
        help="Initial state: a file of STF commands (add, setdefault, ...) or a plan as JSON; repeatable.",
    ),
]
SwitchName = Annotated[
    str | None, typer.Option("--switch", help="The switch to take from a plan for several switches.")
]
P4Info = Annotated[Path | None, typer.Option(help="P4Info of a program that is given as BMv2 JSON.")]
SourceFolder = Annotated[
    list[Path] | None, typer.Option("--source", "-s", help="Folder of the P4 source, if it is not the program's own.")
]
CpuPort = Annotated[int, typer.Option(help="The port to the controller.")]
Pcap = Annotated[Path | None, typer.Option("--pcap", help="Capture file (pcap or pcapng) of Ethernet frames.")]


@dataclass(frozen=True)
class Setup:
    """A program that is traced or covered."""

    program: InstrumentedProgram
    """Built so that it reports what packets do."""
    sources: SourceMap
    pipeline: ForwardingPipeline | None
    """The same with P4Info, if there is one."""

    def fill(self, switch: TracedSwitch, entries: Sequence[Path], switch_name: str | None) -> None:
        """Write what the files say into a fresh switch."""
        from gradbed.switch.stf import parse_stf

        texts = {path: read_text(path) for path in entries}
        plans = {path for path, text in texts.items() if text.lstrip().startswith("{")}
        if switch_name is not None and not plans:
            raise UserError(f"--switch {switch_name} goes with a plan for several switches: --entries PLAN.json")
        for path, text in texts.items():
            if path in plans:
                self._write_plan(switch, path, text, switch_name)
            else:
                switch.set_up(parse_stf(text, path))

    def _write_plan(self, switch: TracedSwitch, path: Path, text: str, switch_name: str | None) -> None:
        from gradbed.controller.southbound.p4runtime.schema import ProgramSchema
        from gradbed.switch.insight.p4runtime_state import write_updates

        if self.pipeline is None:
            raise UserError(f"{path}: a plan needs the program's P4Info: give --p4info")
        try:
            schema = ProgramSchema(self.pipeline.info)
            missing = write_updates(switch.device, self.pipeline, _updates(schema, _plan(text, switch_name)))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        if missing:
            raise UserError(f"{path}: {missing[0]}")


def load(
    path: Path,
    include: list[Path] | None,
    define: list[str] | None,
    p4info: Path | None,
    source_folders: list[Path] | None,
) -> Setup:
    """Load a P4 program, which is compiled, or BMv2 JSON."""
    if path.suffix == ".json":
        return _setup(_json(path), _p4info(p4info) if p4info else None, [*(source_folders or []), path.parent], path)
    from gradbed.switch.compiler import compile_p4

    if not path.is_file():
        raise UserError(f"no such P4 program: {path}")
    compiled = compile_p4(path, include_dirs=include or [], defines=options.macros(define))
    folders = [*(source_folders or []), path.parent, *(include or [])]
    return _setup(compiled.json, compiled.p4info, folders, path)


def _setup(bmv2_json: dict[str, Any], info: Any, folders: Sequence[Path], path: Path) -> Setup:
    from gradbed.switch.insight.recorder import build_instrumented
    from gradbed.switch.insight.source import SourceMap

    if info is not None:
        return of_config(info, json.dumps(bmv2_json).encode(), folders, str(path))
    try:
        program = build_instrumented(bmv2_json)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return Setup(program, SourceMap(program.model, folders), None)


def of_config(info: Any, device_config: bytes, folders: Sequence[Path], where: str) -> Setup:
    """Load a program as it is pushed to switches."""
    from gradbed.switch.insight.recorder import InstrumentedProgram, build_instrumented
    from gradbed.switch.insight.source import SourceMap
    from gradbed.switch.p4runtime.status import RequestError
    from gradbed.switch.state.pipeline import build_pipeline

    try:
        pipeline = build_pipeline(info, device_config, build_instrumented)
    except RequestError as error:
        raise UserError(f"{where}: {error}") from None
    program = pipeline.program
    assert isinstance(program, InstrumentedProgram)
    return Setup(program, SourceMap(program.model, folders), pipeline)


def frames(path: Path) -> list[bytes]:
    """Return the frames of a capture file, padded with zeros where they were cut, which a note says."""
    from gradbed.common.capture_files import ETHERNET, read_capture_file

    capture = read_capture_file(path)
    for number, record in enumerate(capture.records, 1):
        if record.link_type != ETHERNET:
            raise UserError(f"{path}: packet {number} has no Ethernet header: its link type is {record.link_type}")
    cut = sum(len(record.data) < record.original_bytes for record in capture.records)
    if cut:
        print(f"note: {cut} packets of {path} were captured in part: zeros stand for the rest", file=sys.stderr)
    if capture.is_cut:
        print(f"note: {path} ends in the middle of packet {len(capture.records) + 1}", file=sys.stderr)
    return [record.data.ljust(record.original_bytes, b"\0") for record in capture.records]


def _plan(text: str, switch_name: str | None) -> Any:
    """Read the SwitchPlan from a JSON text, which may hold the plan of one switch or of several."""
    import pydantic

    from gradbed.controller.planning.plan import Plan, SwitchPlan

    try:
        content = json.loads(text)
        if "switches" not in content:
            return SwitchPlan.model_validate(content)
    except ValueError as error:
        problem = first_problem(error) if isinstance(error, pydantic.ValidationError) else "it is not JSON"
        raise UserError(f"not a plan: {problem}") from None
    switches = Plan.from_json(text).switches
    if switch_name is None and len(switches) == 1:
        return next(iter(switches.values()))
    if switch_name is None or switch_name not in switches:
        raise UserError(f"the plan is for {', '.join(switches)}: say whose part to take with --switch")
    return switches[switch_name]


def _updates(schema: Any, plan: Any) -> list[Any]:
    """Return the updates that fill a fresh switch."""
    from gradbed.controller.planning.plan import SwitchPlan
    from gradbed.controller.southbound.p4runtime.codec import batches

    steps = batches(schema, SwitchPlan(program=plan.program), schema.normalised(plan))
    return [update.message for batch in steps for update in batch]


def read_text(path: Path) -> str:
    """Read a file that the user named. UserError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text(path))
    except ValueError:
        raise UserError(f"{path} is not JSON") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is not BMv2 JSON: it is not an object")
    return content


def _p4info(path: Path) -> Any:
    from finsy.proto import p4i
    from google.protobuf import text_format

    info = p4i.P4Info()
    try:
        text_format.Parse(read_text(path), info)
    except (text_format.ParseError, ValueError):  # or a number that its field cannot take
        raise UserError(f"{path} is not P4Info as text") from None
    return info
