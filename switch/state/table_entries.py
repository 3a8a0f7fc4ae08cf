"""TableEntry: entries and default entries of tables as P4Runtime entities.

P4Runtime specification 1.4, section "TableEntry".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from finsy.proto import p4r

from gradbed.switch.device import Counts, MeterCounts
from gradbed.switch.p4runtime.calls import ActionSet, ActionValue, AnyCall, GroupCall, MemberCall
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import denied, exhausted, exists_already, invalid, not_found
from gradbed.switch.state.action_profiles import ProfileState
from gradbed.switch.state.base import EntityKind, known
from gradbed.switch.state.counters import fill_counter_data, read_counter_data
from gradbed.switch.state.idle_timeouts import IdleTimers
from gradbed.switch.state.meters import MeterConfig, MeterSpec, check_clearing, fill_config, fill_meter_counts
from gradbed.switch.state.table_state import NO_COUNT, DefaultEntry, TableCodec, TableState, WrittenEntry
from gradbed.switch.state.tables import Tables

# ---- What a request may have ----


def check_default_key(codec: TableCodec, message: Any) -> None:
    if message.match:
        raise invalid(f"table {codec.name}: the default entry has no match")
    if message.priority:
        raise invalid(f"table {codec.name}: the default entry has no priority")


def check_not_const(codec: TableCodec, message: Any) -> None:
    if message.is_const:
        raise invalid(f"table {codec.name}: is_const is the server's to set")


def check_write(codec: TableCodec, message: Any) -> None:
    """Check what holds for INSERT and MODIFY alike."""
    check_not_const(codec, message)
    if message.HasField("time_since_last_hit"):
        # BMv2's words, which its clients look for.
        raise invalid("has_time_since_last_hit must not be set in WriteRequest")
    check_timeouts(codec, message)
    if message.HasField("meter_counter_data"):
        check_direct_meter(codec, message)
        check_clearing(message.meter_counter_data)


def check_read(codec: TableCodec, message: Any) -> None:
    if message.is_default_action:
        check_default_key(codec, message)
    check_timeouts(codec, message)
    if message.HasField("action") and message.action.WhichOneof("type") != "action":
        raise invalid(f"table {codec.name}: entries can be selected by action_id, not by member, group or action set")


def check_timeouts(codec: TableCodec, message: Any) -> None:
    if not message.idle_timeout_ns and not message.HasField("time_since_last_hit"):
        return
    if not codec.has_idle_timeout and message.idle_timeout_ns:
        # BMv2's words, which its clients look for.
        raise invalid("idle_timeout_ns must be set to 0 for tables which do not support idle timeout")
    if not codec.has_idle_timeout:
        raise invalid(f"table {codec.name} has no idle timeouts")
    if message.is_default_action:
        raise invalid(f"table {codec.name}: the default entry has no idle timeout")
    if message.idle_timeout_ns < 0:
        raise invalid(f"table {codec.name}: idle_timeout_ns is negative")


def check_direct_counter(codec: TableCodec) -> None:
    if codec.direct_counter_id is None:
        raise invalid(f"table {codec.name} has no direct counter")


def check_direct_meter(codec: TableCodec, message: Any) -> None:
    """Check the meter_config of a TableEntry."""
    if codec.direct_meter_id is None:
        raise invalid(f"table {codec.name} has no direct meter")
    if message.is_default_action:
        raise invalid(f"table {codec.name}: v1model runs the direct meter on hits, the default entry has none")


def written_counts(codec: TableCodec, message: Any) -> Counts | None:
    if not message.HasField("counter_data"):
        return None
    check_direct_counter(codec)
    return read_counter_data(message.counter_data)


def written_meter(table: TableState, message: Any) -> MeterConfig | None:
    if not message.HasField("meter_config"):
        return None
    check_direct_meter(table.codec, message)
    assert table.meter_spec is not None
    return table.meter_spec.decode(message.meter_config)


def written_call(codec: TableCodec, message: Any, as_default: bool = False) -> AnyCall | None:
    """Return the action of a message; None if it has none. Raises RequestError."""
    if not message.HasField("action"):
        return None
    action = message.action
    kind = action.WhichOneof("type")
    profile = codec.profile
    if profile is None:
        if kind != "action":
            raise invalid(
                f"table {codec.name} has no implementation, its entries need an action, got {kind or 'nothing'}"
            )
        return codec.decode_action(action.action, as_default)
    if kind == "action_profile_member_id":
        return MemberCall(action.action_profile_member_id)
    if kind in ("action_profile_group_id", "action_profile_action_set") and not profile.with_selector:
        raise invalid(f"table {codec.name}: {profile.name} has no selector, its entries need a member, got {kind}")
    if kind == "action_profile_group_id":
        return GroupCall(action.action_profile_group_id)
    if kind == "action_profile_action_set":
        return profile.decode_set(action.action_profile_action_set)
    raise invalid(
        f"table {codec.name} has an implementation, its entries need a member, group or action set, "
        f"got {kind or 'nothing'}"
    )


# ---- Messages of entries, as read requests and exports want them ----


class Volatile(NamedTuple):
    """The parts of an entry that packets change; None where they were not asked for."""

    counts: Counts | None = None
    meter_counts: MeterCounts | None = None
    idle_ns: int | None = None


NOTHING_VOLATILE = Volatile()


def fill_key(codec: TableCodec, entry: WrittenEntry, message: Any) -> None:
    """Fill the fields of a TableEntry that identify the entry."""
    message.table_id = codec.table_id
    codec.encode_key(entry.key, message)
    message.priority = entry.priority


def entry_entity(
    table: TableState, entry: WrittenEntry, volatile: Volatile = NOTHING_VOLATILE, *, with_meter: bool = False
) -> Any:
    """Return the entity of an entry.

    `with_meter`: fill meter_config, unless it is the default.
    """
    entity = p4r.Entity()
    message = entity.table_entry
    fill_key(table.codec, entry, message)
    _fill_call(table.codec, entry.call, message.action)
    message.metadata = entry.metadata
    message.controller_metadata = entry.controller_metadata
    message.idle_timeout_ns = entry.idle_timeout_ns
    message.is_const = entry.is_const
    if with_meter and entry.meter is not None:
        fill_config(message.meter_config, entry.meter)
    _fill_volatile(message, volatile)
    return entity


def default_entity(table: TableState, default: DefaultEntry, counts: Counts | None = None) -> Any:
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
    _fill_volatile(message, Volatile(counts))
    return entity


def idle_message(table: TableState, entry: WrittenEntry) -> Any:
    """Return the entry as an IdleTimeoutNotification names it."""
    message = p4r.TableEntry()
    fill_key(table.codec, entry, message)
    message.metadata = entry.metadata
    message.controller_metadata = entry.controller_metadata
    message.idle_timeout_ns = entry.idle_timeout_ns
    return message


def _fill_call(codec: TableCodec, call: AnyCall, message: Any) -> None:
    if isinstance(call, ActionValue):
        codec.encode_action(call, message.action)
    elif isinstance(call, MemberCall):
        message.action_profile_member_id = call.member_id
    elif isinstance(call, GroupCall):
        message.action_profile_group_id = call.group_id
    else:
        assert codec.profile is not None
        codec.profile.encode_set(call, message.action_profile_action_set)


def _fill_volatile(message: Any, volatile: Volatile) -> None:
    if volatile.counts is not None:
        message.counter_data.SetInParent()
        fill_counter_data(message.counter_data, volatile.counts)
    if volatile.meter_counts is not None:
        fill_meter_counts(message.meter_counter_data, volatile.meter_counts)
    if volatile.idle_ns is not None:
        message.time_since_last_hit.elapsed_ns = volatile.idle_ns


# ---- Entities ----


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
        """Create the entries of these tables, by P4Info id, as `direct_meters` and `profiles` are.

        `clock_ns`: clock of the tables' hits.
        """
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
        self._timed: dict[_Place, WrittenEntry] = {}

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
        entry = WrittenEntry(
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

    def _modify_call(self, table: TableState, entry: WrittenEntry, call: AnyCall) -> WrittenEntry:
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
        assert call is None or isinstance(call, ActionValue)
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

    def _volatile(self, table: TableState, entry: WrittenEntry, message: Any) -> Volatile:
        """Return what the read request asks for and the table has."""
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

    def _selected(self, table: TableState, message: Any) -> list[WrittenEntry]:
        """Return the entries that pass all filters of a read request."""
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
            if (action_id == 0 or (isinstance(entry.call, ActionValue) and entry.call.action_id == action_id))
            and message.metadata in (b"", entry.metadata)
            and message.controller_metadata in (0, entry.controller_metadata)
        ]

    # ---- Idle timeouts ----

    def _time(self, table: TableState, entry: WrittenEntry) -> None:
        """Follow a change of the entry's time to live; 0 means none."""
        place = table.codec.table_id, entry.handle
        self._timed[place] = entry
        self.idle_timers.arm(place, entry.idle_timeout_ns, self._clock_ns())
        if not entry.idle_timeout_ns:
            del self._timed[place]

    def _last_hit_ns(self, place: _Place) -> int:
        return self._tables.last_hit_ns(self.tables[place[0]].codec.name, place[1])

    def expired(self) -> list[Any]:
        """Return TableEntry messages of the entries that have been idle for their time to live, once each time."""
        expired = self.idle_timers.expired(self._clock_ns())
        return [idle_message(self.tables[place[0]], self._timed[place]) for place in expired]

    # ---- Exchange of pipelines ----

    def export(self) -> Iterator[Any]:
        """Return the updates of the tables. Counters and meters are left to the direct entities."""
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

    def existing(self, table: TableState, message: Any) -> WrittenEntry:
        """Return the entry with the key and priority of a TableEntry.

        Raises NOT_FOUND, or what is wrong with the key.
        """
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
