"""DirectCounterEntry: counters of table entries. P4Runtime specification 1.4, section "DirectCounterEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.counter_entry import fill_counter_data, read_counter_data
from switch.p4runtime.entities.table_checks import check_default_key, check_direct_counter
from switch.p4runtime.entities.table_entry import TableEntries
from switch.p4runtime.entities.table_messages import fill_key
from switch.p4runtime.entities.table_state import NO_COUNT, Entry, TableState
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.status import invalid


class DirectCounterEntries(EntityKind):
    oneof = "direct_counter_entry"

    def __init__(self, device: Device, pipeline: Pipeline, tables: TableEntries) -> None:
        super().__init__(device, pipeline)
        self._tables = tables

    def p4_id(self, message: Any) -> int:
        table_id: int = message.table_entry.table_id
        return table_id

    def modify(self, message: Any) -> None:
        if not message.HasField("table_entry"):
            raise invalid("a direct_counter_entry needs a table_entry")
        table = self._table(message.table_entry)
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
        if which.table_id == 0:
            if which.match or which.priority:
                raise invalid("an entry can be asked for in one table only: table_id is not set")
            counted = [t for t in self._tables.tables.values() if t.codec.direct_counter_id is not None]
            tables = [t for t in counted if role.reads(t.codec.table_id)]
        else:
            tables = [self._table(which)]
            if not role.reads(which.table_id):
                return ()
        if which.is_default_action:
            for table in tables:
                check_default_key(table.codec, which)
            return (_default_entity(t, counts) for t, counts in [(t, t.default_count()) for t in tables])
        if which.match or which.priority:
            found = [(tables[0], self._tables.existing(tables[0], which))]
        else:
            found = [(table, entry) for table in tables for entry in table.entries.values()]
        return (_entity(t, entry, counts) for t, entry, counts in [(t, e, t.count(e)) for t, e in found])

    def export(self) -> Iterator[Any]:
        for table in self._tables.tables.values():
            if table.codec.direct_counter_id is None:
                continue
            for entry in table.entries.values():
                if (counts := table.count(entry)) != NO_COUNT:
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=_entity(table, entry, counts))
            if (counts := table.default_count()) != NO_COUNT:
                yield p4r.Update(type=p4r.Update.MODIFY, entity=_default_entity(table, counts))

    def _table(self, which: Any) -> TableState:
        table = self._tables.table(which.table_id)
        check_direct_counter(table.codec)
        return table


def _entity(table: TableState, entry: Entry, counts: tuple[int, int]) -> Any:
    entity = p4r.Entity()
    fill_key(table.codec, entry, entity.direct_counter_entry.table_entry)
    entity.direct_counter_entry.data.SetInParent()
    fill_counter_data(entity.direct_counter_entry.data, counts)
    return entity


def _default_entity(table: TableState, counts: tuple[int, int]) -> Any:
    entity = p4r.Entity()
    entity.direct_counter_entry.table_entry.table_id = table.codec.table_id
    entity.direct_counter_entry.table_entry.is_default_action = True
    entity.direct_counter_entry.data.SetInParent()
    fill_counter_data(entity.direct_counter_entry.data, counts)
    return entity
