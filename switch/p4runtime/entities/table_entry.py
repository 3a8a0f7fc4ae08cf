"""TableEntry: entries and default entries of tables. P4Runtime specification 1.4, section "TableEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.counter_entry import fill_counter_data, read_counter_data
from switch.p4runtime.entities.table_state import NO_COUNT, DefaultEntry, Entry, TableState
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.status import Code, RequestError, denied, invalid, not_found, unimplemented
from switch.p4runtime.tables import Call, TableCodec

Counts = tuple[int, int]


class TableEntries(EntityKind):
    oneof = "table_entry"

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        super().__init__(device, pipeline)
        self.tables = {table_id: TableState(codec, device) for table_id, codec in pipeline.tables.items()}

    def p4_id(self, message: Any) -> int:
        table_id: int = message.table_id
        return table_id

    # ---- Writing ----

    def insert(self, message: Any) -> None:
        table = self.table(message.table_id)
        codec = table.codec
        _check_write(codec, message)
        if message.is_default_action:
            raise invalid(f"table {codec.name}: the default entry is always there, it can only be modified")
        if codec.is_const:
            raise denied(f"table {codec.name} is constant")
        if not codec.fields:
            raise invalid(f"table {codec.name} has no key, hence no entries but the default entry")
        counts = _written_counts(codec, message)
        priority: int = message.priority
        codec.check_priority(priority)
        key = codec.decode_key(message.match)
        call = _written_call(codec, message)
        if call is None:
            raise invalid(f"table {codec.name}: an entry needs an action")
        if (key, priority) in table.entries:
            raise RequestError(Code.ALREADY_EXISTS, f"table {codec.name}: the entry exists")
        if len(table.entries) >= codec.size:
            raise RequestError(Code.RESOURCE_EXHAUSTED, f"table {codec.name} is full, it holds {codec.size} entries")
        handle = self._device.table_insert(codec.name, codec.device_key(key), codec.device_call(call), priority)
        entry = Entry(key, priority, call, handle, message.metadata, message.controller_metadata)
        if counts is not None:
            entry = entry._replace(count_offset=table.count_offset(entry, counts))
        table.entries[key, priority] = entry

    def modify(self, message: Any) -> None:
        table = self.table(message.table_id)
        codec = table.codec
        _check_write(codec, message)
        counts = _written_counts(codec, message)
        if message.is_default_action:
            self._modify_default(table, message, counts)
            return
        entry = self.existing(table, message)
        if entry.is_const and (message.HasField("action") or message.metadata or message.controller_metadata):
            raise denied(f"table {codec.name}: of a constant entry only the counter can be modified")
        call = _written_call(codec, message)
        if call is not None and call != entry.call:
            self._device.table_modify(codec.name, table.handle(entry), codec.device_call(call))
        changed = entry._replace(
            call=call or entry.call,
            metadata=message.metadata,
            controller_metadata=message.controller_metadata,
        )
        if counts is not None:
            changed = changed._replace(count_offset=table.count_offset(entry, counts))
        table.entries[entry.key, entry.priority] = changed

    def delete(self, message: Any) -> None:
        table = self.table(message.table_id)
        codec = table.codec
        _check_not_const(codec, message)
        if message.is_default_action:
            raise invalid(f"table {codec.name}: the default entry is always there, it can only be modified")
        if codec.is_const:
            raise denied(f"table {codec.name} is constant")
        entry = self.existing(table, message)
        self._device.table_delete(codec.name, table.handle(entry))
        del table.entries[entry.key, entry.priority]

    def _modify_default(self, table: TableState, message: Any, counts: Counts | None) -> None:
        codec = table.codec
        check_default_key(codec, message)
        if codec.has_const_default:
            raise denied(f"table {codec.name}: the default action is constant")
        if codec.is_indirect:
            raise denied(f"table {codec.name} has an implementation, its default action is constant")
        call = _written_call(codec, message, as_default=True)
        self._device.table_set_default(codec.name, None if call is None else codec.device_call(call))
        if call is None:
            table.default = DefaultEntry(count_offset=table.default_count_offset(counts or NO_COUNT))
            return
        offset = table.default.count_offset if counts is None else table.default_count_offset(counts)
        table.default = DefaultEntry(call, message.metadata, message.controller_metadata, offset)

    # ---- Reading ----

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        with_counts = message.HasField("counter_data")
        if message.table_id == 0:
            if message.match or message.HasField("action"):
                raise invalid("a key or an action can be asked for in one table only: table_id is not set")
            tables = [t for t in self.tables.values() if role.reads(t.codec.table_id)]
        else:
            table = self.table(message.table_id)
            _check_read(table.codec, message)
            tables = [table] if role.reads(message.table_id) else []
        if message.is_default_action:
            found_defaults = [
                (t, t.default, t.default_count() if with_counts and t.codec.direct_counter_id else None)
                for t in tables
                if _selected_default(t, message)
            ]
            return (_default_entity(*found) for found in found_defaults)
        found_entries = [
            (t, entry, t.count(entry) if with_counts and t.codec.direct_counter_id else None)
            for t in tables
            for entry in self._selected(t, message)
        ]
        return (_entity(*found) for found in found_entries)

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
            if action_id in (0, entry.call.action_id)
            and message.metadata in (b"", entry.metadata)
            and message.controller_metadata in (0, entry.controller_metadata)
        ]

    # ---- Exchange of pipelines ----

    def export(self) -> Iterator[Any]:
        """Counters are left to DirectCounterEntries."""
        for table in self.tables.values():
            for place, initial in table.initial.items():
                if place not in table.entries:
                    yield p4r.Update(type=p4r.Update.DELETE, entity=_entity(table, initial))
            for place, entry in table.entries.items():
                uncounted = entry._replace(count_offset=NO_COUNT)
                if place not in table.initial:
                    yield p4r.Update(type=p4r.Update.INSERT, entity=_entity(table, entry))
                elif not entry.is_const and uncounted != table.initial[place]:
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=_entity(table, entry))
            if table.default.call is not None:
                yield p4r.Update(type=p4r.Update.MODIFY, entity=_default_entity(table, table.default))

    # ---- Shared with the direct resources ----

    def table(self, table_id: int) -> TableState:
        table = self.tables.get(table_id)
        if table is None:
            raise not_found(f"there is no table {table_id}") if table_id else invalid("table_id is not set")
        return table

    def existing(self, table: TableState, message: Any) -> Entry:
        """The entry with the key and priority of a TableEntry. Raises NOT_FOUND, or what is wrong with the key."""
        table.codec.check_priority(message.priority)
        key = table.codec.decode_key(message.match)
        entry = table.entries.get((key, message.priority))
        if entry is None:
            raise not_found(f"table {table.codec.name}: there is no such entry")
        return entry


def check_default_key(codec: TableCodec, message: Any) -> None:
    if message.match:
        raise invalid(f"table {codec.name}: the default entry has no match")
    if message.priority:
        raise invalid(f"table {codec.name}: the default entry has no priority")


def fill_key(codec: TableCodec, entry: Entry, message: Any) -> None:
    """The fields of a TableEntry that say which entry it is."""
    message.table_id = codec.table_id
    codec.encode_key(entry.key, message)
    message.priority = entry.priority


def _check_not_const(codec: TableCodec, message: Any) -> None:
    if message.is_const:
        raise invalid(f"table {codec.name}: is_const is the server's to set")


def _check_write(codec: TableCodec, message: Any) -> None:
    """What holds for INSERT and MODIFY alike."""
    _check_not_const(codec, message)
    _check_timeouts(codec, message)
    if message.HasField("time_since_last_hit"):
        raise invalid(f"table {codec.name}: time_since_last_hit cannot be written")
    _check_meter(codec, message)


def _check_read(codec: TableCodec, message: Any) -> None:
    if message.is_default_action:
        check_default_key(codec, message)
    _check_timeouts(codec, message)
    if message.HasField("meter_counter_data") and codec.direct_meter_id is not None:
        raise _no_meters()
    if message.HasField("action") and message.action.WhichOneof("type") != "action":
        raise invalid(f"table {codec.name}: entries can be selected by action_id, not by member, group or action set")


def _check_timeouts(codec: TableCodec, message: Any) -> None:
    if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
        if not codec.has_idle_timeout or message.is_default_action:
            raise invalid(f"table {codec.name}: there are no idle timeouts here")
        raise unimplemented("this switch does not support idle timeouts")


def _check_meter(codec: TableCodec, message: Any) -> None:
    if message.HasField("meter_config") or message.HasField("meter_counter_data"):
        if codec.direct_meter_id is None:
            raise invalid(f"table {codec.name} has no direct meter")
        raise _no_meters()


def _no_meters() -> RequestError:
    return unimplemented("this switch does not support meters over P4Runtime")


def check_direct_counter(codec: TableCodec) -> None:
    if codec.direct_counter_id is None:
        raise invalid(f"table {codec.name} has no direct counter")


def _written_counts(codec: TableCodec, message: Any) -> Counts | None:
    if not message.HasField("counter_data"):
        return None
    check_direct_counter(codec)
    return read_counter_data(message.counter_data)


def _written_call(codec: TableCodec, message: Any, as_default: bool = False) -> Call | None:
    """None if the message has no action. Raises RequestError."""
    if not message.HasField("action"):
        return None
    kind = message.action.WhichOneof("type")
    if codec.is_indirect:
        if kind in (None, "action"):
            raise invalid(f"table {codec.name} has an implementation, its entries need a member, group or action set")
        raise unimplemented("this switch does not support action profiles over P4Runtime")
    if kind != "action":
        raise invalid(
            f"table {codec.name} has no implementation, its entries need an action, got {kind or 'nothing'}"
        )
    return codec.decode_action(message.action.action, as_default)


def _selected_default(table: TableState, message: Any) -> bool:
    default = table.default
    call = default.call or table.codec.initial_default
    action_id = message.action.action.action_id
    return (
        action_id in (0, call.action_id if call else 0)
        and message.metadata in (b"", default.metadata)
        and message.controller_metadata in (0, default.controller_metadata)
    )


def _entity(table: TableState, entry: Entry, counts: Counts | None = None) -> Any:
    entity = p4r.Entity()
    message = entity.table_entry
    fill_key(table.codec, entry, message)
    table.codec.encode_action(entry.call, message.action.action)
    message.metadata = entry.metadata
    message.controller_metadata = entry.controller_metadata
    message.is_const = entry.is_const
    _fill_counts(message, counts)
    return entity


def _default_entity(table: TableState, default: DefaultEntry, counts: Counts | None = None) -> Any:
    entity = p4r.Entity()
    message = entity.table_entry
    message.table_id = table.codec.table_id
    message.is_default_action = True
    call = default.call or table.codec.initial_default
    if call is not None:
        table.codec.encode_action(call, message.action.action)
    message.metadata = default.metadata
    message.controller_metadata = default.controller_metadata
    message.is_const = table.codec.has_const_default
    _fill_counts(message, counts)
    return entity


def _fill_counts(message: Any, counts: Counts | None) -> None:
    if counts is not None:
        message.counter_data.SetInParent()
        fill_counter_data(message.counter_data, counts)
