"""Packets on the page: headers with every field by name, and the trace of a packet through a switch's program."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradbed.hosts as hosts_room
from gradbed.common.errors import UserError
from gradbed.experiments.programs import Program

if TYPE_CHECKING:
    from gradbed.switch.state.pipeline import ForwardingPipeline


# ---- Headers ----


MOST_CHARACTERS = 120
"""Longest text of a value that is shown."""

BINDS = "bind_to_udp("
"""Text of the modules in hosts/ that register Scapy layers."""


def packets_of(captured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a capture as one of its packets, and remove its file."""
    from scapy.error import Scapy_Exception
    from scapy.utils import RawPcapNgReader

    file = Path(captured["file"])
    packets = []
    try:
        with RawPcapNgReader(str(file)) as reader:
            for frame, about in reader:
                time_ns = ((about.tshigh << 32) + about.tslow) * 10**9 // about.tsresol
                sender = bytes(about.ifname or b"").decode().partition("->")[0]
                t_us = captured["scale"] * (time_ns - captured["begin_ns"]) / 1000
                frame = bytes(frame)
                packets.append({"t_us": round(t_us, 3), "from": sender, "length": len(frame), "frame": frame.hex()})
    except (OSError, EOFError, Scapy_Exception):
        pass  # it was not written to its end
    file.unlink(missing_ok=True)
    packets.sort(key=lambda packet: packet["t_us"])
    return {"kind": "packets", "t_us": captured["t_us"], "link": captured["link"], "packets": packets}


def layers_of(frame: bytes) -> list[dict[str, Any]]:
    """Return for each header its name, and its fields as [name, value as text]."""
    _load_layers()
    from scapy.layers.l2 import Ether

    found = []
    packet = Ether(frame)
    while packet and packet.name != "NoPayload":
        fields = [[field.name, _words(packet, field)] for field in packet.fields_desc if field.name in packet.fields]
        found.append({"name": packet.name, "fields": fields})
        packet = packet.payload
    return found


def _words(packet: Any, field: Any) -> str:
    text = str(field.i2repr(packet, packet.getfieldval(field.name)))
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} ... ({len(text)} characters)"


@cache
def _load_layers() -> None:
    """Import the Scapy layers of all systems, which Scapy then finds by their UDP ports."""
    for module in pkgutil.walk_packages(hosts_room.__path__, f"{hosts_room.__name__}."):
        spec = module.module_finder.find_spec(module.name, None)
        origin = None if spec is None else spec.origin
        if origin and origin.endswith(".py") and BINDS in Path(origin).read_text(encoding="utf-8"):
            importlib.import_module(module.name)


# ---- Trace of a packet ----


NOTE = (
    "Tables have the entries of the current plan; registers start empty, not with the values that the switch had "
    "when the packet arrived.\n\n"
)


def trace_of(begin: Mapping[str, Any], plans: Sequence[Mapping[str, Any]], switch: str, port: int, frame: str) -> str:
    """Return the trace of a frame through a switch's program, as `gradbed p4 trace` prints it.

    Args:
        begin: first row of the recording.
        plans: rows of the kind "plan"; the last one of the switch is in force.

    Raises:
        UserError: there is no such P4 switch, or its program's source is gone.
    """
    from gradbed.controller.planning.plan import SwitchPlan
    from gradbed.switch.insight.source import SourceMap
    from gradbed.switch.insight.trace import build_trace
    from gradbed.switch.insight.trace_text import trace_text
    from gradbed.switch.insight.traced_switch import TracedSwitch

    told = begin["programs"].get(switch)
    if told is None:
        raise UserError(f"{switch} is no P4 switch of this network")
    pipeline = _pipeline(told["name"], told["source"], tuple(told["macros"].items()))
    program: Any = pipeline.program
    in_force = [row["plan"] for row in plans if row["switch"] == switch]
    with TracedSwitch(program) as traced:
        if in_force:
            _fill(traced, pipeline, SwitchPlan.model_validate(in_force[-1]))
        passage = traced.send(port, bytes.fromhex(frame))
    sources = SourceMap(program.model, [Path(told["source"]).parent])
    return NOTE + trace_text(
        build_trace(program, sources, port, bytes.fromhex(frame), passage.records, passage.outputs), sources
    )


@cache
def _pipeline(name: str, source: str, macros: tuple[tuple[str, str], ...]) -> ForwardingPipeline:
    from finsy.proto import p4i
    from google.protobuf import text_format

    from gradbed.switch.insight.recorder import build_instrumented
    from gradbed.switch.state.pipeline import build_pipeline

    if not Path(source).is_file():
        raise UserError(f"the program {source} is not there any more")
    files = Program(name, Path(source), dict(macros)).compiled()
    info = text_format.Parse(files.p4info.read_text(encoding="utf-8"), p4i.P4Info())
    return build_pipeline(info, files.json.read_bytes(), build_instrumented)


def _fill(traced: Any, pipeline: ForwardingPipeline, plan: Any) -> None:
    from gradbed.controller.planning.plan import SwitchPlan
    from gradbed.controller.southbound.p4runtime.codec import batches
    from gradbed.controller.southbound.p4runtime.schema import ProgramSchema
    from gradbed.switch.insight.p4runtime_state import write_updates

    schema = ProgramSchema(pipeline.info)
    steps = batches(schema, SwitchPlan(program=plan.program), schema.normalised(plan))
    updates = [update.message for batch in steps for update in batch]
    write_updates(traced.device, pipeline, updates)
