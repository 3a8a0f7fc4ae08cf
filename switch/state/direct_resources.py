"""DirectCounterEntry and DirectMeterEntry: counters and meters that each belong to a table entry, which names them.

P4Runtime specification 1.4, sections "DirectCounterEntry" and "DirectMeterEntry".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from gradbed.switch.device import MeterCounts
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import invalid
from gradbed.switch.state.base import EntityKind
from gradbed.switch.state.counters import fill_counter_data, read_counter_data
from gradbed.switch.state.meters import check_clearing, fill_config, fill_meter_counts
from gradbed.switch.state.table_entries import (
    TableEntries,
    check_default_key,
    check_direct_counter,
    check_direct_meter,
    fill_key,
)
from gradbed.switch.state.table_state import NO_COUNT, TableState, WrittenEntry


class DirectResources(EntityKind):
    """Entities of one kind that exist with table entries, and are addressed by a TableEntry message."""

    def __init__(self, tables: TableEntries) -> None:
        self._tables = tables

    def p4_id(self, message: Any) -> int:
        table_id: int = message.table_entry.table_id
        return table_id

    def _has_resource(self, table: TableState) -> bool:
        """Return whether the table's entries have one."""
        raise NotImplementedError

    def _check_table(self, table: TableState, which: Any) -> None:
        """Raise RequestError unless the entry that a TableEntry message means has one."""
        raise NotImplementedError

    def _addressed(self, message: Any) -> TableState:
        """Return the table that a Write means. Raises RequestError."""
        if not message.HasField("table_entry"):
            raise invalid(f"a {self.oneof} needs a table_entry")
        return self._table(message.table_entry)

    def _tables_to_read(self, which: Any, role: Role) -> list[TableState]:
        """Return the tables that a TableEntry message selects (id 0 selects all) and the role may see."""
        if which.table_id == 0:
            if which.match or which.priority:
                raise invalid("an entry can be asked for in one table only: table_id is not set")
            return [t for t in self._tables_with_resource() if role.reads(t.codec.table_id)]
        table = self._table(which)
        return [table] if role.reads(which.table_id) else []

    def _entries_to_read(self, which: Any, tables: list[TableState]) -> list[tuple[TableState, WrittenEntry]]:
        """Return the entries of those tables that the message selects: the one of its key, or all."""
        if which.match or which.priority:
            return [(table, self._tables.existing(table, which)) for table in tables]
        return [(table, entry) for table in tables for entry in table.entries.values()]

    def _tables_with_resource(self) -> Iterable[TableState]:
        return (table for table in self._tables.tables.values() if self._has_resource(table))

    def _table(self, which: Any) -> TableState:
        table = self._tables.table(which.table_id)
        self._check_table(table, which)
        return table


# ---- DirectCounterEntry ----


class DirectCounterEntries(DirectResources):
    oneof = "direct_counter_entry"

    def modify(self, message: Any) -> None:
        table = self._addressed(message)
        if message.table_entry.is_default_action:
            check_default_key(table.codec, message.table_entry)
            if message.HasField("data"):
                table.set_default_count(read_counter_data(message.data))
            return
        entry = self._tables.existing(table, message.table_entry)
        if message.HasField("data"):
            table.set_count(entry, read_counter_data(message.data))

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        which = message.table_entry
        tables = self._tables_to_read(which, role)
        if which.is_default_action:
            for table in tables:
                check_default_key(table.codec, which)
            return (_counter_entity(t, None, counts) for t, counts in [(t, t.default_count()) for t in tables])
        found = self._entries_to_read(which, tables)
        return (_counter_entity(t, entry, counts) for t, entry, counts in [(t, e, t.count(e)) for t, e in found])

    def export(self) -> Iterator[Any]:
        for table in self._tables_with_resource():
            for entry in table.entries.values():
                if (counts := table.count(entry)) != NO_COUNT:
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=_counter_entity(table, entry, counts))
            if (counts := table.default_count()) != NO_COUNT:
                yield p4r.Update(type=p4r.Update.MODIFY, entity=_counter_entity(table, None, counts))

    def _has_resource(self, table: TableState) -> bool:
        return table.codec.direct_counter_id is not None

    def _check_table(self, table: TableState, which: Any) -> None:
        check_direct_counter(table.codec)


def _counter_entity(table: TableState, entry: WrittenEntry | None, counts: tuple[int, int]) -> Any:
    """Return the entity of an entry's direct counter; `entry` is None for the default entry."""
    entity = p4r.Entity()
    message = entity.direct_counter_entry
    if entry is None:
        message.table_entry.table_id = table.codec.table_id
        message.table_entry.is_default_action = True
    else:
        fill_key(table.codec, entry, message.table_entry)
    message.data.SetInParent()
    fill_counter_data(message.data, counts)
    return entity


# ---- DirectMeterEntry ----


class DirectMeterEntries(DirectResources):
    oneof = "direct_meter_entry"

    def modify(self, message: Any) -> None:
        table = self._addressed(message)
        entry = self._tables.existing(table, message.table_entry)
        assert table.meter_spec is not None
        config = table.meter_spec.decode(message.config) if message.HasField("config") else None
        if message.HasField("counter_data"):
            check_clearing(message.counter_data)
            table.clear_meter_counts(entry)
        table.set_meter(entry.handle, config)
        table.put(entry._replace(meter=config))

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        which = message.table_entry
        found = self._entries_to_read(which, self._tables_to_read(which, role))
        with_counts = message.HasField("counter_data")
        entities = [(t, e, t.meter_counts(e) if with_counts else None) for t, e in found]
        return (_meter_entity(*one) for one in entities)

    def export(self) -> Iterator[Any]:
        for table in self._tables_with_resource():
            for entry in table.entries.values():
                if entry.meter is not None:
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=_meter_entity(table, entry, None))

    def _has_resource(self, table: TableState) -> bool:
        return table.codec.direct_meter_id is not None

    def _check_table(self, table: TableState, which: Any) -> None:
        check_direct_meter(table.codec, which)


def _meter_entity(table: TableState, entry: WrittenEntry, counts: MeterCounts | None) -> Any:
    entity = p4r.Entity()
    message = entity.direct_meter_entry
    fill_key(table.codec, entry, message.table_entry)
    if entry.meter is not None:
        fill_config(message.config, entry.meter)
    if counts is not None:
        fill_meter_counts(message.counter_data, counts)
    return entity
