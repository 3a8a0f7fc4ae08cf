"""An instrumented program does what the ordinary one does: same packets, same statistics, same registers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradbed.hosts.systems.aggregation.gradient import gradient_frame
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen import build_program
from gradbed.switch.codegen.emit.probes import RecordingProbes
from gradbed.switch.codegen.program import generate
from gradbed.switch.compiler import compile_p4
from gradbed.switch.insight.recorder import Level, build_instrumented
from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.trace import build_trace
from gradbed.switch.insight.traced_switch import TracedSwitch
from gradbed.switch.stf import Script, parse_stf, read_stf
from gradbed.switch.stf.engine_target import EngineTarget
from gradbed.switch.stf.statements import Expect, NoPacket, Packet
from gradbed.switch.stf.target import CheckFailed
from tests.unit.insight.tracing import HERE, ORDER_COMMANDS, ORDERS, REPOSITORY, ROUTED, ROUTER, ROUTES

P4C_PROGRAMS = HERE.parent / "codegen" / "p4c"
STATEFUL_COMMANDS = "pvs_add option_kinds 0x42\nmc_mgrp_create 6\nmc_node_create 9 2 3\nmc_node_associate 6 0\n"


def send_through_both(bmv2_json: dict[str, Any], script: Script) -> int:
    """Compare after each packet; returns how many there were."""
    plain, instrumented = build_program(bmv2_json), build_instrumented(bmv2_json)
    sources = SourceMap(instrumented.model)
    cpu_port = next(port for port in range(510, -1, -1) if port not in script.ports)
    packets = 0
    with (
        EngineTarget(plain, frozenset(), cpu_port) as ordinary,
        TracedSwitch(instrumented, cpu_port=cpu_port) as traced,
    ):
        for statement in script.statements:
            if isinstance(statement, Packet):
                ordinary.send(statement)
                passage = traced.send(statement.port, statement.frame)
                left = [(port, frame) for port, frame in passage.outputs if port != cpu_port]
                assert left == ordinary.drain()
                assert traced.device.statistics() == ordinary.device.statistics()
                told = build_trace(
                    instrumented, sources, statement.port, statement.frame, passage.records, passage.outputs
                )
                sent = [(s.port, d.frame) for s in told.stages for d in s.decisions if d.kind == "sent"]
                assert sorted(sent) == sorted(passage.outputs)
                packets += 1
            elif not isinstance(statement, (Expect, NoPacket)):
                for target in (ordinary, traced.target):
                    try:
                        target.apply(statement)
                    except CheckFailed:
                        continue
        for register in plain.model.registers:
            assert traced.device.state.registers.read_all(register) == ordinary.device.state.registers.read_all(
                register
            )
        for counter, shape in plain.model.counters.items():
            if shape.table is None:
                assert traced.device.state.counters.read_all(counter) == ordinary.device.state.counters.read_all(
                    counter
                )
    return packets


def script(commands: str, *packets: tuple[int, str]) -> Script:
    lines = [f"packet {port} {frame}" for port, frame in packets]
    return parse_stf("\n".join([commands, *lines]), Path("test.stf"))


def test_orders() -> None:
    packets = [(30, bytes([what, value, 1, 2, 3]).hex()) for what in (*range(20), 255) for value in (0, 3, 222)]
    assert send_through_both(compile_p4(ORDERS).json, script(ORDER_COMMANDS, *packets)) == 63


def test_router() -> None:
    frames = [
        ROUTED,
        ROUTED[:30],
        ROUTED[:22] + b"\x01" + ROUTED[23:],
        ROUTED[:33] + b"\x55",
        ROUTED[:12] + bytes(60),
    ]
    packets = [(1, frame.hex()) for frame in frames]
    assert send_through_both(compile_p4(ROUTER).json, script(ROUTES, *packets)) == 5


def gradient(worker: int, number: int, flags: int, lanes: int) -> str:
    """A gradient frame of job 1 for designated switch 5, two workers."""
    frame = gradient_frame(
        src_mac="02:00:00:00:00:01",
        dst_mac="02:00:00:00:00:aa",
        src_ip=f"10.0.0.{1 + worker}",
        dst_ip="10.0.0.9",
        job=1,
        packet_number=number,
        worker_bitmap=1 << worker,
        lanes=[worker + lane for lane in range(lanes)],
        flags=flags,
        switch_number=5,
        fan_in=2,
    )
    return bytes(frame).hex()


def test_aggregation() -> None:
    """Rolled loops on one side, unrolled ones with probes on the other."""
    commands = (
        "add roles hdr.gradient.job:1"
        " aggregate_hashed(switch_number:5, first_slot:0, slots:64, reclaim_distance:4096)\n"
        "add ipv4_routes hdr.ipv4.dst_addr:0x0a000000/24 forward(port:4, dst_mac:0x0200000000bb)"
    )
    orders = [(0, 7, 0), (1, 7, 0), (0, 8, 0), (0, 8, 0), (0, 8, 2), (1, 9, 0), (0, 9, 0)]
    packets = [(worker + 1, gradient(worker, number, flags, 32)) for worker, number, flags in orders]
    compiled = compile_p4(REPOSITORY / "p4src" / "aggregation.p4", defines={"LANES": "32", "SLOTS": "64"})
    assert send_through_both(compiled.json, script(commands, *packets)) == 7


def test_stateful_program_of_p4c() -> None:
    bmv2_json = json.loads((P4C_PROGRAMS / "stateful.json").read_text())
    packets = [
        (0, "00005040 00006140 01123456 00000005 0000000000000000 72657374"),
        (0, "00005140 4203000102030405060708090a0b 01123456 00000005 0000000000000000"),
        (3, "00005140 02000001 00000005 0000000000000000"),
        (255, "26800000 5140"),
        (0, "00005040 00006040 00007040 00008040"),
    ]
    assert send_through_both(bmv2_json, script(STATEFUL_COMMANDS, *packets)) == 5


def test_points_alone_change_nothing_either() -> None:
    built = build_instrumented(compile_p4(ORDERS).json)
    commands = parse_stf(ORDER_COMMANDS, Path("test.stf"))
    frames = [bytes([what, 1, 2, 3]) for what in range(8)]
    outputs = []
    for level in Level:
        with TracedSwitch(built, level) as switch:
            switch.set_up(commands)
            outputs.append([switch.send(30, frame).outputs for frame in frames])
    assert outputs[0] == outputs[1]
    assert sum(map(len, outputs[0])) > 8


def test_one_recorder_in_a_thread() -> None:
    built = build_instrumented(compile_p4(ORDERS).json)
    with TracedSwitch(built) as switch:
        with pytest.raises(RuntimeError, match="records already"), TracedSwitch(built):
            raise AssertionError
        assert switch.send(30, b"\x01\x00").records


# ---- The C text ----


@pytest.mark.parametrize("source", [ORDERS, ROUTER])
def test_instrumented_text_is_the_ordinary_text_with_probes(source: Path) -> None:
    model = load_program(compile_p4(source).json)
    ordinary = generate(model, roll=False)
    instrumented = generate(model, probes=RecordingProbes())
    assert "gb_trace" not in ordinary
    assert instrumented.count("gb_trace_") > 30
    assert list(without_probes(instrumented)) == list(without_probes(ordinary))


def without_probes(text: str) -> Iterator[str]:
    words = 0
    for line in text.splitlines():
        line = re.sub(r"gb_trace_\w+\((?:[^()]|\([^()]*\))*\); ?", "", line)
        line = re.sub(r"\{ (goto \w+;) \}", r"\1", line)
        if re.match(r"GB_ABI_VERSION, \d+,", line):
            words += 1
            continue
        if line.strip() and line != '#include "trace.h"' and not re.fullmatch(r"if \(.*\) ?", line):
            yield line
    assert words == 1


# ---- p4c's corpus ----


@pytest.mark.skipif("GRADBED_P4C_CORPUS" not in os.environ, reason="GRADBED_P4C_CORPUS names no checkout of p4c")
def test_corpus() -> None:
    """Every tenth v1model program that has an STF file."""
    folder = Path(os.environ["GRADBED_P4C_CORPUS"]) / "testdata" / "p4_16_samples"
    names = [p for p in sorted(folder.glob("*-bmv2.stf")) if "v1model.p4" in p.with_suffix(".p4").read_text()]
    packets = 0
    for path in names[5::10]:
        packets += send_through_both(compile_p4(path.with_suffix(".p4")).json, read_stf(path))
    assert packets >= len(names[5::10])
