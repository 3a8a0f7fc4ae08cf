"""A device that only remembers: what is written to a pipeline between VERIFY_AND_SAVE and COMMIT.

It offers what switch.device.Device offers, so that saved pipelines are written and read by the same code as running
ones. No packet passes through it, so its counters count nothing, and what the server itself remembers of tables and
groups it need not remember as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from switch.device import ActionCall, Device, EntryCall, KeyMatch, MeterCounts, MeterRates, Program, Replica
from switch.p4runtime.pipeline.pipeline import Pipeline

_NO_METER_COUNTS = MeterCounts((0, 0), (0, 0), (0, 0))


class StagingDevice:
    """Implements Device for one pipeline, on behalf of the device that is to run it."""

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        self._device = device
        self._program = pipeline.program
        self._initial_counts = {t.name: len(t.initial_entries) for t in pipeline.tables.values()}
        self._handles = itertools.count(max(self._initial_counts.values(), default=0))
        self._table_counts: dict[tuple[str, int | None], tuple[int, int]] = {}
        self._counters = {c.name: [(0, 0)] * c.size for c in pipeline.counters.values()}
        self._registers = {r.name: [0] * r.size for r in pipeline.registers.values()}

    @property
    def device_id(self) -> int:
        return self._device.device_id

    @property
    def program(self) -> Program | None:
        return self._program

    def load(self, program: Program) -> None:
        raise RuntimeError("a saved pipeline runs once it is committed, on the device itself")

    def restart(self) -> None:
        raise RuntimeError("a saved pipeline is forgotten when the device itself is restarted")

    def clock_ns(self) -> int:
        return self._device.clock_ns()

    def has_port(self, port: int) -> bool:
        return self._device.has_port(port)

    def table_initial_handles(self, table: str) -> Sequence[int]:
        return range(self._initial_counts[table])

    def table_insert(self, table: str, key: Sequence[KeyMatch], call: EntryCall, priority: int) -> int:
        return next(self._handles)

    def table_modify(self, table: str, handle: int, call: EntryCall) -> None:
        pass

    def table_delete(self, table: str, handle: int) -> None:
        pass

    def table_set_default(self, table: str, call: ActionCall | None) -> None:
        pass

    def table_entry_count(self, table: str, handle: int) -> tuple[int, int]:
        return self._table_counts.get((table, handle), (0, 0))

    def table_entry_count_write(self, table: str, handle: int, packets: int, bytes_: int) -> None:
        self._table_counts[table, handle] = packets, bytes_

    def table_default_count(self, table: str) -> tuple[int, int]:
        return self._table_counts.get((table, None), (0, 0))

    def table_default_count_write(self, table: str, packets: int, bytes_: int) -> None:
        self._table_counts[table, None] = packets, bytes_

    def table_last_hit_ns(self, table: str, handle: int) -> int:
        return self._device.clock_ns()

    def profile_member_write(self, profile: str, member: int, call: ActionCall) -> None:
        pass

    def profile_member_delete(self, profile: str, member: int) -> None:
        pass

    def profile_group_write(
        self, profile: str, group: int, members: Sequence[int], watched: Sequence[int | None] = ()
    ) -> None:
        pass

    def profile_group_delete(self, profile: str, group: int) -> None:
        pass

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        pass

    def multicast_group_delete(self, group_id: int) -> None:
        pass

    def clone_session_set(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int = 0, class_of_service: int = 0
    ) -> None:
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

    def meter_write(self, meter: str, index: int, rates: MeterRates | None) -> None:
        pass

    def meter_counts(self, meter: str, index: int) -> MeterCounts:
        return _NO_METER_COUNTS

    def meter_counts_clear(self, meter: str, index: int) -> None:
        pass

    def table_meter_write(self, table: str, handle: int, rates: MeterRates | None) -> None:
        pass

    def table_meter_counts(self, table: str, handle: int) -> MeterCounts:
        return _NO_METER_COUNTS

    def table_meter_counts_clear(self, table: str, handle: int) -> None:
        pass

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        pass

    def packet_out(self, frame: bytes) -> None:
        raise RuntimeError("a saved pipeline takes no packets before it is committed")

    def on_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        pass

    def on_digest(self, callback: Callable[[int, tuple[int, ...]], None] | None) -> None:
        pass
