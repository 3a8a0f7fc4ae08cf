"""What the P4Runtime server asks of a switch: the seam between protocol and data plane.

Tables, actions, registers and counters are named as in BMv2 JSON (fully qualified, e.g. "RouterIngress.routes").
Values are plain non-negative integers; widths are the program's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


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
    def library(self) -> Path:
        """The shared library that holds its code."""


class Device(Protocol):
    """One switch. Methods raise KeyError for unknown names, IndexError for bad indices, ValueError for bad values."""

    @property
    def device_id(self) -> int: ...

    @property
    def program(self) -> Program | None: ...

    def load(self, program: Program) -> None:
        """Replace the running program; all state starts afresh, with the program's const entries and defaults."""

    # Tables. A handle is valid until the entry is deleted or another program is loaded.
    def table_insert(self, table: str, key: Sequence[KeyMatch], call: ActionCall, priority: int) -> int: ...
    def table_modify(self, table: str, handle: int, call: ActionCall) -> None: ...
    def table_delete(self, table: str, handle: int) -> None: ...
    def table_set_default(self, table: str, call: ActionCall | None) -> None:
        """None resets it to the default of the program."""

    def table_entry_count(self, table: str, handle: int) -> tuple[int, int]:
        """Packets and bytes of the entry's direct counter."""

    def table_default_count(self, table: str) -> tuple[int, int]: ...

    # Packet replication engine.
    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace."""

    def multicast_group_delete(self, group_id: int) -> None: ...

    # State that programs keep.
    def register_read(self, register: str, index: int) -> int: ...
    def register_read_all(self, register: str) -> list[int]: ...
    def register_write(self, register: str, index: int, value: int) -> None: ...
    def counter_read(self, counter: str, index: int) -> tuple[int, int]:
        """Packets and bytes."""

    def counter_read_all(self, counter: str) -> list[tuple[int, int]]: ...
    def counter_write(self, counter: str, index: int, packets: int, bytes_: int) -> None: ...

    # Packets between the switch and its controller (v1model's CPU port).
    def packet_out(self, frame: bytes) -> None:
        """Hand a frame to the ingress pipeline on the CPU port."""

    def on_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        """Call back, from some thread, with each frame sent to the CPU port."""
