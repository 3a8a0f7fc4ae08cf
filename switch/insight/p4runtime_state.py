"""The state of a switch as P4Runtime entities: read from one that runs, written to the one that is traced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc

from gradbed.common.errors import UserError
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import RequestError, StatusCode
from gradbed.switch.state.device import Device, objects_of
from gradbed.switch.state.pipeline import ForwardingPipeline
from gradbed.switch.state.running_device import ForwardingState

_TIMEOUT_S = 60.0
_CHANNEL_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0))
_ADMINISTRATOR = Role("")


@dataclass(frozen=True)
class SwitchSnapshot:
    """The pipeline and the state of a switch, except direct counters."""

    p4info: Any
    device_config: bytes
    updates: tuple[Any, ...]
    """p4.v1.Update messages that lead from the freshly loaded pipeline to what the switch holds."""
    unread: tuple[str, ...]
    """Kinds of entities that the switch does not let read."""


def read_switch(address: str, device_id: int) -> SwitchSnapshot:
    """Read what a running switch holds, by P4Runtime alone.

    Raises UserError if it cannot be reached or runs no pipeline.
    """
    with grpc.insecure_channel(address, options=_CHANNEL_OPTIONS) as channel:
        try:
            return _Reader(p4r_grpc.P4RuntimeStub(channel), device_id).snapshot()
        except grpc.RpcError as error:
            details = " ".join((error.details() or "").split())
            raise UserError(f"switch {device_id} at {address}: {error.code().name} {details}") from None


class _Reader:
    def __init__(self, stub: Any, device_id: int) -> None:
        self._stub = stub
        self._device_id = device_id

    def snapshot(self) -> SwitchSnapshot:
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self._device_id)
        config = self._stub.GetForwardingPipelineConfig(request, timeout=_TIMEOUT_S).config
        if not config.p4_device_config:
            raise UserError(f"switch {self._device_id} runs no pipeline that could be traced")
        updates: list[Any] = []
        unread = []
        for what, update_type, wanted in _wanted(config.p4info):
            try:
                updates += [p4r.Update(type=update_type, entity=entity) for entity in self._read(wanted)]
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNIMPLEMENTED:
                    raise
                unread.append(what)
        kept = tuple(update for update in updates if _is_state(update.entity))
        return SwitchSnapshot(config.p4info, config.p4_device_config, kept, tuple(dict.fromkeys(unread)))

    def _read(self, entity: Any) -> Iterator[Any]:
        request = p4r.ReadRequest(device_id=self._device_id, entities=[entity])
        for response in self._stub.Read(request, timeout=_TIMEOUT_S):
            yield from response.entities


def _wanted(info: Any) -> Iterator[tuple[str, int, Any]]:
    """Yield what to read: name, type of the update that writes it, and entity; what others refer to comes first."""
    insert, modify = p4r.Update.INSERT, p4r.Update.MODIFY
    replication = p4r.PacketReplicationEngineEntry
    for profile in info.action_profiles:
        number = profile.preamble.id
        member = p4r.ActionProfileMember(action_profile_id=number)
        yield "action profiles", insert, p4r.Entity(action_profile_member=member)
        yield (
            "action profiles",
            insert,
            p4r.Entity(action_profile_group=p4r.ActionProfileGroup(action_profile_id=number)),
        )
    metered = {meter.direct_table_id for meter in info.direct_meters}
    for table in info.tables:
        number = table.preamble.id
        if not table.is_const_table and table.match_fields:
            entry = p4r.TableEntry(table_id=number)
            if number in metered:
                entry.meter_config.SetInParent()
            yield "tables", insert, p4r.Entity(table_entry=entry)
        if not table.const_default_action_id and not table.implementation_id:
            default = p4r.TableEntry(table_id=number, is_default_action=True)
            yield "default actions", modify, p4r.Entity(table_entry=default)
    for what, kind, things in (
        ("registers", "register", info.registers),
        ("counters", "counter", info.counters),
        ("meters", "meter", info.meters),
        ("value sets", "value_set", info.value_sets),
        ("externs", "extern", objects_of(info, "externs")),
    ):
        for thing in things:
            entity = p4r.Entity()
            setattr(getattr(entity, f"{kind}_entry"), f"{kind}_id", thing.preamble.id)
            yield what, modify, entity
    group = replication(multicast_group_entry=p4r.MulticastGroupEntry())
    yield "multicast groups", insert, p4r.Entity(packet_replication_engine_entry=group)
    session = replication(clone_session_entry=p4r.CloneSessionEntry())
    yield "clone sessions", insert, p4r.Entity(packet_replication_engine_entry=session)


def _is_state(entity: Any) -> bool:
    """Return False for what a freshly loaded program has already."""
    kind = entity.WhichOneof("entity")
    if kind == "table_entry":
        return not entity.table_entry.is_const
    if kind == "register_entry":
        data = entity.register_entry.data
        return data.WhichOneof("data") != "bitstring" or any(data.bitstring)
    if kind == "counter_entry":
        counts = entity.counter_entry.data
        return bool(counts.packet_count or counts.byte_count)
    return True


def write_updates(
    device: Device, pipeline: ForwardingPipeline, updates: Iterable[Any], *, replace: bool = False
) -> tuple[str, ...]:
    """Bring a device that has just loaded the pipeline to that state.

    replace: the program's own entries go, as far as they are not const, since the updates have what is left of them.
    UserError for what does not fit; returns, in words, what this switch does not implement.
    """
    state = ForwardingState(device, pipeline)
    deletions = _initial_entries(state, pipeline) if replace else []
    outcomes = state.write([*deletions, *map(_plain, updates)], _ADMINISTRATOR)
    missing = []
    for outcome in outcomes:
        if outcome is None:
            continue
        if outcome.code != StatusCode.UNIMPLEMENTED:
            raise UserError(_one_line(outcome))
        missing.append(_one_line(outcome))
    return tuple(dict.fromkeys(missing))


def _initial_entries(state: ForwardingState, pipeline: ForwardingPipeline) -> list[Any]:
    """Return updates that delete the entries which the program has brought along and which are not const."""
    deletions = []
    for table_id in pipeline.tables:
        entities = state.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=table_id)), _ADMINISTRATOR)
        deletions += [
            p4r.Update(type=p4r.Update.DELETE, entity=entity)
            for entity in entities
            if not entity.table_entry.is_const
        ]
    return deletions


def _plain(update: Any) -> Any:
    """Return the entity without timeouts: no time passes while a packet is traced."""
    if update.entity.WhichOneof("entity") != "table_entry":
        return update
    plain = p4r.Update()
    plain.CopyFrom(update)
    plain.entity.table_entry.idle_timeout_ns = 0
    plain.entity.table_entry.ClearField("time_since_last_hit")
    return plain


def _one_line(error: RequestError) -> str:
    return " ".join(str(error.message).split())
