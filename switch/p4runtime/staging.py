"""A device that only remembers: what is written to a pipeline between VERIFY_AND_SAVE and COMMIT.

It offers what switch.device.Device offers, so that saved pipelines are written and read by the same code as running
ones. No packet passes through it, so its counters count nothing, and what the server itself remembers of tables and
groups it need not remember as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from switch.device import ActionCall, KeyMatch, Program, Replica
from switch.p4runtime.pipeline import Pipeline


class StagingDevice:
    """Implements Device, CloneSessions and InitialEntryHandles for one pipeline."""

    def __init__(self, device_id: int, pipeline: Pipeline) -> None:
        self._device_id = device_id
        self._program = pipeline.program
        self._initial_counts = {t.name: len(t.initial_entries) for t in pipeline.tables.values()}
        self._handles = itertools.count(max(self._initial_counts.values(), default=0))
        self._counters = {c.name: [(0, 0)] * c.size for c in pipeline.counters.values()}
        self._registers = {r.name: [0] * r.size for r in pipeline.registers.values()}

    @property
    def device_id(self) -> int:
        return self._device_id

    @property
    def program(self) -> Program | None:
        return self._program

    def load(self, program: Program) -> None:
        raise RuntimeError("a saved pipeline runs once it is committed, on the device itself")

    def table_initial_handles(self, table: str) -> Sequence[int]:
        return range(self._initial_counts[table])

    def table_insert(self, table: str, key: Sequence[KeyMatch], call: ActionCall, priority: int) -> int:
        return next(self._handles)

    def table_modify(self, table: str, handle: int, call: ActionCall) -> None:
        pass

    def table_delete(self, table: str, handle: int) -> None:
        pass

    def table_set_default(self, table: str, call: ActionCall | None) -> None:
        pass

    def table_entry_count(self, table: str, handle: int) -> tuple[int, int]:
        return 0, 0

    def table_default_count(self, table: str) -> tuple[int, int]:
        return 0, 0

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        pass

    def multicast_group_delete(self, group_id: int) -> None:
        pass

    def clone_session_set(self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int) -> None:
        pass

    def clone_session_delete(self, session_id: int) -> None:
        pass

    def register_read(self, register: str, index: int) -> int:
        return self._registers[register][index]

    def register_read_all(self, register: str) -> list[int]:
        return self._registers[register].copy()

    def register_write(self, register: str, index: int, value: int) -> None:
        self._registers[register][index] = value

    def counter_read(self, counter: str, index: int) -> tuple[int, int]:
        return self._counters[counter][index]

    def counter_read_all(self, counter: str) -> list[tuple[int, int]]:
        return self._counters[counter].copy()

    def counter_write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        self._counters[counter][index] = packets, bytes_

    def packet_out(self, frame: bytes) -> None:
        raise RuntimeError("a saved pipeline takes no packets before it is committed")

    def on_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        pass
