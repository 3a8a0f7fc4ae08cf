"""Tables with their direct counters and meters, through the runtime library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gradbed.switch.bmv2_json.model import ActionEntry, KeyField, ProgramEntry, Table
from gradbed.switch.device import (
    ActionCall,
    Counts,
    EntryCall,
    EntryExists,
    GroupReference,
    KeyMatch,
    MemberReference,
    MeterCounts,
    MeterRates,
    StateFull,
)
from gradbed.switch.state import abi
from gradbed.switch.state.abi import StateAccessor, SwitchRecord, check
from gradbed.switch.state.meters import MeterCells

_DEFAULT_HANDLE = -1


class Tables(StateAccessor):
    """Handles are valid until the entry is deleted. Priorities are of ternary and range tables: larger ones win."""

    def __init__(self, switch: SwitchRecord, clock_us: Callable[[], int]) -> None:
        """Refer to the tables of a switch.

        `clock_us`: the clock by which packets are timed.
        """
        super().__init__(switch)
        self._clock_us = clock_us
        self._actions = switch.model.actions
        self._tables = switch.model.tables
        self._numbers = {name: i for i, name in enumerate(self._tables)}
        self._meter_cells = MeterCells(self._library, self._guard)
        for table in self._tables.values():
            self._set_default(table, table.default)
            for entry in table.entries:
                self._insert_initial(table, entry)

    def insert(self, table: str, key: Sequence[KeyMatch], call: EntryCall, priority: int = 0) -> int:
        """Insert an entry; returns its handle. priority: of ternary and range tables, the larger wins.

        Raises EntryExists and StateFull, both ValueError.
        """
        wanted = self._table(table)
        values, masks, highs, prefix_bits = self._key(wanted, key)
        if wanted.match == "lpm":
            priority = prefix_bits
        elif wanted.match == "exact":
            priority = 0
        action, data = abi.action_words(wanted, call) if isinstance(call, ActionCall) else (abi.NO_ACTION, b"")
        with self._guard:
            handle = self._insert(wanted, values, masks, highs, priority, action, data)
            if not isinstance(call, ActionCall):
                try:
                    self._refer(wanted, handle, call)
                except ValueError:
                    self._library.gb_table_delete(self._pointer(wanted), handle)
                    raise
            if wanted.with_timeouts:
                self._library.gb_table_hit(self._pointer(wanted), handle, self._clock_us())
        return handle

    def modify(self, table: str, handle: int, call: EntryCall) -> None:
        wanted = self._table(table)
        self._modify(wanted, self._handle(handle), call)

    def delete(self, table: str, handle: int) -> None:
        wanted = self._table(table)
        with self._guard:
            check(
                self._library.gb_table_delete(self._pointer(wanted), self._handle(handle)),
                IndexError(f"table {table} has no entry with handle {handle}"),
            )

    def set_default(self, table: str, call: EntryCall | None) -> None:
        """Set the default action; None resets it to that of the program."""
        wanted = self._table(table)
        if wanted.default_is_const:
            raise ValueError(f"the default action of table {table} is const")
        if call is None:
            with self._guard:
                self._set_default(wanted, wanted.default)
        else:
            self._modify(wanted, _DEFAULT_HANDLE, call)

    def count(self, table: str, handle: int | None) -> Counts:
        """Return the packets and bytes of an entry's direct counter; with None, those that met the default entry."""
        wanted = self._table(table)
        if not wanted.with_counters:
            raise ValueError(f"table {table} has no direct counter")
        count = abi.CountStruct()
        self._count(self._library.gb_table_count, wanted, handle, count)
        return count.packets, count.bytes

    def write_count(self, table: str, handle: int | None, packets: int, bytes_: int) -> None:
        count = abi.CountStruct(abi.fits(packets, 64, "packets"), abi.fits(bytes_, 64, "bytes"))
        self._count(self._library.gb_table_count_write, self._table(table), handle, count)

    def initial_handles(self, table: str) -> Sequence[int]:
        """Return the handles of the entries that the program brought along, in their order in the JSON."""
        return range(len(self._table(table).entries))

    def last_hit_ns(self, table: str, handle: int) -> int:
        """Return when the entry was last hit or, if it never was, inserted; on the clock of packets. For tables with
        support_timeout."""
        wanted = self._table(table)
        if not wanted.with_timeouts:
            raise ValueError(f"table {table} has no idle timeouts (support_timeout)")
        last_hit_us = ctypes.c_uint64()
        with self._guard:
            check(
                self._library.gb_table_last_hit(
                    self._pointer(wanted), self._handle(handle), ctypes.byref(last_hit_us)
                ),
                IndexError(f"table {table} has no entry with handle {handle}"),
            )
        return last_hit_us.value * 1000

    # ---- Direct meters ----

    def write_meter(self, table: str, handle: int, rates: MeterRates | None) -> None:
        """Configure the meter of an entry; None turns it off, so that everything is green."""
        self._meter_cells.configure(partial(self._meter_cell, table, handle), rates)

    def meter_counts(self, table: str, handle: int) -> MeterCounts:
        return self._meter_cells.counts(partial(self._meter_cell, table, handle))

    def clear_meter_counts(self, table: str, handle: int) -> None:
        self._meter_cells.clear(partial(self._meter_cell, table, handle))

    def _meter_cell(self, table: str, handle: int) -> int:
        wanted = self._table(table)
        if wanted.direct_meter is None:
            raise ValueError(f"table {table} has no direct meter")
        cell = self._library.gb_table_meter_cell(self._pointer(wanted), self._handle(handle))
        if not cell:
            raise IndexError(f"table {table} has no entry with handle {handle}")
        return int(cell)

    # ---- Internals ----

    def _table(self, name: str) -> Table:
        try:
            return self._tables[name]
        except KeyError:
            raise KeyError(f"no table named {name}") from None

    def _pointer(self, table: Table) -> Any:
        return self._contents.tables[self._numbers[table.name]]

    @staticmethod
    def _handle(handle: int) -> int:
        if not 0 <= handle < 2**32:
            raise IndexError(f"no table entry has handle {handle}")
        return handle

    @staticmethod
    def _key(table: Table, key: Sequence[KeyMatch]) -> tuple[bytes, bytes, bytes, int]:
        """Return the words of values, masks and high ends, and the prefix length of the lpm field."""
        if len(key) != len(table.key):
            raise ValueError(f"table {table.name} has {len(table.key)} key fields, got {len(key)}")
        values, masks, highs = [], [], []
        prefix_bits = 0
        for part, field in zip(key, table.key, strict=True):
            match, width = field.match, field.width
            mask = full = (1 << width) - 1
            high = 0
            if match == "lpm":
                prefix_bits = width if part.prefix_bits is None else part.prefix_bits
                if not 0 <= prefix_bits <= width:
                    where = _field_name(table, field)
                    raise ValueError(f"{where}: a prefix of {prefix_bits} bits in a field of {width}")
                mask = full ^ full >> prefix_bits
            elif match == "ternary":
                mask = full if part.mask is None else part.mask
            elif match == "range":
                high = part.value if part.high is None else part.high
                if part.value > high:
                    where = _field_name(table, field)
                    raise ValueError(f"{where}: the range's low end {part.value} is above its high end {high}")
            if (part.value | mask | high) >> width:
                for number in (part.value, mask, high):
                    abi.fits(number, width, _field_name(table, field))
            size = abi.bytes_of(width)
            values.append(part.value.to_bytes(size, "little"))
            masks.append(mask.to_bytes(size, "little"))
            highs.append(high.to_bytes(size, "little"))
        return b"".join(values), b"".join(masks), b"".join(highs), prefix_bits

    def _insert(
        self,
        table: Table,
        values: bytes,
        masks: bytes,
        highs: bytes,
        priority: int,
        action: int,
        data: bytes,
    ) -> int:
        handle = int(
            self._library.gb_table_insert(
                self._pointer(table),
                values,
                masks,
                highs,
                priority,
                action,
                data,
                len(data) // abi.WORD_BYTES,
            )
        )
        if handle == abi.EXISTS:
            raise EntryExists(f"table {table.name} has an entry with this key already")
        if handle == abi.FULL:
            raise StateFull(f"table {table.name} is full: it has room for {table.max_size} entries")
        if handle < 0:
            check(handle, IndexError())
        return handle

    def _insert_initial(self, table: Table, entry: ProgramEntry) -> None:
        key = [KeyMatch(f.value, f.mask, f.prefix_bits, f.high) for f in entry.key]
        values, masks, highs, prefix_bits = self._key(table, key)
        priority = {"exact": 0, "lpm": prefix_bits}.get(table.match, entry.priority)
        action, data = self._arguments(entry.call)
        self._insert(table, values, masks, highs, priority, action, data)

    def _arguments(self, call: ActionEntry) -> tuple[int, bytes]:
        parameters = self._actions[call.action_id].parameters
        return call.action_id, abi.packed((v, p.width) for v, p in zip(call.arguments, parameters, strict=True))

    def _set_default(self, table: Table, call: ActionEntry | None) -> None:
        action, data = self._arguments(call) if call is not None else (abi.NO_ACTION, b"")
        check(self._modify_entry(table, _DEFAULT_HANDLE, action, data), IndexError())

    def _modify(self, table: Table, handle: int, call: EntryCall) -> None:
        with self._guard:
            if not isinstance(call, ActionCall):
                self._refer(table, handle, call)
                return
            action, data = abi.action_words(table, call)
            check(
                self._modify_entry(table, handle, action, data),
                IndexError(f"table {table.name} has no entry with handle {handle}"),
            )

    def _modify_entry(self, table: Table, handle: int, action: int, data: bytes) -> int:
        pointer = self._pointer(table)
        return int(self._library.gb_table_modify(pointer, handle, action, data, len(data) // abi.WORD_BYTES))

    def _refer(self, table: Table, handle: int, call: MemberReference | GroupReference) -> None:
        """Make an entry refer to a member or group of the table's profile."""
        number = self._numbers[table.name]
        if isinstance(call, MemberReference):
            outcome = self._library.gb_table_set_member(self._switch.record, number, handle, call.member)
            what = f"member {call.member}"
        else:
            outcome = self._library.gb_table_set_group(self._switch.record, number, handle, call.group)
            what = f"group {call.group}"
        check(outcome, ValueError(f"table {table.name} has no {what}, or no entry with handle {handle}"))

    def _count(self, function: Callable[..., int], table: Table, handle: int | None, count: abi.CountStruct) -> None:
        number = _DEFAULT_HANDLE if handle is None else self._handle(handle)
        with self._guard:
            check(
                function(self._pointer(table), number, ctypes.byref(count)),
                IndexError(f"table {table.name} has no entry with handle {number}"),
            )


def _field_name(table: Table, field: KeyField) -> str:
    return f"key field {field.name or table.key.index(field)} of table {table.name}"
