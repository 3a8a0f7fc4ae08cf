"""Tables, and what entries and parsers choose from: action profiles and value sets."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from switch.bmv2_json.model import Action, Call, Entry, Table
from switch.device import (
    ActionCall,
    EntryCall,
    EntryExists,
    GroupReference,
    KeyMatch,
    MemberReference,
    Program,
    StateFull,
)
from switch.runtime.access import abi
from switch.runtime.access.switch_record import SwitchRecord, fits

_DEFAULT_HANDLE = -1


class TableAccess(SwitchRecord):
    """Tables, action profiles and value sets of one switch. Raises as switch.device.Device says."""

    def __init__(
        self,
        program: Program,
        guard: AbstractContextManager[Any] | None = None,
        clock_us: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__(program, guard, clock_us)
        self._tables = self.model.tables
        self._table_number = {name: i for i, name in enumerate(self._tables)}
        self._value_set_number = {name: i for i, name in enumerate(self.model.value_sets)}
        self._profile_number = {name: i for i, name in enumerate(self.model.profiles)}
        for table in self._tables.values():
            self._set_default(table, table.default)
            for entry in table.entries:
                self._insert_initial(table, entry)

    # ---- Tables ----

    def table_insert(self, table: str, key: Sequence[KeyMatch], call: EntryCall, priority: int = 0) -> int:
        """Insert an entry; returns its handle. priority: of ternary and range tables, the larger wins.

        Raises EntryExists and StateFull, both ValueError.
        """
        wanted = self._table(table)
        values, masks, highs, prefix_bits = self._key(wanted, key)
        if wanted.match == "lpm":
            priority = prefix_bits
        elif wanted.match == "exact":
            priority = 0
        action, data = self._call(wanted, call) if isinstance(call, ActionCall) else (abi.NO_ACTION, [])
        with self._guard:
            handle = self._insert(wanted, values, masks, highs, priority, action, data)
            if not isinstance(call, ActionCall):
                try:
                    self._refer(wanted, handle, call)
                except ValueError:
                    self._library.gb_table_delete(self._table_pointer(wanted), handle)
                    raise
            if wanted.with_timeouts:
                self._library.gb_table_hit(self._table_pointer(wanted), handle, self._clock_us())
        return handle

    def table_modify(self, table: str, handle: int, call: EntryCall) -> None:
        wanted = self._table(table)
        self._modify(wanted, self._handle(handle), call)

    def table_delete(self, table: str, handle: int) -> None:
        wanted = self._table(table)
        with self._guard:
            self._check(
                self._library.gb_table_delete(self._table_pointer(wanted), self._handle(handle)),
                IndexError(f"table {table} has no entry with handle {handle}"),
            )

    def table_set_default(self, table: str, call: EntryCall | None) -> None:
        """None resets it to the default of the program."""
        wanted = self._table(table)
        if wanted.default_is_const:
            raise ValueError(f"the default action of table {table} is const")
        if call is None:
            with self._guard:
                self._set_default(wanted, wanted.default)
        else:
            self._modify(wanted, _DEFAULT_HANDLE, call)

    def table_entry_count(self, table: str, handle: int) -> tuple[int, int]:
        """Packets and bytes of the entry's direct counter."""
        return self._read_table_count(table, self._handle(handle))

    def table_default_count(self, table: str) -> tuple[int, int]:
        """Packets and bytes that met the default entry of a table with a direct counter."""
        return self._read_table_count(table, _DEFAULT_HANDLE)

    def table_entry_count_write(self, table: str, handle: int, packets: int, bytes_: int) -> None:
        """Set the entry's direct counter."""
        self._write_table_count(table, self._handle(handle), packets, bytes_)

    def table_default_count_write(self, table: str, packets: int, bytes_: int) -> None:
        self._write_table_count(table, _DEFAULT_HANDLE, packets, bytes_)

    def table_initial_handles(self, table: str) -> Sequence[int]:
        """Handles of the entries that the program brought along, in their order in the JSON."""
        return range(len(self._table(table).entries))

    def table_last_hit_us(self, table: str, handle: int) -> int:
        """When the entry was last hit, or inserted; on the clock of packets."""
        wanted = self._table(table)
        if not wanted.with_timeouts:
            raise ValueError(f"table {table} has no idle timeouts (support_timeout)")
        last_hit_us = ctypes.c_uint64()
        with self._guard:
            self._check(
                self._library.gb_table_last_hit(
                    self._table_pointer(wanted), self._handle(handle), ctypes.byref(last_hit_us)
                ),
                IndexError(f"table {table} has no entry with handle {handle}"),
            )
        return last_hit_us.value

    # ---- Value sets ----

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members: (value, mask) pairs over the select expression's fields put together."""
        width = self.model.value_sets[value_set].width
        number = self._number(self._value_set_number, value_set, "value set")
        values = abi.word_array(abi.to_words((fits(v, width, f"value set {value_set}"), width) for v, _ in members))
        masks = abi.word_array(abi.to_words((fits(m, width, f"value set {value_set}"), width) for _, m in members))
        with self._guard:
            pointer = self.record.contents.value_sets[number]
            self._check(self._library.gb_value_set_replace(pointer, len(members), values, masks), IndexError())

    # ---- Action profiles ----

    def profile_member_write(self, profile: str, member: int, call: ActionCall) -> None:
        """Create or change a member."""
        number = self._number(self._profile_number, profile, "action profile")
        table = next((t for t in self._tables.values() if t.profile == profile), None)
        if table is None:
            raise ValueError(f"no table uses action profile {profile}")
        action, data = self._call(table, call)
        with self._guard:
            self._check(
                self._library.gb_profile_member_set(
                    self.record.contents.profiles[number], member, action, abi.word_array(data), len(data)
                ),
                IndexError(),
            )

    def profile_member_delete(self, profile: str, member: int) -> None:
        number = self._number(self._profile_number, profile, "action profile")
        with self._guard:
            self._check(
                self._library.gb_profile_member_delete(self.record.contents.profiles[number], member),
                IndexError(f"action profile {profile} has no member {member}"),
            )

    def profile_group_write(
        self, profile: str, group: int, members: Sequence[int], watched: Sequence[int | None] = ()
    ) -> None:
        """Create or change a group. A member that is named several times has that weight.

        watched: the port of each member without which it is left out, None for no port; or nothing for no ports.
        """
        number = self._number(self._profile_number, profile, "action profile")
        ids = (ctypes.c_uint32 * max(1, len(members)))(*members)
        ports = None
        if watched:
            if len(watched) != len(members):
                raise ValueError(f"{len(members)} members watch {len(watched)} ports")
            ports = (ctypes.c_uint32 * len(watched))(*(abi.NO_WATCH if port is None else port for port in watched))
        profiles = self.record.contents.profiles
        with self._guard:
            self._check(
                self._library.gb_profile_group_set(profiles[number], group, ids, ports, len(members)),
                IndexError(f"action profile {profile} lacks a member of {list(members)}"),
            )

    def profile_group_delete(self, profile: str, group: int) -> None:
        number = self._number(self._profile_number, profile, "action profile")
        with self._guard:
            self._check(
                self._library.gb_profile_group_delete(self.record.contents.profiles[number], group),
                IndexError(f"action profile {profile} has no group {group}"),
            )

    # ---- Table internals ----

    def _table(self, name: str) -> Table:
        try:
            return self._tables[name]
        except KeyError:
            raise KeyError(f"no table named {name}") from None

    def _table_pointer(self, table: Table) -> Any:
        return self.record.contents.tables[self._table_number[table.name]]

    @staticmethod
    def _handle(handle: int) -> int:
        if not 0 <= handle < 2**32:
            raise IndexError(f"no table entry has handle {handle}")
        return handle

    @staticmethod
    def _key(table: Table, key: Sequence[KeyMatch]) -> tuple[list[int], list[int], list[int], int]:
        """Words of values, masks and high ends, and the prefix length of the lpm field."""
        if len(key) != len(table.key):
            raise ValueError(f"table {table.name} has {len(table.key)} key fields, got {len(key)}")
        values: list[tuple[int, int]] = []
        masks: list[tuple[int, int]] = []
        highs: list[tuple[int, int]] = []
        prefix_bits = 0
        for part, field in zip(key, table.key, strict=True):
            width, full = field.width, (1 << field.width) - 1
            what = f"key field {field.name or len(values)} of table {table.name}"
            mask, high = full, 0
            if field.match == "lpm":
                bits = width if part.prefix_bits is None else part.prefix_bits
                if not 0 <= bits <= width:
                    raise ValueError(f"{what}: a prefix of {bits} bits in a field of {width}")
                mask, prefix_bits = full ^ full >> bits, bits
            elif field.match == "ternary":
                mask = full if part.mask is None else fits(part.mask, width, what)
            elif field.match == "range":
                high = part.value if part.high is None else fits(part.high, width, what)
                if part.value > high:
                    raise ValueError(f"{what}: the range's low end {part.value} is above its high end {high}")
            values.append((fits(part.value, width, what), width))
            masks.append((mask, width))
            highs.append((high, width))
        return abi.to_words(values), abi.to_words(masks), abi.to_words(highs), prefix_bits

    @staticmethod
    def _call(table: Table, call: ActionCall) -> tuple[int, list[int]]:
        """Action id and words of the arguments."""
        action: Action = table.action(call.action)
        if len(call.arguments) != len(action.parameters):
            raise ValueError(
                f"action {action.name} takes {len(action.parameters)} arguments, got {len(call.arguments)}"
            )
        pairs = [
            (fits(value, parameter.width, f"argument {parameter.name} of {action.name}"), parameter.width)
            for value, parameter in zip(call.arguments, action.parameters, strict=True)
        ]
        return action.id, abi.to_words(pairs)

    def _insert(
        self,
        table: Table,
        values: list[int],
        masks: list[int],
        highs: list[int],
        priority: int,
        action: int,
        data: list[int],
    ) -> int:
        handle = int(
            self._library.gb_table_insert(
                self._table_pointer(table),
                abi.word_array(values),
                abi.word_array(masks),
                abi.word_array(highs),
                priority,
                action,
                abi.word_array(data),
                len(data),
            )
        )
        if handle == abi.EXISTS:
            raise EntryExists(f"table {table.name} has an entry with this key already")
        if handle == abi.FULL:
            raise StateFull(f"table {table.name} is full: it has room for {table.max_size} entries")
        self._check(handle, IndexError())
        return handle

    def _insert_initial(self, table: Table, entry: Entry) -> None:
        key = [KeyMatch(f.value, f.mask, f.prefix_bits, f.high) for f in entry.key]
        values, masks, highs, prefix_bits = self._key(table, key)
        priority = {"exact": 0, "lpm": prefix_bits}.get(table.match, entry.priority)
        action, data = self._arguments(entry.call)
        self._insert(table, values, masks, highs, priority, action, data)

    def _arguments(self, call: Call) -> tuple[int, list[int]]:
        parameters = self.model.actions[call.action_id].parameters
        return call.action_id, abi.to_words((v, p.width) for v, p in zip(call.arguments, parameters, strict=True))

    def _set_default(self, table: Table, call: Call | None) -> None:
        action, data = self._arguments(call) if call is not None else (abi.NO_ACTION, [])
        words = abi.word_array(data)
        outcome = self._library.gb_table_modify(self._table_pointer(table), _DEFAULT_HANDLE, action, words, len(data))
        self._check(outcome, IndexError())

    def _modify(self, table: Table, handle: int, call: EntryCall) -> None:
        with self._guard:
            if not isinstance(call, ActionCall):
                self._refer(table, handle, call)
                return
            action, data = self._call(table, call)
            pointer = self._table_pointer(table)
            self._check(
                self._library.gb_table_modify(pointer, handle, action, abi.word_array(data), len(data)),
                IndexError(f"table {table.name} has no entry with handle {handle}"),
            )

    def _refer(self, table: Table, handle: int, call: MemberReference | GroupReference) -> None:
        """Make an entry refer to a member or group of the table's profile."""
        number = self._table_number[table.name]
        if isinstance(call, MemberReference):
            outcome = self._library.gb_table_set_member(self.record, number, handle, call.member)
            what = f"member {call.member}"
        else:
            outcome = self._library.gb_table_set_group(self.record, number, handle, call.group)
            what = f"group {call.group}"
        self._check(outcome, ValueError(f"table {table.name} has no {what}, or no entry with handle {handle}"))

    def _read_table_count(self, table: str, handle: int) -> tuple[int, int]:
        wanted = self._table(table)
        if not wanted.with_counters:
            raise ValueError(f"table {table} has no direct counter")
        count = abi.Count()
        with self._guard:
            self._check(
                self._library.gb_table_count(self._table_pointer(wanted), handle, ctypes.byref(count)),
                IndexError(f"table {table} has no entry with handle {handle}"),
            )
        return count.packets, count.bytes

    def _write_table_count(self, table: str, handle: int, packets: int, bytes_: int) -> None:
        count = abi.Count(fits(packets, 64, "packets"), fits(bytes_, 64, "bytes"))
        pointer = self._table_pointer(self._table(table))
        with self._guard:
            self._check(
                self._library.gb_table_count_write(pointer, handle, ctypes.byref(count)),
                IndexError(f"table {table} has no entry with handle {handle}"),
            )
