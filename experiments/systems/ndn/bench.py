"""What benchmarks take of NDN: what `gradbed bench switch` sends, and a large point for `gradbed bench scale`."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.systems.ndn.entries import fib_entry
from gradbed.experiments.bench.scale import ScalePoint
from gradbed.experiments.bench.switch.packet_io import Cycle
from gradbed.experiments.bench.switch.workloads import FRAME_BYTES, NEXT_MAC, RIGHT_PORT, Workload
from gradbed.experiments.programs import P4_SOURCES
from gradbed.formats.tlv import generic
from gradbed.hosts.systems.ndn.packets import ethernet, interest_frame

NAMES = 256
NUMBER = b"\0\0\0\0"
PREFIX = (b"t", b"h1")


def interests() -> Workload:
    """Interests for names that were never asked for: each misses the store, is noted in the PIT, and goes on by the
    FIB."""
    header = ethernet(NEXT_MAC.to_bytes(6, "big"))
    name = (*(generic(part) for part in PREFIX), generic(NUMBER))
    # A lifetime of one tick: rows are free again.
    frame = interest_frame(header, name, 1, 1)
    place = frame.index(generic(NUMBER)) + 2
    frames = tuple(
        (frame[:place] + number.to_bytes(4, "big") + frame[place + 4 :]).ljust(FRAME_BYTES, b"\0")
        for number in range(NAMES)
    )

    def plan(_last: bool) -> SwitchPlan:
        return SwitchPlan.of("ndn", [fib_entry(PREFIX, RIGHT_PORT)])

    return Workload("ndn.p4", P4_SOURCES / "ndn.p4", Cycle(frames, NAMES, place, NAMES), plan, {"LANES": "96"})


# ---- A large point ----


def scale_points() -> Iterator[ScalePoint]:
    """All 128 hosts of a k = 8 fat-tree push their gradients to each other."""
    yield ScalePoint(
        name="ndn-128",
        configuration={
            "topology": {"kind": "fat-tree:8", "link": {"rate_mbps": 10_000, "delay_us": 1, "queue_packets": 1000}},
            "timing": {"receive_coalescing_us": 50},
            "workload": {"kind": "synthetic", "peers": 128, "values": 960, "rounds": 1},
        },
        shrunk={"workload": {"peers": 16}},
    )
