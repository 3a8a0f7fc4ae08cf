"""A device in memory that follows gradbed.switch.state.device.Device to the letter and remembers what was asked of
it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import (
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
    counts: dict[int | None, tuple[int, int]] = field(default_factory=lambda: {None: (0, 0)})
    """By handle, the default entry's under None."""
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


class FakeTables(dict[str, Table]):
    def __init__(self, program: Program, now_ns: Callable[[], int]) -> None:
        super().__init__()
        self._now_ns = now_ns
        self._handles = itertools.count(100)
        for table in (table for pipeline in program.json["pipelines"] for table in pipeline["tables"]):
            self[table["name"]] = Table()
            for handle in range(len(table.get("entries", ()))):
                self._insert(table["name"], handle, ((), ActionCall("initial"), 0))

    def _insert(self, table: str, handle: int, entry: tuple[tuple[KeyMatch, ...], EntryCall, int]) -> None:
        self[table].entries[handle] = entry
        self[table].counts[handle] = (0, 0)
        self[table].meter_counts[handle] = NO_METER_COUNTS
        self[table].last_hits_ns[handle] = self._now_ns()

    def insert(self, table: str, key: Sequence[KeyMatch], call: EntryCall, priority: int) -> int:
        handle = next(self._handles)
        self._insert(table, handle, (tuple(key), call, priority))
        return handle

    def modify(self, table: str, handle: int, call: EntryCall) -> None:
        key, _, priority = self[table].entries[handle]
        self[table].entries[handle] = (key, call, priority)

    def delete(self, table: str, handle: int) -> None:
        del self[table].entries[handle]
        self[table].meters.pop(handle, None)

    def set_default(self, table: str, call: ActionCall | None) -> None:
        self[table].default = call

    def count(self, table: str, handle: int | None) -> tuple[int, int]:
        return self[table].counts[handle]

    def write_count(self, table: str, handle: int | None, packets: int, bytes_: int) -> None:
        self[table].counts[handle] = packets, bytes_

    def initial_handles(self, table: str) -> Sequence[int]:
        return [h for h in self[table].entries if h < 100]

    def last_hit_ns(self, table: str, handle: int) -> int:
        return self[table].last_hits_ns[handle]

    def write_meter(self, table: str, handle: int, rates: MeterRates | None) -> None:
        _set(self[table].meters, handle, rates)

    def meter_counts(self, table: str, handle: int) -> MeterCounts:
        return self[table].meter_counts[handle]

    def clear_meter_counts(self, table: str, handle: int) -> None:
        self[table].meter_counts[handle] = NO_METER_COUNTS

    def refer_to(self, reference: EntryCall) -> bool:
        return any(call == reference for t in self.values() for _, call, _ in t.entries.values())


class FakeProfiles(dict[str, Profile]):
    def __init__(self, program: Program, tables: FakeTables) -> None:
        super().__init__()
        self._tables = tables
        for pipeline in program.json["pipelines"]:
            for profile in pipeline.get("action_profiles", ()):
                self[profile["name"]] = Profile()

    def write_member(self, profile: str, member: int, call: ActionCall) -> None:
        self[profile].members[member] = call

    def delete_member(self, profile: str, member: int) -> None:
        grouped = any(member in group for group in self[profile].groups.values())
        if grouped or self._tables.refer_to(MemberReference(member)):
            raise StillReferenced(f"member {member}")
        del self[profile].members[member]

    def write_group(
        self, profile: str, group: int, members: Sequence[int], watched: Sequence[int | None] = ()
    ) -> None:
        for member in members:
            assert member in self[profile].members
        self[profile].groups[group] = tuple(members)
        self[profile].watched.pop(group, None)
        if watched:
            self[profile].watched[group] = tuple(watched)

    def delete_group(self, profile: str, group: int) -> None:
        if self._tables.refer_to(GroupReference(group)):
            raise StillReferenced(f"group {group}")
        del self[profile].groups[group]
        self[profile].watched.pop(group, None)


