"""One switch with p4src/aggregation.p4 in this process, whose clock moves only when a test says so."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from gradbed.experiments.programs import P4_SOURCES
from gradbed.experiments.systems.aggregation.metrics import EVENT_CELLS, EVENTS
from gradbed.hosts.protocols.frames import as_bytes
from gradbed.hosts.systems.aggregation.gradient_frames import pack_frames
from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.engine import Engine

LANES = 32
OWN_NUMBER = 20
CONTROL = "AggregationIngress.aggregation"


@functools.cache
def _program(slots: int) -> BuiltProgram:
    defines = {"LANES": str(LANES), "SLOTS": str(slots)}
    return build_program(compile_p4(P4_SOURCES / "aggregation.p4", defines=defines).json)


class StillSwitch:
    """Use as a context manager."""

    def __init__(self, slots: int) -> None:
        self._engine = Engine(manual_clock=True)
        self._device = self._engine.add_switch(1)
        self._engine.add_open_port(1, 0)
        self._device.load(_program(slots))
        self._roles: dict[int, int] = {}

    def __enter__(self) -> StillSwitch:
        return self

    def __exit__(self, *exception: object) -> None:
        self._engine.close()

    def give(self, job: int, first_slot: int, slots: int) -> None:
        """The job's packet numbers take these slots in turn; what it had before is another's now."""
        self._set_role(job, "aggregate_indexed", first_slot, slots)

    def share(self, job: int, first_slot: int, slots: int) -> None:
        """A hash of job and packet number selects one of these slots."""
        self._set_role(job, "aggregate_hashed", first_slot, slots)

    def _set_role(self, job: int, action: str, first_slot: int, slots: int) -> None:
        if job in self._roles:
            self._device.state.tables.delete(f"{CONTROL}.policy.roles", self._roles[job])
        call = ActionCall(f"{CONTROL}.policy.{action}", (OWN_NUMBER, first_slot, slots, 1 << 30))
        self._roles[job] = self._device.state.tables.insert(f"{CONTROL}.policy.roles", [KeyMatch(job)], call, 0)

    def send(self, job: int, numbers: Iterable[int], flags: int = 0, worker: int = 0) -> None:
        """One packet for each number; a sum waits for two workers."""
        packet_number = np.fromiter(numbers, np.uint32)
        frames = pack_frames(
            np.zeros((len(packet_number), LANES), np.int32),
            src_mac=np.zeros(6, np.uint8),
            dst_mac=np.zeros(6, np.uint8),
            src_ip=0x0A000101,
            dst_ip=0x0A000002,
            job=job,
            packet_number=packet_number,
            worker_bitmap=1 << worker,
            flags=flags,
            switch_number=OWN_NUMBER,
            fan_in=2,
        )
        for frame in as_bytes(frames):
            self._engine.inject(1, 0, frame.tobytes())
        self._engine.advance(0)

    def wait(self, microseconds: int) -> None:
        self._engine.advance(microseconds)

    def count(self, job: int, event: str) -> int:
        packets, _ = self._device.state.counters.read(f"{CONTROL}.events", job * EVENT_CELLS + EVENTS.index(event))
        return packets
