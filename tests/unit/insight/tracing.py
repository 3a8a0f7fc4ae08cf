"""Programs built for tracing, and traces of single packets."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from gradbed.switch.compiler import compile_p4
from gradbed.switch.insight.recorder import InstrumentedProgram, build_instrumented
from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.trace import build_trace
from gradbed.switch.insight.trace_events import Trace
from gradbed.switch.insight.traced_switch import TracedSwitch
from gradbed.switch.stf import parse_stf

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent.parent
ORDERS = HERE / "programs" / "orders.p4"
ROUTER = REPOSITORY / "p4src" / "router.p4"

# What each order does; the ports are those of the actions in orders.p4.
ORDER_COMMANDS = """
add orders hdr.order.what:1 send(port:1)
add orders hdr.order.what:2 spread(group:12)
add orders hdr.order.what:3 mirror(port:4)
add orders hdr.order.what:4 again()
add orders hdr.order.what:5 remember()
add orders hdr.order.what:16 annotate()
add orders hdr.order.what:6 send(port:6)
add orders hdr.order.what:7 send(port:7)
add limits 10 hdr.order.value:200..250 meta.rounds:0 drop()
mc_mgrp_create 12
mc_node_create 3 8 9
mc_node_associate 12 0
mirroring_add 7 10
mirroring_add 8 11
"""

ROUTES = """
add routes hdr.ipv4.dst_addr:0x0a000100/24 set_next_hop(next_hop:1)
add routes hdr.ipv4.dst_addr:0x0a000000/8 set_next_hop(next_hop:2)
add next_hops meta.next_hop:1 forward(port:3, src_mac:0x020000000001, dst_mac:0x020000000002)
"""
# To 10.0.1.7, TTL 64, checksum right.
ROUTED = bytes.fromhex(
    "020000000001 020000000002 0800 45000028 00010000 401165bc 0a000002 0a000107 03e80035 00140000 7477656c7665"
)


@functools.cache
def program(source: Path, *defines: tuple[str, str]) -> tuple[InstrumentedProgram, SourceMap]:
    built = build_instrumented(compile_p4(source, defines=dict(defines)).json)
    return built, SourceMap(built.model, [source.parent])


@functools.cache
def compiled_by_p4c(name: str) -> InstrumentedProgram:
    """Of tests/unit/codegen/p4c."""
    return build_instrumented(json.loads((HERE.parent / "codegen" / "p4c" / f"{name}.json").read_text()))


def trace(source: Path, commands: str, frame: bytes, port: int = 0) -> Trace:
    """One packet through a fresh switch."""
    built, sources = program(source)
    with TracedSwitch(built) as switch:
        switch.set_up(parse_stf(commands, Path("commands.stf")))
        passage = switch.send(port, frame)
    return build_trace(built, sources, port, frame, passage.records, passage.outputs)


def order(what: int, value: int = 0, rest: str = "") -> Trace:
    return trace(ORDERS, ORDER_COMMANDS, bytes([what, value]) + bytes.fromhex(rest), port=30)


def path(of: Trace) -> list[tuple[str, str, int]]:
    """(stage, cause, port) of each stage."""
    return [(stage.name, stage.cause, stage.port) for stage in of.stages]


def place(source: Path, text: str, occurrence: int = 1) -> str:
    """FILE:LINE of the first line, or the so-manieth, that has this text."""
    lines = enumerate(source.read_text().splitlines(), start=1)
    return f"{source.name}:{[number for number, line in lines if text in line][occurrence - 1]}"