class FakeRegisters(dict[str, list[int]]):
    def read(self, register: str, index: int) -> int:
        return self[register][index]

    def read_all(self, register: str) -> list[int]:
        return list(self[register])

    def write(self, register: str, index: int, value: int) -> None:
        self[register][index] = value


class FakeCounters(dict[str, list[tuple[int, int]]]):
    def read(self, counter: str, index: int) -> tuple[int, int]:
        return self[counter][index]

    def read_all(self, counter: str) -> list[tuple[int, int]]:
        return list(self[counter])

    def write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        self[counter][index] = (packets, bytes_)


class FakeMeters(dict[tuple[str, int], MeterRates]):
    def __init__(self) -> None:
        super().__init__()
        self.marks: dict[tuple[str, int], MeterCounts] = {}

    def write(self, meter: str, index: int, rates: MeterRates | None) -> None:
        _set(self, (meter, index), rates)

    def counts(self, meter: str, index: int) -> MeterCounts:
        return self.marks.get((meter, index), NO_METER_COUNTS)

    def clear_counts(self, meter: str, index: int) -> None:
        self.marks.pop((meter, index), None)


class FakeValueSets(dict[str, list[tuple[int, int]]]):
    def write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        self[value_set] = list(members)


class FakeState:
    def __init__(self, program: Program, now_ns: Callable[[], int]) -> None:
        json = program.json
        self.tables = FakeTables(program, now_ns)
        self.profiles = FakeProfiles(program, self.tables)
        self.registers = FakeRegisters({r["name"]: [0] * r["size"] for r in json["register_arrays"]})
        self.counters = FakeCounters(
            {c["name"]: [(0, 0)] * c["size"] for c in json["counter_arrays"] if not c.get("is_direct")}
        )
        self.meters = FakeMeters()
        self.value_sets = FakeValueSets()
        self.externs: dict[str, Any] = {}

    def close(self) -> None:
        pass


class FakeReplication:
    """Groups and sessions outlive programs here, as devices may have it."""

    def __init__(self) -> None:
        self.groups: dict[int, tuple[Replica, ...]] = {}
        self.sessions: dict[int, tuple[tuple[Replica, ...], int, int]] = {}

    def set_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        self.groups[group_id] = tuple(replicas)

    def delete_group(self, group_id: int) -> None:
        del self.groups[group_id]

    def set_session(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int = 0, class_of_service: int = 0
    ) -> None:
        self.sessions[session_id] = (tuple(replicas), truncate_bytes, class_of_service)

    def delete_session(self, session_id: int) -> None:
        del self.sessions[session_id]


_NOTHING = FakeProgram({"pipelines": [], "register_arrays": [], "counter_arrays": []})


class FakeDevice:
    """`loads` counts the programs that were loaded; `refuse_load` makes the next one fail."""

    # The types of the state of a real device, whose classes the fake ones do not share.
    state: Any
    replication: Any

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._program: Program | None = None
        self.loads = 0
        self.refuse_load: Exception | None = None
        self.sent: list[bytes] = []
        self.packet_in: Callable[[bytes], None] | None = None
        self.digest: Callable[[int, tuple[int, ...]], None] | None = None
        self.now_ns = 0
        self.replication = FakeReplication()
        self.state = self.new_state(_NOTHING)

    @property
    def device_id(self) -> int:
        return self._device_id

    @property
    def program(self) -> Program | None:
        return self._program

    def restart(self) -> None:
        self._program = None
        self.state = self.new_state(_NOTHING)

    def load(self, program: Program) -> None:
        if self.refuse_load is not None:
            error, self.refuse_load = self.refuse_load, None
            raise error
        self.loads += 1
        self._program = program
        self.state = self.new_state(program)

    def new_state(self, program: Program) -> Any:
        return FakeState(program, self.clock_ns)

    def clock_ns(self) -> int:
        return self.now_ns

    def has_port(self, port: int) -> bool:
        return 0 <= port < PORTS

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
