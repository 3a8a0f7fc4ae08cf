"""One table of one device: its entries by key, its default entry, and what the device knows them by."""

from __future__ import annotations

from typing import NamedTuple

from switch.device import Device
from switch.p4runtime.capabilities import InitialEntryHandles
from switch.p4runtime.status import RequestError, unimplemented
from switch.p4runtime.tables import Call, Key, TableCodec

NO_COUNT = (0, 0)


class Entry(NamedTuple):
    """An entry as it was written, in canonical values; replaced, never changed.

    `handle` None: an entry of the program, on a device that gives no access to those.
    `count_offset`: packets and bytes to add to what the device counts, because devices count and cannot be set.
    """

    key: Key
    priority: int
    call: Call
    handle: int | None
    metadata: bytes = b""
    controller_metadata: int = 0
    count_offset: tuple[int, int] = NO_COUNT
    is_const: bool = False


class DefaultEntry(NamedTuple):
    """`call` None: what the program declares."""

    call: Call | None = None
    metadata: bytes = b""
    controller_metadata: int = 0
    count_offset: tuple[int, int] = NO_COUNT


class TableState:
    def __init__(self, codec: TableCodec, device: Device) -> None:
        self.codec = codec
        self.device = device
        self.default = DefaultEntry()
        self.initial = {(entry.key, entry.priority): entry for entry in self._initial_entries()}
        self.entries = dict(self.initial)

    def _initial_entries(self) -> list[Entry]:
        codec = self.codec
        if not codec.initial_entries:
            return []
        handles: list[int | None] = [None] * len(codec.initial_entries)
        if isinstance(self.device, InitialEntryHandles):
            handles = list(self.device.table_initial_handles(codec.name))
        return [
            Entry(entry.key, entry.priority, entry.call, handle, is_const=codec.is_const)
            for entry, handle in zip(codec.initial_entries, handles, strict=True)
        ]

    def handle(self, entry: Entry) -> int:
        if entry.handle is None:
            raise self._no_access()
        return entry.handle

    def count(self, entry: Entry) -> tuple[int, int]:
        """Packets and bytes of an entry's direct counter."""
        return _sum(self.device.table_entry_count(self.codec.name, self.handle(entry)), entry.count_offset)

    def default_count(self) -> tuple[int, int]:
        return _sum(self.device.table_default_count(self.codec.name), self.default.count_offset)

    def count_offset(self, entry: Entry, counts: tuple[int, int]) -> tuple[int, int]:
        """The offset that makes the entry's counter read `counts` now."""
        return _difference(counts, self.device.table_entry_count(self.codec.name, self.handle(entry)))

    def default_count_offset(self, counts: tuple[int, int]) -> tuple[int, int]:
        return _difference(counts, self.device.table_default_count(self.codec.name))

    def _no_access(self) -> RequestError:
        return unimplemented(f"table {self.codec.name}: this device gives no access to the program's own entries")


def _sum(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0] + b[0], a[1] + b[1]


def _difference(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0] - b[0], a[1] - b[1]
