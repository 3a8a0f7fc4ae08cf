"""A device in memory that follows switch.device.Device to the letter and remembers what was asked of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from switch.bmv2_json.load import load_program
from switch.bmv2_json.model import ProgramModel
from switch.device import (
    ActionCall,
    EntryCall,
    GroupReference,
    KeyMatch,
    MemberReference,
    MeterCounts,
    MeterRates,
    Program,
    Replica,
    StillReferenced,
)


@dataclass(frozen=True)
class FakeProgram:
    json: dict[str, Any]
    library: Path = Path("/nonexistent.so")

    @cached_property
    def model(self) -> ProgramModel:
        return load_program(self.json)


@dataclass
class Table:
    entries: dict[int, tuple[tuple[KeyMatch, ...], EntryCall, int]] = field(default_factory=dict)
    default: ActionCall | None = None
    counts: dict[int, tuple[int, int]] = field(default_factory=dict)
    default_count: tuple[int, int] = (0, 0)
    meters: dict[int, MeterRates] = field(default_factory=dict)
    meter_counts: dict[int, MeterCounts] = field(default_factory=dict)
    last_hits_ns: dict[int, int] = field(default_factory=dict)


@dataclass
class Profile:
    members: dict[int, ActionCall] = field(default_factory=dict)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    watched: dict[int, tuple[int | None, ...]] = field(default_factory=dict)
    """Of groups that watch ports."""


NO_METER_COUNTS = MeterCounts((0, 0), (0, 0), (0, 0))
PORTS = 16


class FakeDevice:
    """`loads` counts the programs that were loaded; `refuse_load` makes the next one fail."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._program: Program | None = None
        self.loads = 0
        self.refuse_load: Exception | None = None
        self.sent: list[bytes] = []
        self.packet_in: Callable[[bytes], None] | None = None
        self.digest: Callable[[int, tuple[int, ...]], None] | None = None
        self.now_ns = 0
        # Groups and sessions outlive programs here, as devices may have it.
        self.groups: dict[int, tuple[Replica, ...]] = {}
        self.sessions: dict[int, tuple[tuple[Replica, ...], int, int]] = {}
        self._clear()

    def _clear(self) -> None:
        self._handles = itertools.count(100)
        self.tables: dict[str, Table] = {}
        self.registers: dict[str, list[int]] = {}
        self.counters: dict[str, list[tuple[int, int]]] = {}
        self.profiles: dict[str, Profile] = {}
        self.meters: dict[tuple[str, int], MeterRates] = {}
        self.meter_marks: dict[tuple[str, int], MeterCounts] = {}
        self.value_sets: dict[str, list[tuple[int, int]]] = {}

    @property
    def device_id(self) -> int:
        return self._device_id

    @property
    def program(self) -> Program | None:
        return self._program

    def restart(self) -> None:
        self._program = None
        self._clear()

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
                for handle in range(len(table.get("entries", ()))):
                    self._insert(table["name"], handle, ((), ActionCall("initial"), 0))
            for profile in pipeline.get("action_profiles", ()):
                self.profiles[profile["name"]] = Profile()
        for register in program.json["register_arrays"]:
            self.registers[register["name"]] = [0] * register["size"]
        for counter in program.json["counter_arrays"]:
            if not counter.get("is_direct"):
                self.counters[counter["name"]] = [(0, 0)] * counter["size"]

    def clock_ns(self) -> int:
        return self.now_ns

    def has_port(self, port: int) -> bool:
        return 0 <= port < PORTS

    def _insert(self, table: str, handle: int, entry: tuple[tuple[KeyMatch, ...], EntryCall, int]) -> None:
        self.tables[table].entries[handle] = entry
        self.tables[table].counts[handle] = (0, 0)
        self.tables[table].meter_counts[handle] = NO_METER_COUNTS
        self.tables[table].last_hits_ns[handle] = self.now_ns

    def table_insert(self, table: str, key: Sequence[KeyMatch], call: EntryCall, priority: int) -> int:
        handle = next(self._handles)
        self._insert(table, handle, (tuple(key), call, priority))
        return handle

    def table_modify(self, table: str, handle: int, call: EntryCall) -> None:
        key, _, priority = self.tables[table].entries[handle]
        self.tables[table].entries[handle] = (key, call, priority)

    def table_delete(self, table: str, handle: int) -> None:
        del self.tables[table].entries[handle]
        self.tables[table].meters.pop(handle, None)

    def table_set_default(self, table: str, call: ActionCall | None) -> None:
        self.tables[table].default = call

    def table_entry_count(self, table: str, handle: int) -> tuple[int, int]:
        return self.tables[table].counts[handle]

    def table_entry_count_write(self, table: str, handle: int, packets: int, bytes_: int) -> None:
        self.tables[table].counts[handle] = packets, bytes_

    def table_default_count(self, table: str) -> tuple[int, int]:
        return self.tables[table].default_count

    def table_default_count_write(self, table: str, packets: int, bytes_: int) -> None:
        self.tables[table].default_count = packets, bytes_

    def table_initial_handles(self, table: str) -> Sequence[int]:
        return [h for h in self.tables[table].entries if h < 100]

    def table_last_hit_ns(self, table: str, handle: int) -> int:
        return self.tables[table].last_hits_ns[handle]

    def _referred(self, reference: EntryCall) -> bool:
        return any(call == reference for t in self.tables.values() for _, call, _ in t.entries.values())

    def profile_member_write(self, profile: str, member: int, call: ActionCall) -> None:
        self.profiles[profile].members[member] = call

    def profile_member_delete(self, profile: str, member: int) -> None:
        grouped = any(member in group for group in self.profiles[profile].groups.values())
        if grouped or self._referred(MemberReference(member)):
            raise StillReferenced(f"member {member}")
        del self.profiles[profile].members[member]

    def profile_group_write(
        self, profile: str, group: int, members: Sequence[int], watched: Sequence[int | None] = ()
    ) -> None:
        for member in members:
            assert member in self.profiles[profile].members
        self.profiles[profile].groups[group] = tuple(members)
        self.profiles[profile].watched.pop(group, None)
        if watched:
            self.profiles[profile].watched[group] = tuple(watched)

    def profile_group_delete(self, profile: str, group: int) -> None:
        if self._referred(GroupReference(group)):
            raise StillReferenced(f"group {group}")
        del self.profiles[profile].groups[group]
        self.profiles[profile].watched.pop(group, None)

    def clone_session_set(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int = 0, class_of_service: int = 0
    ) -> None:
        self.sessions[session_id] = (tuple(replicas), truncate_bytes, class_of_service)

    def clone_session_delete(self, session_id: int) -> None:
        del self.sessions[session_id]

    def meter_write(self, meter: str, index: int, rates: MeterRates | None) -> None:
        _set(self.meters, (meter, index), rates)

    def meter_counts(self, meter: str, index: int) -> MeterCounts:
        return self.meter_marks.get((meter, index), NO_METER_COUNTS)

    def meter_counts_clear(self, meter: str, index: int) -> None:
        self.meter_marks.pop((meter, index), None)

    def table_meter_write(self, table: str, handle: int, rates: MeterRates | None) -> None:
        _set(self.tables[table].meters, handle, rates)

    def table_meter_counts(self, table: str, handle: int) -> MeterCounts:
        return self.tables[table].meter_counts[handle]

    def table_meter_counts_clear(self, table: str, handle: int) -> None:
        self.tables[table].meter_counts[handle] = NO_METER_COUNTS

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        self.value_sets[value_set] = list(members)

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

    def on_digest(self, callback: Callable[[int, tuple[int, ...]], None] | None) -> None:
        self.digest = callback


def _set(configured: dict[Any, MeterRates], place: Any, rates: MeterRates | None) -> None:
    if rates is None:
        configured.pop(place, None)
    else:
        configured[place] = rates
