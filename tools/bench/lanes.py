"""How many int32 lanes a gradient packet should have.

For each number of lanes: the time from P4 source to a loaded program, and the cost of summing 8 workers' gradients in
one switch. Fragments of all workers are put into open ports of a switch whose clock is advanced by hand, so that the
time measured is the processor time of the data plane alone. What the kernel takes for each packet on a real port is
given as a figure (KERNEL_US) and added, since it is what more lanes save.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass

import numpy as np

from gradbed.controller.systems.aggregation.job_plan import DEFAULT_SLOTS
from gradbed.experiments.programs import P4_SOURCES
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.formats.lanes import HEADER_BYTES, frame_bytes
from gradbed.hosts.protocols.frames import as_bytes
from gradbed.hosts.systems.aggregation.gradient_frames import pack_frames
from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.engine import Engine
from tools.bench.measure import empty_cache, median_s

LANES = (32, 64, 128, 192, 256, 320, 352)
WORKERS = 8
FRAGMENTS = 256
JOB, SWITCH_NUMBER, DEVICE_ID, SERVER_PORT = 1, 1, 1, 0
SERVER_IP = 0x0A000002

KERNEL_US = 10.0
"""Of one packet through packet sockets and veth, in and out; measured at 7 to 14 us."""


@dataclass(frozen=True)
class Measurement:
    """The costs of one number of lanes."""

    lanes: int
    p4_s: float
    """Time of the P4 compiler."""
    c_s: float
    """Time of the C compiler."""
    packet_us: float
    """Processor time of the data plane for one gradient packet."""

    @property
    def gradient_mb_per_s(self) -> float:
        """Gradient bytes summed per second of processor time, the kernel's share included."""
        return 4 * self.lanes / (self.packet_us + KERNEL_US)


def run_bench_lanes(repetitions: int) -> int:
    """Measure and print a table. Exit status 0."""
    rows = [measure(lanes, repetitions) for lanes in LANES]
    best = max(row.gradient_mb_per_s for row in rows)
    columns: Columns = (
        ("lanes", lambda row: row.lanes),
        ("frame B", lambda row: frame_bytes(row.lanes)),
        ("headers", lambda row: f"{HEADER_BYTES / frame_bytes(row.lanes):.1%}"),
        ("P4 to JSON s", lambda row: f"{row.p4_s:.2f}"),
        ("JSON to code s", lambda row: f"{row.c_s:.2f}"),
        ("switch us/packet", lambda row: f"{row.packet_us:.2f}"),
        ("MB/s", lambda row: f"{row.gradient_mb_per_s:.1f}"),
        ("of best", lambda row: f"{row.gradient_mb_per_s / best:.0%}"),
    )
    title = f"{WORKERS} workers into one switch, medians of {repetitions}; kernel {KERNEL_US:g} us a packet"
    make_console().print(rows_table(title, columns, rows))
    return 0


def measure(lanes: int, repetitions: int) -> Measurement:
    """Measure one number of lanes; all figures are medians."""
    source = P4_SOURCES / "aggregation.p4"
    compiled = compile_p4(source, defines={"LANES": str(lanes)})
    bmv2_json = json.loads(compiled.json_text)
    return Measurement(
        lanes,
        median_s(lambda: compile_p4(source, defines={"LANES": str(lanes)}), repetitions),
        median_s(lambda: _build_afresh(bmv2_json), repetitions),
        1e6 * statistics.median(_packet_s(bmv2_json, lanes) for _ in range(repetitions)),
    )


def _build_afresh(bmv2_json: dict[str, object]) -> None:
    with empty_cache():
        build_program(bmv2_json)


def _packet_s(bmv2_json: dict[str, object], lanes: int) -> float:
    """Return the processor seconds for each gradient packet; all sums have to come out."""
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(DEVICE_ID)
        for port in range(WORKERS + 1):
            engine.add_open_port(DEVICE_ID, port)
        device.load(build_program(bmv2_json))
        device.state.tables.insert(
            "AggregationIngress.forwarding.ipv4_routes",
            [KeyMatch(SERVER_IP, prefix_bits=32)],
            ActionCall("AggregationIngress.forwarding.forward", (SERVER_PORT, 0x020000000001)),
            0,
        )
        device.state.tables.insert(
            "AggregationIngress.aggregation.policy.roles",
            [KeyMatch(JOB)],
            ActionCall(
                "AggregationIngress.aggregation.policy.aggregate_hashed", (SWITCH_NUMBER, 0, DEFAULT_SLOTS, FRAGMENTS)
            ),
            0,
        )
        frames = [_fragments(worker, lanes) for worker in range(WORKERS)]
        for fragment in range(FRAGMENTS):
            for worker in range(WORKERS):
                engine.inject(DEVICE_ID, worker + 1, frames[worker][fragment])
        start = time.process_time()
        engine.advance(1)
        seconds = time.process_time() - start
        sums = len(engine.drain())
        if sums != FRAGMENTS:
            raise RuntimeError(f"{sums} sums of {FRAGMENTS} came out")
    return seconds / (WORKERS * FRAGMENTS)


def _fragments(worker: int, lanes: int) -> list[bytes]:
    values = np.random.default_rng(worker).integers(-(2**27), 2**27, (FRAGMENTS, lanes), dtype=np.int32)
    frames = pack_frames(
        values,
        src_mac=np.frombuffer(bytes([2, 0, 0, 0, 1, worker]), np.uint8),
        dst_mac=np.frombuffer(bytes([2, 0, 0, 0, 0, 1]), np.uint8),
        src_ip=0x0A000100 + worker,
        dst_ip=SERVER_IP,
        job=JOB,
        packet_number=np.arange(FRAGMENTS),
        worker_bitmap=1 << worker,
        flags=0,
        switch_number=SWITCH_NUMBER,
        fan_in=WORKERS,
    )
    return [row.tobytes() for row in as_bytes(frames)]
