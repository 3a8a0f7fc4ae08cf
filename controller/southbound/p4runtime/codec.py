"""Plans to P4Runtime messages and back, and differences between plans to updates. Plans are normalised (schema.py):
every name is a full name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from finsy.proto import p4d, p4r

from gradbed.controller.planning.diff import SwitchDiff, switch_diff
from gradbed.controller.planning.plan import (
    CloneSession,
    DefaultAction,
    Lpm,
    Match,
    MeterCell,
    MeterRates,
    MulticastGroup,
    Range,
    RegisterValue,
    Replicas,
    SwitchPlan,
    TableEntry,
    Ternary,
)
from gradbed.controller.planning.text import default_text, entry_text, register_text
from gradbed.controller.southbound.interface import Digest, PacketIn
from gradbed.controller.southbound.p4runtime.schema import (
    ActionSchema,
    DigestSchema,
    FieldSchema,
    MatchType,
    ProgramSchema,
)

DIGEST_ACK_TIMEOUT_NS = 1_000_000_000


def canonical_bytes(value: int) -> bytes:
    """Return the shortest big-endian form, at least one byte (P4Runtime specification, section 8.4 "Bytestrings")."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def encode_entry(schema: ProgramSchema, entry: TableEntry) -> Any:
    """Return the entity of a normalised table entry."""
    table = schema.tables[entry.table]
    message = p4r.TableEntry(table_id=table.id, priority=entry.priority)
    for name, how in entry.match.items():
        message.match.append(_encode_match(table.fields[name], how))
    if table.has_profile:
        # A set of one: the switch makes the profile's members itself.
        only = message.action.action_profile_action_set.action_profile_actions.add(weight=1)
        if entry.watch_port is not None:
            only.watch_port = canonical_bytes(entry.watch_port)
        call = only.action
    else:
        call = message.action.action
    _encode_call(table.actions[entry.action], entry.params, call)
    if entry.meter is not None:
        message.meter_config.CopyFrom(_rates(entry.meter))
    return p4r.Entity(table_entry=message)


def _encode_call(action: ActionSchema, params: Mapping[str, int], call: Any) -> None:
    call.action_id = action.id
    for name, value in params.items():
        call.params.add(param_id=action.params[name].id, value=canonical_bytes(value))


def encode_default(schema: ProgramSchema, default: DefaultAction, reset: bool = False) -> Any:
    """Return the entity of a normalised default action; reset: that of the program."""
    table = schema.tables[default.table]
    message = p4r.TableEntry(table_id=table.id, is_default_action=True)
    if not reset:
        _encode_call(table.actions[default.action], default.params, message.action.action)
    return p4r.Entity(table_entry=message)


def _encode_match(field: FieldSchema, how: Match) -> Any:
    message = p4r.FieldMatch(field_id=field.id)
    if isinstance(how, Lpm):
        message.lpm.value = canonical_bytes(how.value)
        message.lpm.prefix_len = how.prefix_bits
    elif isinstance(how, Ternary):
        message.ternary.value = canonical_bytes(how.value)
        message.ternary.mask = canonical_bytes(how.mask)
    elif isinstance(how, Range):
        message.range.low = canonical_bytes(how.low)
        message.range.high = canonical_bytes(how.high)
    elif field.match_type == MatchType.OPTIONAL:
        message.optional.value = canonical_bytes(how)
    else:
        message.exact.value = canonical_bytes(how)
    return message


def decode_entry(schema: ProgramSchema, message: Any) -> TableEntry | None:
    """Return a table entry as a switch reports it, normalised; None for entries that plans do not manage.

    These are the program's const entries, default actions, and entries that use action profiles.
    """
    table = schema.tables.by_id(message.table_id)
    if table is None or table.has_own_entries or message.is_const or message.is_default_action:
        return None
    call, watch_port = _single_call(message.action)
    action = None if call is None else table.actions.by_id(call.action_id)
    if action is None:
        return None
    match: dict[str, Match] = {}
    for part in message.match:
        field = table.fields.by_id(part.field_id)
        if field is None:
            return None
        match[field.name] = _decode_match(part)
    params = decode_params(action, call)
    if params is None:
        return None
    meter = None
    if message.HasField("meter_config"):
        config = message.meter_config
        meter = MeterRates(
            committed_rate=config.cir, committed_burst=config.cburst, peak_rate=config.pir, peak_burst=config.pburst
        )
    return TableEntry(
        table=table.name,
        match=match,
        action=action.name,
        params=params,
        priority=message.priority,
        meter=meter,
        watch_port=watch_port,
    )


