"""What the P4Runtime server asks of a switch: the seam between protocol and data plane.

Tables, actions, registers and counters are named as in BMv2 JSON (fully qualified, e.g. "RouterIngress.routes").
Values are plain non-negative integers; widths are the program's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from switch.bmv2_json.model import ProgramModel


@dataclass(frozen=True)
class KeyMatch:
    """One key field of a table entry, in the order of the table's key.

    exact: mask None. lpm: prefix_bits. ternary and optional: mask (an omitted field is mask 0).
    range: value is the low and high the top end, both inclusive.
    """

    value: int
    mask: int | None = None
    prefix_bits: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class ActionCall:
    """An action of the table, by name, with its arguments in declaration order."""

    action: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True)
class MemberReference:
    """A member of the table's action profile, in place of an action."""

    member: int


@dataclass(frozen=True)
class GroupReference:
    """A group of the table's action selector, in place of an action."""

    group: int


EntryCall = ActionCall | MemberReference | GroupReference


@dataclass(frozen=True)
class MeterRates:
    """Rates in packets or bytes per second, bursts in packets or bytes.

    A two-rate three-colour marker (RFC 2698), unless there is an excess_burst: then a single-rate three-colour marker
    (RFC 2697), which goes by the committed rate and burst alone.
    """

    committed_per_s: float
    committed_burst: float
    peak_per_s: float
    peak_burst: float
    excess_burst: float | None = None


Counts = tuple[int, int]
"""Packets and bytes."""


class MeterCounts(NamedTuple):
    """What a meter has marked, by colour."""

    green: Counts
    yellow: Counts
    red: Counts


@dataclass(frozen=True)
class Replica:
    """One copy that a multicast group or clone session makes."""

    egress_port: int
    instance: int = 0


class Program(Protocol):
    """A compiled program, ready to be loaded into any number of switches."""

    @property
    def json(self) -> dict[str, Any]:
        """The BMv2 JSON it came from."""

    @property
    def model(self) -> ProgramModel:
        """What the JSON says, as values."""

    @property
    def library(self) -> Path:
        """The shared library that holds its code."""


class EntryExists(ValueError):
    """The table has an entry with this key and priority."""


class StateFull(ValueError):
    """A table or action profile has as many entries or members as it has room for."""


class StillReferenced(ValueError):
    """Entries or groups refer to what was to be deleted."""


class Device(Protocol):
    """One switch. Methods raise KeyError for unknown names, IndexError for bad indices, ValueError for bad values."""

    @property
    def device_id(self) -> int: ...

    @property
    def program(self) -> Program | None: ...

    def load(self, program: Program) -> None:
        """Replace the running program; all state starts afresh, with the program's entries and defaults."""

    def restart(self) -> None:
        """Lose the program and all state, as when the power fails for a moment. Callbacks stay."""

    def clock_ns(self) -> int:
        """Nanoseconds since the switch started, on the clock by which packets are timed."""

    def has_port(self, port: int) -> bool:
        """Whether there is such a port, the CPU port included."""

    # Tables. A handle is valid until the entry is deleted or another program is loaded. Larger priorities win.
    def table_insert(self, table: str, key: Sequence[KeyMatch], call: EntryCall, priority: int) -> int:
        """Raises EntryExists and StateFull."""

    def table_modify(self, table: str, handle: int, call: EntryCall) -> None: ...
    def table_delete(self, table: str, handle: int) -> None: ...
    def table_set_default(self, table: str, call: ActionCall | None) -> None:
        """None resets it to the default of the program."""

    def table_initial_handles(self, table: str) -> Sequence[int]:
        """Handles of the entries that the program brought along, in their order in the JSON.

        Their priorities are those of switch.entry_priority.
        """

    def table_entry_count(self, table: str, handle: int) -> Counts:
        """Packets and bytes of the entry's direct counter."""

    def table_entry_count_write(self, table: str, handle: int, packets: int, bytes_: int) -> None: ...
    def table_default_count(self, table: str) -> Counts: ...
    def table_default_count_write(self, table: str, packets: int, bytes_: int) -> None: ...
    def table_last_hit_ns(self, table: str, handle: int) -> int:
        """When the entry was last hit or, if it never was, inserted. For tables with support_timeout."""

    # Action profiles and selectors. Members and groups have numbers of the caller's choice, from 0 to 2**32 - 1.
    def profile_member_write(self, profile: str, member: int, call: ActionCall) -> None:
        """Create or change a member. Raises StateFull."""

    def profile_member_delete(self, profile: str, member: int) -> None:
        """Raises StillReferenced."""

    def profile_group_write(
        self, profile: str, group: int, members: Sequence[int], watched: Sequence[int | None] = ()
    ) -> None:
        """Create or change a group. A hash selects members[hash % len(members)]; members may repeat.

        watched: the ports that members watch, one for each or none at all. Members whose port is down are left out of
        `members` when a hash selects.
        """

    def profile_group_delete(self, profile: str, group: int) -> None:
        """Raises StillReferenced."""

    # Packet replication engine.
    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace."""

    def multicast_group_delete(self, group_id: int) -> None: ...
    def clone_session_set(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int = 0, class_of_service: int = 0
    ) -> None:
        """Create or replace. truncate_bytes 0 copies whole packets; class_of_service is the clones' priority."""

    def clone_session_delete(self, session_id: int) -> None: ...

    # State that programs keep.
    def register_read(self, register: str, index: int) -> int: ...
    def register_read_all(self, register: str) -> list[int]: ...
    def register_write(self, register: str, index: int, value: int) -> None: ...
    def counter_read(self, counter: str, index: int) -> Counts:
        """Packets and bytes."""

    def counter_read_all(self, counter: str) -> list[Counts]: ...
    def counter_write(self, counter: str, index: int, packets: int, bytes_: int) -> None: ...

    # Meters. One without rates marks everything green; new rates start with full buckets.
    def meter_write(self, meter: str, index: int, rates: MeterRates | None) -> None: ...
    def meter_counts(self, meter: str, index: int) -> MeterCounts: ...
    def meter_counts_clear(self, meter: str, index: int) -> None: ...
    def table_meter_write(self, table: str, handle: int, rates: MeterRates | None) -> None:
        """Of an entry's direct meter, as are the next two."""

    def table_meter_counts(self, table: str, handle: int) -> MeterCounts: ...
    def table_meter_counts_clear(self, table: str, handle: int) -> None: ...

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members: (value, mask) pairs over the select expression's fields put together."""

    # Packets and messages between the switch and its controller (v1model's CPU port).
    def packet_out(self, frame: bytes) -> None:
        """Hand a frame to the ingress pipeline on the CPU port."""

    def on_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        """Call back, from some thread, with each frame sent to the CPU port."""

    def on_digest(self, callback: Callable[[int, tuple[int, ...]], None] | None) -> None:
        """Call back, from some thread, with the learn list's id in the JSON and the values of each digest.

        Values are runs of 64-bit words, least significant first, one run for each element of the list.
        """
