"""DirectMeterEntry: meters of table entries. P4Runtime specification 1.4, section "DirectMeterEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from gradbed.switch.device import MeterCounts
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.state.meters.codec import check_clearing, fill_config, fill_meter_counts
from gradbed.switch.state.tables.direct_resource import DirectResources
from gradbed.switch.state.tables.table_checks import check_direct_meter
from gradbed.switch.state.tables.table_messages import fill_key
from gradbed.switch.state.tables.table_state import Entry, TableState


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
        return (_entity(*one) for one in entities)

    def export(self) -> Iterator[Any]:
        for table in self._tables_with_resource():
            for entry in table.entries.values():
                if entry.meter is not None:
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=_entity(table, entry, None))

    def _has_resource(self, table: TableState) -> bool:
        return table.codec.direct_meter_id is not None

    def _check_table(self, table: TableState, which: Any) -> None:
        check_direct_meter(table.codec, which)


def _entity(table: TableState, entry: Entry, counts: MeterCounts | None) -> Any:
    entity = p4r.Entity()
    message = entity.direct_meter_entry
    fill_key(table.codec, entry, message.table_entry)
    if entry.meter is not None:
        fill_config(message.config, entry.meter)
    if counts is not None:
        fill_meter_counts(message.counter_data, counts)
    return entity
