"""TableEntry: entries and default entries of tables. P4Runtime specification 1.4, section "TableEntry"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4r

from gradbed.switch.device import Counts
from gradbed.switch.p4runtime.pipeline.calls import ActionSet, AnyCall, Call
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.values.status import denied, exhausted, exists_already, invalid, not_found
from gradbed.switch.state.base import EntityKind, known
from gradbed.switch.state.meters.codec import MeterSpec
from gradbed.switch.state.profiles.profile_state import ProfileState
from gradbed.switch.state.tables.access import Tables
from gradbed.switch.state.tables.codec import TableCodec
from gradbed.switch.state.tables.idle_timeouts import IdleTimers
from gradbed.switch.state.tables.table_checks import (
    check_default_key,
    check_not_const,
    check_read,
    check_write,
    written_call,
    written_counts,
    written_meter,
)
from gradbed.switch.state.tables.table_messages import Volatile, default_entity, entry_entity, idle_message
from gradbed.switch.state.tables.table_state import NO_COUNT, DefaultEntry, Entry, TableState

_Place = tuple[int, int]
"""Of an entry with an idle timeout: table id and handle."""


class TableEntries(EntityKind):
    oneof = "table_entry"

    def __init__(
        self,
        tables: Tables,
        codecs: Mapping[int, TableCodec],
        direct_meters: Mapping[int, MeterSpec],
        profiles: Mapping[int, ProfileState],
        clock_ns: Callable[[], int],
    ) -> None:
        """`clock_ns`: the clock of the tables' hits. `direct_meters` and `profiles` by P4Info id, too."""
        self._tables = tables
        self._clock_ns = clock_ns
        self.tables = {
            table_id: TableState(
                codec,
                tables,
                profiles[codec.profile.profile_id] if codec.profile is not None else None,
                direct_meters.get(codec.direct_meter_id or 0),
            )
            for table_id, codec in codecs.items()
        }
        self.idle_timers: IdleTimers[_Place] = IdleTimers(self._last_hit_ns)
        self._timed: dict[_Place, Entry] = {}

    def p4_id(self, message: Any) -> int:
        table_id: int = message.table_id
        return table_id

    # ---- Writing ----

    def insert(self, message: Any) -> None:
        table = self.table(message.table_id)
        codec = table.codec
        check_write(codec, message)
        if message.is_default_action:
            raise invalid(f"table {codec.name}: the default entry is always there, it can only be modified")
        if codec.is_const:
            raise denied(f"table {codec.name} is constant")
        if not codec.fields:
            raise invalid(f"table {codec.name} has no key, hence no entries but the default entry")
        counts, meter = written_counts(codec, message), written_meter(table, message)
        priority: int = message.priority
        codec.check_priority(priority)
        key = codec.decode_key(message.match)
        call = written_call(codec, message)
        if call is None:
            raise invalid(f"table {codec.name}: an entry needs an action")
        if (key, priority) in table.entries:
            raise exists_already(f"table {codec.name}: the entry exists")
        if len(table.entries) >= codec.size:
            raise exhausted(f"table {codec.name} is full, it holds {codec.size} entries")
        device_call = table.device_call(call)
        try:
            handle = self._tables.insert(codec.name, codec.device_key(key), device_call, priority)
        except BaseException:
            table.release(device_call, call)
            raise
        entry = Entry(
            key,
            priority,
            call,
            handle,
            message.metadata,
            message.controller_metadata,
            meter,
            message.idle_timeout_ns,
            installed=device_call if isinstance(call, ActionSet) else None,
        )
        table.put(entry)
        if counts is not None:
            table.set_count(entry, counts)
        if meter is not None:
            table.set_meter(handle, meter)
        if entry.idle_timeout_ns:
            self._time(table, entry)

    def modify(self, message: Any) -> None:
        table = self.table(message.table_id)
        codec = table.codec
        check_write(codec, message)
        counts, meter = written_counts(codec, message), written_meter(table, message)
        if message.is_default_action:
            self._modify_default(table, message, counts)
            return
        entry = self.existing(table, message)
        if entry.is_const and (message.HasField("action") or message.metadata or message.controller_metadata):
            raise denied(f"table {codec.name}: of a constant entry only counter and meter can be modified")
        if entry.is_const and message.idle_timeout_ns:
            raise invalid(f"table {codec.name}: a constant entry has no idle timeout")
        call = written_call(codec, message)
        changed = entry._replace(
            metadata=message.metadata,
            controller_metadata=message.controller_metadata,
            meter=meter,
            idle_timeout_ns=message.idle_timeout_ns,
        )
        if call is not None and call != entry.call:
            changed = self._modify_call(table, changed, call)
        table.put(changed)
        if counts is not None:
            table.set_count(changed, counts)
        if meter != entry.meter:
            table.set_meter(entry.handle, meter)
        if message.HasField("meter_counter_data"):
            table.clear_meter_counts(entry)
        if entry.idle_timeout_ns or changed.idle_timeout_ns:
            self._time(table, changed)

    def delete(self, message: Any) -> None:
        table = self.table(message.table_id)
        codec = table.codec
        check_not_const(codec, message)
        if message.is_default_action:
            raise invalid(f"table {codec.name}: the default entry is always there, it can only be modified")
        if codec.is_const:
            raise denied(f"table {codec.name} is constant")
        entry = self.existing(table, message)
        if entry.is_const:
            raise denied(f"table {codec.name}: the entry is constant")
        self._tables.delete(codec.name, entry.handle)
        table.remove(entry)
        if entry.installed is not None:
            table.release(entry.installed, entry.call)
        if entry.idle_timeout_ns:
            self._time(table, entry._replace(idle_timeout_ns=0))

    def _modify_call(self, table: TableState, entry: Entry, call: AnyCall) -> Entry:
        device_call = table.device_call(call)
        try:
            self._tables.modify(table.codec.name, entry.handle, device_call)
        except BaseException:
            table.release(device_call, call)
            raise
        if entry.installed is not None:
            table.release(entry.installed, entry.call)
        return entry._replace(call=call, installed=device_call if isinstance(call, ActionSet) else None)

    def _modify_default(self, table: TableState, message: Any, counts: Counts | None) -> None:
        codec = table.codec
        check_default_key(codec, message)
        if codec.has_const_default:
            raise denied(f"table {codec.name}: the default action is constant")
        if codec.profile is not None:
            raise denied(f"table {codec.name} has an implementation, its default action is constant")
        call = written_call(codec, message, as_default=True)
        assert call is None or isinstance(call, Call)
        self._tables.set_default(codec.name, None if call is None else codec.device_call(call))
        if call is None:
            table.default = DefaultEntry()
            counts = counts or NO_COUNT
        else:
            table.default = DefaultEntry(call, message.metadata, message.controller_metadata)
        if counts is not None and codec.direct_counter_id is not None:
            table.set_default_count(counts)

    # ---- Reading ----

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.table_id == 0:
            if message.match or message.HasField("action"):
                raise invalid("a key or an action can be asked for in one table only: table_id is not set")
            tables = [t for t in self.tables.values() if role.reads(t.codec.table_id)]
        else:
            table = self.table(message.table_id)
            check_read(table.codec, message)
            tables = [table] if role.reads(message.table_id) else []
        if message.is_default_action:
            with_counts = message.HasField("counter_data")
            found_defaults = [
                (t, t.default, t.default_count() if with_counts and t.codec.direct_counter_id else None)
                for t in tables
                if _selected_default(t, message)
            ]
            return (default_entity(*found) for found in found_defaults)
        found_entries = [
            (t, entry, self._volatile(t, entry, message)) for t in tables for entry in self._selected(t, message)
        ]
        with_meter = message.HasField("meter_config")
        return (entry_entity(*found, with_meter=with_meter) for found in found_entries)

    def _volatile(self, table: TableState, entry: Entry, message: Any) -> Volatile:
        """What the read request asks for and the table has."""
        codec = table.codec
        counts = meter_counts = idle_ns = None
        if message.HasField("counter_data") and codec.direct_counter_id is not None:
            counts = table.count(entry)
        if message.HasField("meter_counter_data") and codec.direct_meter_id is not None:
            meter_counts = table.meter_counts(entry)
        if message.HasField("time_since_last_hit") and codec.has_idle_timeout:
            # The entry may have been hit since the clock was read.
            now_ns = self._clock_ns()
            idle_ns = max(0, now_ns - self._tables.last_hit_ns(codec.name, entry.handle))
        return Volatile(counts, meter_counts, idle_ns)

    def _selected(self, table: TableState, message: Any) -> list[Entry]:
        """Entries that pass all filters of a read request."""
        codec = table.codec
        priority: int = message.priority
        if message.match:
            key = codec.decode_key(message.match)
            if priority or not codec.needs_priority:
                entry = table.entries.get((key, priority))
                entries = [] if entry is None else [entry]
            else:
                entries = [entry for entry in table.entries.values() if entry.key == key]
        else:
            entries = [e for e in table.entries.values() if priority in (0, e.priority)]
        action_id = message.action.action.action_id
        return [
            entry
            for entry in entries
            if (action_id == 0 or (isinstance(entry.call, Call) and entry.call.action_id == action_id))
            and message.metadata in (b"", entry.metadata)
            and message.controller_metadata in (0, entry.controller_metadata)
        ]

    # ---- Idle timeouts ----

    def _time(self, table: TableState, entry: Entry) -> None:
        """The entry's time to live has changed; with 0 it has none."""
        place = table.codec.table_id, entry.handle
        self._timed[place] = entry
        self.idle_timers.arm(place, entry.idle_timeout_ns, self._clock_ns())
        if not entry.idle_timeout_ns:
            del self._timed[place]

    def _last_hit_ns(self, place: _Place) -> int:
        return self._tables.last_hit_ns(self.tables[place[0]].codec.name, place[1])

    def expired(self) -> list[Any]:
        """TableEntry messages of entries that have been idle for their time to live, once each time."""
        expired = self.idle_timers.expired(self._clock_ns())
        return [idle_message(self.tables[place[0]], self._timed[place]) for place in expired]

    # ---- Exchange of pipelines ----

    def export(self) -> Iterator[Any]:
        """Counters and meters are left to the direct entities."""
        for table in self.tables.values():
            for place, initial in table.initial.items():
                if place not in table.entries:
                    yield p4r.Update(type=p4r.Update.DELETE, entity=entry_entity(table, initial))
            for place, entry in table.entries.items():
                if place not in table.initial:
                    yield p4r.Update(type=p4r.Update.INSERT, entity=entry_entity(table, entry))
                elif not entry.is_const and entry._replace(meter=None) != table.initial[place]:
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=entry_entity(table, entry))
            if table.default.call is not None:
                yield p4r.Update(type=p4r.Update.MODIFY, entity=default_entity(table, table.default))

    # ---- Shared with the direct resources ----

    def table(self, table_id: int) -> TableState:
        return known(self.tables, table_id, "table")

    def existing(self, table: TableState, message: Any) -> Entry:
        """The entry with the key and priority of a TableEntry. Raises NOT_FOUND, or what is wrong with the key."""
        table.codec.check_priority(message.priority)
        key = table.codec.decode_key(message.match)
        entry = table.entries.get((key, message.priority))
        if entry is None:
            raise not_found(f"table {table.codec.name}: there is no such entry")
        return entry


def _selected_default(table: TableState, message: Any) -> bool:
    default = table.default
    call = default.call or table.codec.initial_default
    action_id = message.action.action.action_id
    return (
        action_id in (0, call.action_id if call else 0)
        and message.metadata in (b"", default.metadata)
        and message.controller_metadata in (0, default.controller_metadata)
    )