def decode_params(action: ActionSchema, call: Any) -> dict[str, int] | None:
    """Return the parameters of an Action message by name; None if the action has no such ones."""
    params = {}
    for part in call.params:
        param = action.params.by_id(part.param_id)
        if param is None:
            return None
        params[param.name] = number(part.value)
    return params


def _single_call(action: Any) -> tuple[Any, int | None]:
    """Return the Action message of an entry that has exactly one, and the port that it watches; else None."""
    kind = action.WhichOneof("type")
    if kind == "action_profile_action_set":
        members = action.action_profile_action_set.action_profile_actions
        if len(members) != 1:
            return None, None
        watched = members[0].WhichOneof("watch_kind") == "watch_port"
        return members[0].action, number(members[0].watch_port) if watched else None
    return (action.action if kind == "action" else None), None


def _decode_match(message: Any) -> Match:
    kind = message.WhichOneof("field_match_type")
    if kind == "lpm":
        return Lpm(value=number(message.lpm.value), prefix_bits=message.lpm.prefix_len)
    if kind == "ternary":
        return Ternary(value=number(message.ternary.value), mask=number(message.ternary.mask))
    if kind == "range":
        return Range(low=number(message.range.low), high=number(message.range.high))
    return number(message.optional.value if kind == "optional" else message.exact.value)


def encode_group(group: MulticastGroup) -> Any:
    """Return the entity of a multicast group."""
    entry = p4r.MulticastGroupEntry(multicast_group_id=group.id)
    _add_replicas(entry, group)
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=entry))


def encode_clone(session: CloneSession) -> Any:
    """Return the entity of a clone session."""
    entry = p4r.CloneSessionEntry(session_id=session.id, packet_length_bytes=session.truncate_bytes)
    _add_replicas(entry, session)
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(clone_session_entry=entry))


def _add_replicas(entry: Any, replicas: Replicas) -> None:
    for port, instance in replicas.copies:
        entry.replicas.add(egress_port=port, instance=instance)


def decode_group(message: Any) -> MulticastGroup:
    """Return a multicast group as a switch reports it."""
    return MulticastGroup(id=message.multicast_group_id, **_replicas(message))


def decode_clone(message: Any) -> CloneSession:
    """Return a clone session as a switch reports it."""
    return CloneSession(id=message.session_id, truncate_bytes=message.packet_length_bytes, **_replicas(message))


def _replicas(message: Any) -> dict[str, Any]:
    """Decode replicas, whose ports may be numbers or byte strings."""
    return Replicas.fields(
        (
            number(replica.port) if replica.WhichOneof("port_kind") == "port" else replica.egress_port,
            replica.instance,
        )
        for replica in message.replicas
    )


def encode_register(schema: ProgramSchema, cell: RegisterValue) -> Any:
    return p4r.Entity(
        register_entry=p4r.RegisterEntry(
            register_id=schema.registers[cell.register_name].id,
            index=None if cell.index is None else p4r.Index(index=cell.index),
            data=p4d.P4Data(bitstring=canonical_bytes(cell.value)),
        )
    )


def encode_meter(schema: ProgramSchema, cell: MeterCell, reset: bool = False) -> Any:
    """Return the entity of a cell of a meter; reset: without rates, so that all packets are green."""
    return p4r.Entity(
        meter_entry=p4r.MeterEntry(
            meter_id=schema.meters[cell.meter_name].id,
            index=p4r.Index(index=cell.index),
            config=None if reset else _rates(cell.rates),
        )
    )


def _rates(rates: MeterRates) -> Any:
    return p4r.MeterConfig(
        cir=rates.committed_rate, cburst=rates.committed_burst, pir=rates.peak_rate, pburst=rates.peak_burst
    )


def encode_digest_config(digest: DigestSchema) -> Any:
    """Entity that has a switch send each digest at once, and not again until it is acknowledged or a second later."""
    config = p4r.DigestEntry.Config(max_timeout_ns=0, max_list_size=1, ack_timeout_ns=DIGEST_ACK_TIMEOUT_NS)
    return p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=digest.id, config=config))


