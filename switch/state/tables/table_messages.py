"""TableEntry messages of entries, as read requests and exports want them."""

from __future__ import annotations

from typing import Any, NamedTuple

from finsy.proto import p4r

from gradbed.switch.device import Counts, MeterCounts
from gradbed.switch.p4runtime.pipeline.calls import AnyCall, Call, GroupCall, MemberCall
from gradbed.switch.state.counters.entity import fill_counter_data
from gradbed.switch.state.meters.codec import fill_config, fill_meter_counts
from gradbed.switch.state.tables.codec import TableCodec
from gradbed.switch.state.tables.table_state import DefaultEntry, Entry, TableState


class Volatile(NamedTuple):
    """What packets change of an entry; None: not asked for."""

    counts: Counts | None = None
    meter_counts: MeterCounts | None = None
    idle_ns: int | None = None


NOTHING_VOLATILE = Volatile()


def fill_key(codec: TableCodec, entry: Entry, message: Any) -> None:
    """The fields of a TableEntry that say which entry it is."""
    message.table_id = codec.table_id
    codec.encode_key(entry.key, message)
    message.priority = entry.priority


def entry_entity(
    table: TableState, entry: Entry, volatile: Volatile = NOTHING_VOLATILE, *, with_meter: bool = False
) -> Any:
    """`with_meter`: fill meter_config, unless it is the default."""
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


def idle_message(table: TableState, entry: Entry) -> Any:
    """The entry as an IdleTimeoutNotification names it."""
    message = p4r.TableEntry()
    fill_key(table.codec, entry, message)
    message.metadata = entry.metadata
    message.controller_metadata = entry.controller_metadata
    message.idle_timeout_ns = entry.idle_timeout_ns
    return message


def _fill_call(codec: TableCodec, call: AnyCall, message: Any) -> None:
    if isinstance(call, Call):
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
