"""Which packets p4src/aggregation.p4 marks when they wait in a queue (RFC 3168), with a clock advanced by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.programs import P4_SOURCES
from formats.datagram import CE, ECN_MASK, ECT_0
from formats.lanes import frame_bytes
from hosts.protocols.datagram_frames import as_bytes
from hosts.systems.aggregation.gradient_frames import pack_frames, parse_frames
from switch.codegen import build_program
from switch.compiler import compile_p4
from switch.device import ActionCall, KeyMatch
from switch.engine import Engine
from topo.link import LinkModel

LANES = 32
FRAMES = 10
SWITCH, IN_PORT, OUT_PORT = 1, 0, 1


def marks_of_a_burst(threshold: int | None, tos: int) -> list[bool]:
    """Whether each of FRAMES frames that come at once leaves marked, by a port that sends one at a time."""
    program = build_program(compile_p4(P4_SOURCES / "aggregation.p4", defines={"LANES": str(LANES)}).json)
    frames = pack_frames(
        np.zeros((FRAMES, LANES), np.int32),
        src_mac=np.zeros(6, np.uint8),
        dst_mac=np.zeros(6, np.uint8),
        src_ip=1,
        dst_ip=2,
        job=1,
        packet_number=np.arange(FRAMES),
        worker_bitmap=1,
        tos=tos,
    )
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(SWITCH)
        engine.add_open_port(SWITCH, IN_PORT)
        engine.add_open_port(SWITCH, OUT_PORT, LinkModel(rate_bps=10_000_000))
        device.load(program)
        device.state.tables.insert(
            "AggregationIngress.forwarding.ipv4_routes",
            [KeyMatch(0, prefix_bits=0)],
            ActionCall("AggregationIngress.forwarding.forward", (OUT_PORT, 1)),
            0,
        )
        if threshold is not None:
            device.state.tables.insert(
                "AggregationEgress.congestion.congestion_thresholds",
                [KeyMatch(OUT_PORT)],
                ActionCall("AggregationEgress.congestion.mark_above", (threshold,)),
                0,
            )
        for frame in as_bytes(frames):
            engine.inject(SWITCH, IN_PORT, frame.tobytes())
        engine.advance(100_000)
        out = np.array([np.frombuffer(frame, np.uint8) for _, _, frame in engine.drain()])
    parsed = parse_frames(out, np.full(len(out), frame_bytes(LANES)), LANES)
    assert parsed.with_lanes["packet_number"].tolist() == list(range(FRAMES))
    marked: list[bool] = (parsed.with_lanes["tos"] & ECN_MASK == CE).tolist()
    return marked


@pytest.mark.parametrize("threshold", [1, 3, 8])
def test_packets_that_find_a_long_queue_are_marked(threshold: int) -> None:
    """The first is sent at once and the second waits alone, so packet n finds n - 1 others."""
    assert marks_of_a_burst(threshold, ECT_0) == [n - 1 >= threshold for n in range(FRAMES)]


@pytest.mark.parametrize(("threshold", "tos"), [(None, ECT_0), (FRAMES, ECT_0), (0, 0)])
def test_nobody_is_marked_without_threshold_or_ect(threshold: int | None, tos: int) -> None:
    assert marks_of_a_burst(threshold, tos) == [False] * FRAMES
