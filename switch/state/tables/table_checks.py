"""What the fields of a TableEntry message may be, by kind of request."""

from __future__ import annotations

from typing import Any

from gradbed.switch.device import Counts
from gradbed.switch.p4runtime.pipeline.calls import AnyCall, GroupCall, MemberCall
from gradbed.switch.p4runtime.values.status import invalid
from gradbed.switch.state.counters.entity import read_counter_data
from gradbed.switch.state.meters.codec import MeterConfig, check_clearing
from gradbed.switch.state.tables.codec import TableCodec
from gradbed.switch.state.tables.table_state import TableState


def check_default_key(codec: TableCodec, message: Any) -> None:
    if message.match:
        raise invalid(f"table {codec.name}: the default entry has no match")
    if message.priority:
        raise invalid(f"table {codec.name}: the default entry has no priority")


def check_not_const(codec: TableCodec, message: Any) -> None:
    if message.is_const:
        raise invalid(f"table {codec.name}: is_const is the server's to set")


def check_write(codec: TableCodec, message: Any) -> None:
    """What holds for INSERT and MODIFY alike."""
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
    """`message` is a TableEntry."""
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
    """None if the message has no action. Raises RequestError."""
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