def decode_digest(schema: ProgramSchema, message: Any) -> Digest | None:
    """Return a digest list; None for one that the program does not have."""
    digest = schema.digests.by_id(message.digest_id)
    if digest is None:
        return None
    return Digest(digest.short, tuple(_decode_fields(digest.fields, data) for data in message.data))


def _decode_fields(names: Sequence[str], data: Any) -> dict[str, int]:
    kind = data.WhichOneof("data")
    members = getattr(data, kind).members if kind in ("struct", "tuple") else [data]
    return {name: _decode_scalar(member) for name, member in zip(names, members, strict=True)}


def _decode_scalar(data: Any) -> int:
    return int(data.bool) if data.WhichOneof("data") == "bool" else number(data.bitstring)


def decode_packet_in(schema: ProgramSchema, message: Any) -> PacketIn:
    metadata = {schema.packet_in_fields[part.metadata_id]: number(part.value) for part in message.metadata}
    return PacketIn(message.payload, metadata)


# ---- Differences as updates ----


T = TypeVar("T")


class Update(NamedTuple):
    """A p4.v1.Update, and its name in error messages."""

    message: Any
    subject: str


def batches(schema: ProgramSchema, held: SwitchPlan, wanted: SwitchPlan) -> list[list[Update]]:
    """Yield the changes from one normalised plan to another in batches, in the order in which they are written.

    Updates of one Write may take effect in any order, so what must be there first is in an earlier batch.
    """
    diff = switch_diff(held, wanted)
    lasting = _tables_that_keep_prefixes(schema, held, diff)
    insert, modify, delete = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
    meter, default = partial(encode_meter, schema), partial(encode_default, schema)

    def updates(kind: int, items: Iterable[T], encode: Callable[[T], Any], name: Callable[[T], str]) -> list[Update]:
        return [Update(p4r.Update(type=kind, entity=encode(item)), name(item)) for item in items]

    def entries(kind: int, items: Iterable[Any]) -> list[Update]:
        return updates(kind, items, partial(encode_entry, schema), lambda e: f"{e.table}: {entry_text(e)}")

    def copies(kind: int, groups: Iterable[Any], sessions: Iterable[Any]) -> list[Update]:
        return [
            *updates(kind, groups, encode_group, lambda group: f"multicast group {group.id}"),
            *updates(kind, sessions, encode_clone, lambda session: f"clone session {session.id}"),
        ]

    def cells(whole: bool) -> list[Update]:
        items = (cell for cell in diff.registers if (cell.index is None) == whole)
        return updates(modify, items, partial(encode_register, schema), register_text)

    def meters(items: Iterable[Any], encode: Callable[[Any], Any]) -> list[Update]:
        return updates(modify, items, encode, lambda cell: f"{cell.meter_name}[{cell.index}]")

    return [
        [
            *entries(delete, (entry for entry in diff.entries.delete if entry.table not in lasting)),
            *copies(insert, diff.groups.insert, diff.clones.insert),
            *copies(modify, diff.groups.modify, diff.clones.modify),
            *cells(whole=True),
            *meters(diff.meters.delete, partial(meter, reset=True)),
            *meters((*diff.meters.insert, *diff.meters.modify), meter),
            *updates(modify, diff.defaults.delete, partial(default, reset=True), default_text),
        ],
        [
            *entries(insert, diff.entries.insert),
            *entries(modify, diff.entries.modify),
            *cells(whole=False),
            *updates(modify, (*diff.defaults.insert, *diff.defaults.modify), default, default_text),
        ],
        entries(delete, (entry for entry in diff.entries.delete if entry.table in lasting)),
        copies(delete, diff.groups.delete, diff.clones.delete),
    ]


def _tables_that_keep_prefixes(schema: ProgramSchema, held: SwitchPlan, diff: SwitchDiff) -> Collection[str]:
    """Return the LPM tables in which entries are deleted after others are inserted, since both fit into the table.

    Where a prefix is split, or prefixes are aggregated, no address is without a route in between.
    """
    entries = Counter(entry.table for entry in (*held.entries, *diff.entries.insert))

    def keeps(name: str) -> bool:
        table = schema.tables[name]
        prefixes = any(field.match_type == MatchType.LPM for field in table.fields) and not table.needs_priority
        return prefixes and not table.has_own_entries and entries[name] <= table.size

    return {name for name in {entry.table for entry in diff.entries.delete} if keeps(name)}
