"""A device in memory that follows switch.device.Device to the letter and remembers what was asked of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from switch.device import ActionCall, KeyMatch, Program, Replica


@dataclass(frozen=True)
class FakeProgram:
    json: dict[str, Any]
    library: Path = Path("/nonexistent.so")


@dataclass
class Table:
    entries: dict[int, tuple[tuple[KeyMatch, ...], ActionCall, int]] = field(default_factory=dict)
    default: ActionCall | None = None
    counts: dict[int, tuple[int, int]] = field(default_factory=dict)
    default_count: tuple[int, int] = (0, 0)


class FakeDevice:
    """`loads` counts the programs that were loaded; `refuse_load` makes the next one fail."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._program: Program | None = None
        self.loads = 0
        self.refuse_load: Exception | None = None
        self.sent: list[bytes] = []
        self.packet_in: Callable[[bytes], None] | None = None
        # Groups and sessions outlive programs here, as they do in the engine.
        self.groups: dict[int, tuple[Replica, ...]] = {}
        self._clear()

    def _clear(self) -> None:
        self._handles = itertools.count(100)
        self.tables: dict[str, Table] = {}
        self.registers: dict[str, list[int]] = {}
        self.counters: dict[str, list[tuple[int, int]]] = {}

    @property
    def device_id(self) -> int:
        return self._device_id

    @property
    def program(self) -> Program | None:
        return self._program

    def load(self, program: Program) -> None:
        if self.refuse_load is not None:
            error, self.refuse_load = self.refuse_load, None
            raise error
        self.loads += 1
        self._program = program
        self._clear()
        for pipeline in program.json["pipelines"]:
            for table in pipeline["tables"]:
                self.tables[table["name"]] = Table()
        for register in program.json["register_arrays"]:
            self.registers[register["name"]] = [0] * register["size"]
        for counter in program.json["counter_arrays"]:
            if not counter.get("is_direct"):
                self.counters[counter["name"]] = [(0, 0)] * counter["size"]

    def table_insert(self, table: str, key: Sequence[KeyMatch], call: ActionCall, priority: int) -> int:
        handle = next(self._handles)
        self.tables[table].entries[handle] = (tuple(key), call, priority)
        self.tables[table].counts[handle] = (0, 0)
        return handle

    def table_modify(self, table: str, handle: int, call: ActionCall) -> None:
        key, _, priority = self.tables[table].entries[handle]
        self.tables[table].entries[handle] = (key, call, priority)

    def table_delete(self, table: str, handle: int) -> None:
        del self.tables[table].entries[handle]

    def table_set_default(self, table: str, call: ActionCall | None) -> None:
        self.tables[table].default = call

    def table_entry_count(self, table: str, handle: int) -> tuple[int, int]:
        return self.tables[table].counts[handle]

    def table_default_count(self, table: str) -> tuple[int, int]:
        return self.tables[table].default_count

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        self.groups[group_id] = tuple(replicas)

    def multicast_group_delete(self, group_id: int) -> None:
        del self.groups[group_id]

    def register_read(self, register: str, index: int) -> int:
        return self.registers[register][index]

    def register_read_all(self, register: str) -> list[int]:
        return list(self.registers[register])

    def register_write(self, register: str, index: int, value: int) -> None:
        self.registers[register][index] = value

    def counter_read(self, counter: str, index: int) -> tuple[int, int]:
        return self.counters[counter][index]

    def counter_read_all(self, counter: str) -> list[tuple[int, int]]:
        return list(self.counters[counter])

    def counter_write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        self.counters[counter][index] = (packets, bytes_)

    def packet_out(self, frame: bytes) -> None:
        self.sent.append(frame)

    def on_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        self.packet_in = callback


class CapableDevice(FakeDevice):
    """Also offers what switch.p4runtime.capabilities names."""

    def __init__(self, device_id: int) -> None:
        super().__init__(device_id)
        self.sessions: dict[int, tuple[tuple[Replica, ...], int]] = {}

    def load(self, program: Program) -> None:
        super().load(program)
        for pipeline in program.json["pipelines"]:
            for table in pipeline["tables"]:
                for handle in range(len(table.get("entries", ()))):
                    self.tables[table["name"]].entries[handle] = ((), ActionCall("initial"), 0)
                    self.tables[table["name"]].counts[handle] = (0, 0)

    def table_initial_handles(self, table: str) -> Sequence[int]:
        return [h for h in self.tables[table].entries if h < 100]

    def clone_session_set(self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int) -> None:
        self.sessions[session_id] = (tuple(replicas), truncate_bytes)

    def clone_session_delete(self, session_id: int) -> None:
        del self.sessions[session_id]
