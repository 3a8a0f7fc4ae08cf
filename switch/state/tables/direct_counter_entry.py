"""DirectCounterEntry: counters of table entries. P4Runtime specification 1.4, section "DirectCounterEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.state.counters.entity import fill_counter_data, read_counter_data
from gradbed.switch.state.tables.direct_resource import DirectResources
from gradbed.switch.state.tables.table_checks import check_default_key, check_direct_counter
from gradbed.switch.state.tables.table_messages import fill_key
from gradbed.switch.state.tables.table_state import NO_COUNT, Entry, TableState


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
            return (_entity(t, None, counts) for t, counts in [(t, t.default_count()) for t in tables])
        found = self._entries_to_read(which, tables)
        return (_entity(t, entry, counts) for t, entry, counts in [(t, e, t.count(e)) for t, e in found])

    def export(self) -> Iterator[Any]:
        for table in self._tables_with_resource():
            for entry in table.entries.values():
                if (counts := table.count(entry)) != NO_COUNT:
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=_entity(table, entry, counts))
            if (counts := table.default_count()) != NO_COUNT:
                yield p4r.Update(type=p4r.Update.MODIFY, entity=_entity(table, None, counts))

    def _has_resource(self, table: TableState) -> bool:
        return table.codec.direct_counter_id is not None

    def _check_table(self, table: TableState, which: Any) -> None:
        check_direct_counter(table.codec)


def _entity(table: TableState, entry: Entry | None, counts: tuple[int, int]) -> Any:
    """entry: None is the default entry."""
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
