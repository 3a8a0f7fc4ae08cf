"""Loads for the programs of two systems: gradients through aggregation.p4, Interests through ndn.p4."""

from __future__ import annotations

import numpy as np

from gradbed.controller.planning.plan import Lpm, MulticastGroup, SwitchPlan, TableEntry
from gradbed.controller.systems.aggregation.job_plan import DEFAULT_SLOTS, SlotRange, aggregation_role
from gradbed.controller.systems.ndn.entries import fib_entry
from gradbed.experiments.programs import P4_SOURCES
from gradbed.formats.aggregation import Flags
from gradbed.formats.tlv import generic
from gradbed.hosts.protocols.frames import as_bytes
from gradbed.hosts.systems.aggregation.gradient_frames import pack_frames
from gradbed.hosts.systems.ndn.packets import ethernet, interest_frame
from tools.bench.switch.packet_io import Cycle
from tools.bench.switch.workloads import (
    FLOW_DESTINATION,
    FLOW_SOURCE,
    FRAME_BYTES,
    NEXT_MAC,
    RIGHT_PORT,
    SWITCH_MAC,
    Workload,
)

# ---- aggregation.p4 ----

LANES = 32
WORKERS = 8
FRAGMENTS = 16
JOB = 1
JOB_GROUP = 0xEF000001  # 239.0.0.1
DESIGNATED = 1
PACKET_NUMBER_OFFSET = 14 + 20 + 8 + 4


def gradients() -> Workload:
    """Return fragments of 8 workers, each fragment followed by the server's ACK, which frees its slot.

    The last switch of the path is the designated one: it sends one sum and the ACK for 9 frames.
    """
    lanes = np.random.default_rng(1).integers(-1000, 1000, (FRAGMENTS, LANES), dtype=np.int32)

    def frames(destination: int, bitmap: int, flags: int) -> list[bytes]:
        packed = pack_frames(
            lanes,
            src_mac=np.frombuffer(NEXT_MAC.to_bytes(6, "big"), np.uint8),
            dst_mac=np.frombuffer(SWITCH_MAC.to_bytes(6, "big"), np.uint8),
            src_ip=FLOW_SOURCE,
            dst_ip=destination,
            job=JOB,
            packet_number=np.arange(FRAGMENTS),
            worker_bitmap=bitmap,
            flags=flags,
            switch_number=DESIGNATED,
            fan_in=WORKERS,
        )
        return [row.tobytes() for row in as_bytes(packed)]

    kinds = [frames(FLOW_DESTINATION, 1 << worker, 0) for worker in range(WORKERS)]
    kinds.append(frames(JOB_GROUP, (1 << WORKERS) - 1, Flags.ACK))
    cycle = tuple(kind[fragment] for fragment in range(FRAGMENTS) for kind in kinds)

    def plan(last: bool) -> SwitchPlan:
        entries = [
            TableEntry(
                table="ipv4_routes",
                match={"hdr.ipv4.dst_addr": Lpm(value=FLOW_DESTINATION, prefix_bits=32)},
                action="forward",
                params={"port": RIGHT_PORT, "dst_mac": NEXT_MAC},
            ),
            TableEntry(
                table="multicast_routes",
                match={"hdr.ipv4.dst_addr": JOB_GROUP},
                action="replicate",
                params={"group": 1},
            ),
        ]
        if last:
            entries.append(aggregation_role(JOB, DESIGNATED, "dynamic", SlotRange(0, DEFAULT_SLOTS)))
        return SwitchPlan.of("aggregation", entries, [MulticastGroup(id=1, ports=(RIGHT_PORT,))])

    return Workload(
        "aggregation.p4",
        P4_SOURCES / "aggregation.p4",
        # Two of nine frames come out: the sum and the ACK.
        Cycle(cycle, 2 * FRAGMENTS, PACKET_NUMBER_OFFSET, FRAGMENTS),
        plan,
        {"LANES": str(LANES)},
    )


# ---- ndn.p4 ----

NAMES = 256
NUMBER = b"\0\0\0\0"
PREFIX = (b"t", b"h1")


def interests() -> Workload:
    """Return Interests for names that were never asked for.

    Each misses the content store, gets a PIT entry, and is forwarded by the FIB.
    """
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
