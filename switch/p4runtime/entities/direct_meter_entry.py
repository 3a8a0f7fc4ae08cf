"""DirectMeterEntry: meters of table entries. P4Runtime specification 1.4, section "DirectMeterEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.device import Device, MeterCounts
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.table_checks import check_direct_meter
from switch.p4runtime.entities.table_entry import TableEntries
from switch.p4runtime.entities.table_messages import fill_key
from switch.p4runtime.entities.table_state import Entry, TableState
from switch.p4runtime.meters import check_clearing, fill_config, fill_meter_counts
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.status import invalid


class DirectMeterEntries(EntityKind):
    oneof = "direct_meter_entry"

    def __init__(self, device: Device, pipeline: Pipeline, tables: TableEntries) -> None:
        super().__init__(device, pipeline)
        self._tables = tables

    def p4_id(self, message: Any) -> int:
        table_id: int = message.table_entry.table_id
        return table_id

    def modify(self, message: Any) -> None:
        if not message.HasField("table_entry"):
            raise invalid("a direct_meter_entry needs a table_entry")
        table = self._table(message.table_entry)
        entry = self._tables.existing(table, message.table_entry)
        assert table.meter_spec is not None
        config = table.meter_spec.decode(message.config) if message.HasField("config") else None
        if message.HasField("counter_data"):
            check_clearing(message.counter_data)
            self._device.table_meter_counts_clear(table.codec.name, entry.handle)
        table.set_meter(entry.handle, config)
        table.put(entry._replace(meter=config))

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        which = message.table_entry
        if which.table_id == 0:
            if which.match or which.priority:
                raise invalid("an entry can be asked for in one table only: table_id is not set")
            metered = [t for t in self._tables.tables.values() if t.codec.direct_meter_id is not None]
            tables = [t for t in metered if role.reads(t.codec.table_id)]
        else:
            tables = [self._table(which)]
            if not role.reads(which.table_id):
                return ()
        if which.match or which.priority:
            found = [(tables[0], self._tables.existing(tables[0], which))]
        else:
            found = [(table, entry) for table in tables for entry in table.entries.values()]
        with_counts = message.HasField("counter_data")
        entities = [(t, e, self._counts(t, e) if with_counts else None) for t, e in found]
        return (_entity(*one) for one in entities)

    def export(self) -> Iterator[Any]:
        for table in self._tables.tables.values():
            for entry in table.entries.values():
                if entry.meter is not None:
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=_entity(table, entry, None))

    def _counts(self, table: TableState, entry: Entry) -> MeterCounts:
        return self._device.table_meter_counts(table.codec.name, entry.handle)

    def _table(self, which: Any) -> TableState:
        table = self._tables.table(which.table_id)
        check_direct_meter(table.codec, which)
        return table


def _entity(table: TableState, entry: Entry, counts: MeterCounts | None) -> Any:
    entity = p4r.Entity()
    message = entity.direct_meter_entry
    fill_key(table.codec, entry, message.table_entry)
    if entry.meter is not None:
        fill_config(message.config, entry.meter)
    if counts is not None:
        fill_meter_counts(message.counter_data, counts)
    return entity
