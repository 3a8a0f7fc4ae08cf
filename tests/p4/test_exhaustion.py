"""Whether all slots of a range are held, wherever it begins and ends: p4src/include/held_slots.p4 against a set."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from types import TracebackType

import numpy as np
import pytest

from experiments.programs import P4_SOURCES
from experiments.systems.aggregation.outcome import EVENT_CELLS, EVENTS
from hosts.systems.aggregation.gradient_format import Flags
from hosts.systems.aggregation.gradient_frames import as_bytes, pack_frames
from switch.codegen import BuiltProgram, build_program
from switch.compiler import compile_p4
from switch.device import ActionCall, KeyMatch
from switch.engine import Engine

LANES = 32
SLOTS = 3 * 4096 + 100
"""More than two words of words of 64."""
HOLDER, ASKER = 1, 2
"""Jobs: the first may hold any slot, by its packet number; the second's range changes."""
OWN_NUMBER = 20
SLOTS_CONTROL = "AggregationIngress.aggregation"


@functools.cache
def program() -> BuiltProgram:
    compiled = compile_p4(P4_SOURCES / "aggregation.p4", defines={"LANES": str(LANES), "SLOTS": str(SLOTS)})
    return build_program(compiled.json)


class Switch:
    """One switch, in process. Use as a context manager."""

    def __init__(self) -> None:
        self._engine = Engine(manual_clock=True)
        self._device = self._engine.add_switch(1)
        self._engine.add_open_port(1, 0)
        self._device.load(program())
        self._entry: int | None = None
        self._number = np.arange(SLOTS)  # of the holder's fragment: a slot takes none again that it has had
        self._give(HOLDER, 0, SLOTS)

    def __enter__(self) -> Switch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()

    def hold(self, *slots: int) -> None:
        self._send(HOLDER, self._number[list(slots)], 0)

    def free(self, *slots: int) -> None:
        self._send(HOLDER, self._number[list(slots)], Flags.ACK)
        self._number[list(slots)] += SLOTS

    def exhausted(self, slots: range, held: int) -> bool:
        """Whether the job with these slots, of which `held` is another's, counts exhaustion."""
        if self._entry is not None:
            self._device.table_delete(f"{SLOTS_CONTROL}.policy.roles", self._entry)
        self._entry = self._give(ASKER, slots.start, len(slots))
        before = self._events("contention"), self._events("exhaustion")
        self._send(ASKER, np.array([held - slots.start]), 0)
        assert self._events("contention") == before[0] + 1
        return self._events("exhaustion") > before[1]

    def _events(self, name: str) -> int:
        cell = ASKER * EVENT_CELLS + EVENTS.index(name)
        packets, _ = self._device.counter_read(f"{SLOTS_CONTROL}.events", cell)
        return packets

    def _give(self, job: int, first_slot: int, slots: int) -> int:
        call = ActionCall(f"{SLOTS_CONTROL}.policy.aggregate_indexed", (OWN_NUMBER, first_slot, slots, 1 << 30))
        return self._device.table_insert(f"{SLOTS_CONTROL}.policy.roles", [KeyMatch(job)], call, 0)

    def _send(self, job: int, numbers: np.ndarray, flags: int) -> None:
        mac = np.zeros(6, np.uint8)
        frames = as_bytes(
            pack_frames(
                np.zeros((len(numbers), LANES), np.int32),
                src_mac=mac,
                dst_mac=mac,
                src_ip=0x0A000101,
                dst_ip=0x0A000002,
                job=job,
                packet_number=numbers.astype(np.uint32),
                worker_bitmap=1,
                flags=flags,
                switch_number=0 if flags else OWN_NUMBER,
                fan_in=2,
            )
        )
        for frame in frames:
            self._engine.inject(1, 0, frame.tobytes())
        self._engine.advance(1)


def ranges() -> Iterator[range]:
    """Beginning and ending in every position to the words of 64 slots, and of 64 words."""
    edges = sorted({edge + d for edge in (0, 64, 128, 4096, 4160, 8192, 12288, SLOTS) for d in (-65, -64, -1, 0, 1)})
    edges = [edge for edge in edges if 0 <= edge <= SLOTS]
    choice = random.Random(1)
    pairs = [(a, b) for i, a in enumerate(edges) for b in edges[i + 1 :]]
    for a, b in choice.sample(pairs, 150):
        yield range(a, b)


@pytest.mark.parametrize("whole", [True, False])
def test_all_slots_of_a_range_are_held(whole: bool) -> None:
    """Each range with its neighbours held or free, then with single slots missing."""
    choice = random.Random(2)
    with Switch() as switch:
        if whole:
            switch.hold(*range(SLOTS))
        for slots in ranges():
            if not whole:
                switch.hold(*slots)
            assert switch.exhausted(slots, choice.choice(slots))
            for missing in {slots[0], slots[-1], choice.choice(slots)} if len(slots) > 1 else ():
                held = slots[0] if slots[0] != missing else slots[-1]
                switch.free(missing)
                assert not switch.exhausted(slots, held)
                switch.hold(missing)
                assert switch.exhausted(slots, held)
            if not whole:
                switch.free(*slots)
