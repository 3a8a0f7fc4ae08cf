"""Multicast groups and clone sessions, which the data plane keeps beside the program, as P4Runtime entities.

P4Runtime specification 1.4, sections "PacketReplicationEngineEntry", "MulticastGroupEntry" and
"CloneSessionEntry".
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from finsy.proto import p4r

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import Replica
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import RequestError, exists_already, invalid, not_found, unimplemented
from gradbed.switch.p4runtime.values import decode_unsigned, encode_unsigned
from gradbed.switch.runtime.library import ENGINE_HEADERS
from gradbed.switch.state.base import EntityKind

# ---- Groups and sessions in the data plane ----


MAX_PORTS = ENGINE_HEADERS.constant("GB_MAX_PORTS")
_GREATEST_PRIORITY = ENGINE_HEADERS.constant("GB_PRIORITIES") - 1
_UINT32 = 2**32 - 1


@ENGINE_HEADERS.declare("gb_replica")
class ReplicaStruct(ctypes.Structure):
    """A copy that a group or a session makes of a packet."""


class Replication:
    def __init__(self, call: Callable[..., int], device_id: int, name: str) -> None:
        """Create an empty packet replication engine.

        `call`: calls a function of the engine by its name. `name`: name of the switch, for errors.
        """
        self._call = call
        self._device_id = device_id
        self._name = name

    def set_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace. Group ids are 1..65535, instances 0..65535; several copies may go to one port."""
        if not 0 < group_id < 2**16:
            raise ValueError(f"multicast group {group_id} is not in 1..65535")
        array = _replica_array(replicas)
        if self._call("multicast_group_set", self._device_id, group_id, array, len(replicas)) < 0:
            raise MemoryError

    def delete_group(self, group_id: int) -> None:
        if self._call("multicast_group_delete", self._device_id, group_id & _UINT32) < 0:
            raise KeyError(f"{self._name} has no multicast group {group_id}")

    def set_session(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int = 0, class_of_service: int = 0
    ) -> None:
        """Create or replace: where clones of that session go.

        Session ids are 0..65535. truncate_bytes: longest frame of a clone when it leaves; 0 is no limit.
        class_of_service: standard_metadata.priority of the clones, 0..7.
        """
        if not 0 <= class_of_service <= _GREATEST_PRIORITY:
            raise ValueError(f"class of service {class_of_service} is not in 0..{_GREATEST_PRIORITY}")
        if not 0 <= session_id < 2**16:
            raise ValueError(f"clone session {session_id} is not in 0..65535")
        array = _replica_array(replicas)
        arguments = (self._device_id, session_id, array, len(replicas), truncate_bytes, class_of_service)
        if self._call("clone_session_set", *arguments) < 0:
            raise MemoryError

    def delete_session(self, session_id: int) -> None:
        if self._call("clone_session_delete", self._device_id, session_id & _UINT32) < 0:
            raise KeyError(f"{self._name} has no clone session {session_id}")


def _replica_array(replicas: Sequence[Replica]) -> object:
    for replica in replicas:
        if not 0 <= replica.egress_port < MAX_PORTS:
            raise ValueError(f"egress port {replica.egress_port} is not in 0..{MAX_PORTS - 1}")
        if not 0 <= replica.instance < 2**16:
            raise ValueError(f"instance {replica.instance} is not in 0..65535")
    return (ReplicaStruct * len(replicas))(*(ReplicaStruct(r.egress_port, r.instance) for r in replicas))


# ---- Replicas between messages and the device ----


class Widths(NamedTuple):
    """Widths of a program's numbers of ports, multicast groups and replicas' instances, in bits."""

    port: int = 9
    group: int = 16
    instance: int = 16


def widths_bits_of(program: ProgramModel) -> Widths:
    """Return those of v1model where the program does not name them."""
    header = program.headers.get("standard_metadata")
    fields = {field.name: field.width for field in header.type.fields} if header else {}
    names = ("egress_spec", "mcast_grp", "egress_rid")
    return Widths._make(fields.get(name, usual) for name, usual in zip(names, Widths(), strict=True))


def decode_replicas(messages: Iterable[Any], widths_bits: Widths) -> list[Replica]:
    """Return the replicas; raise RequestError unless ports and instances fit and every (port, instance) is there
    once."""
    replicas = [_decode(message, widths_bits) for message in messages]
    if len(set(replicas)) != len(replicas):
        raise invalid("two replicas have the same port and instance")
    return replicas


def canonical_replicas(messages: Iterable[Any]) -> list[Any]:
    """Return the valid messages as a client reads them back: port in the field it was written in, shortest byte
    strings."""
    return [_canonical(message) for message in messages]


def _decode(message: Any, widths_bits: Widths) -> Replica:
    if message.backup_replicas:
        raise unimplemented("backup replicas are not supported: a replica whose port is down is lost")
    instance: int = message.instance
    if instance >> widths_bits.instance:
        raise invalid(f"replica instance {instance} does not fit in {widths_bits.instance} bits")
    kind = message.WhichOneof("port_kind")
    if kind is None:
        raise invalid("a replica has no port")
    if kind == "egress_port":
        port: int = message.egress_port
        if port >> widths_bits.port:
            raise invalid(f"port {port} does not fit in {widths_bits.port} bits")
        return Replica(port, instance)
    try:
        return Replica(decode_unsigned(message.port, widths_bits.port), instance)
    except RequestError as error:
        raise RequestError(error.code, f"port of a replica: {error.message}") from None


def _canonical(message: Any) -> Any:
    replica = p4r.Replica(instance=message.instance)
    if message.WhichOneof("port_kind") == "egress_port":
        replica.egress_port = message.egress_port
    else:
        replica.port = encode_unsigned(int.from_bytes(message.port, "big"))
    return replica


# ---- PacketReplicationEngineEntry ----


GREATEST_SESSION = (1 << 16) - 1
GREATEST_CLASS_OF_SERVICE = 7


class _Replicated(EntityKind):
    """Entities that are made and deleted, under numbers from 1 on, and outlive a program on the device."""

    what: ClassVar[str]
    number_field: ClassVar[str]

    def __init__(self, device: Replication | None, widths_bits: Widths) -> None:
        """Create no entries; a `device` of None means that they are only remembered, not installed."""
        self._device = device
        self._widths_bits = widths_bits
        self._entries: dict[int, Any] = {}

    def p4_id(self, message: Any) -> int:
        return 0

    def insert(self, message: Any) -> None:
        number = self._number(message)
        if number in self._entries:
            raise exists_already(f"{self.what} {number} exists")
        self._entries[number] = self._set(number, message)

    def modify(self, message: Any) -> None:
        number = self._number(message)
        self._existing(number)
        self._entries[number] = self._set(number, message)

    def delete(self, message: Any) -> None:
        number = self._number(message)
        self._existing(number)
        if self._device is not None:
            self._delete(self._device, number)
        del self._entries[number]

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        number = getattr(message, self.number_field)
        entries = [self._existing(number)] if number else list(self._entries.values())
        return (self._entity(entry) for entry in entries)

    def clear(self) -> None:
        if self._device is not None:
            for number in self._entries:
                # A device may have dropped them by itself when it loaded the program.
                with contextlib.suppress(KeyError):
                    self._delete(self._device, number)

    def export(self) -> Iterator[Any]:
        for entry in self._entries.values():
            yield p4r.Update(type=p4r.Update.INSERT, entity=self._entity(entry))

    def _check(self, number: int) -> None:
        """Raise RequestError for a number that cannot be."""
        raise NotImplementedError

    def _set(self, number: int, message: Any) -> Any:
        """Install a valid message; the message as it is read back."""
        raise NotImplementedError

    def _delete(self, device: Replication, number: int) -> None:
        """Delete the object. Raises KeyError if there is none."""
        raise NotImplementedError

    def _number(self, message: Any) -> int:
        number: int = getattr(message, self.number_field)
        if number == 0:
            raise invalid(f"{self.number_field} is not set")
        self._check(number)
        return number

    def _existing(self, number: int) -> Any:
        entry = self._entries.get(number)
        if entry is None:
            raise not_found(f"there is no {self.what} {number}")
        return entry

    def _entity(self, entry: Any) -> Any:
        entity = p4r.Entity()
        getattr(entity.packet_replication_engine_entry, self.oneof).CopyFrom(entry)
        return entity


class MulticastGroups(_Replicated):
    oneof = "multicast_group_entry"
    what = "multicast group"
    number_field = "multicast_group_id"

    def _check(self, number: int) -> None:
        if number >> self._widths_bits.group:
            raise invalid(f"multicast group {number} does not fit in {self._widths_bits.group} bits")

    def _set(self, number: int, message: Any) -> Any:
        replicas = decode_replicas(message.replicas, self._widths_bits)
        if self._device is not None:
            self._device.set_group(number, replicas)
        return p4r.MulticastGroupEntry(
            multicast_group_id=number, replicas=canonical_replicas(message.replicas), metadata=message.metadata
        )

    def _delete(self, device: Replication, number: int) -> None:
        device.delete_group(number)


class CloneSessions(_Replicated):
    oneof = "clone_session_entry"
    what = "clone session"
    number_field = "session_id"

    def _check(self, number: int) -> None:
        if number > GREATEST_SESSION:
            raise invalid(f"clone sessions are 1..{GREATEST_SESSION}, got {number}")

    def _set(self, number: int, message: Any) -> Any:
        if message.class_of_service > GREATEST_CLASS_OF_SERVICE:
            raise invalid(f"class_of_service is v1model's priority, 0..{GREATEST_CLASS_OF_SERVICE}")
        if message.packet_length_bytes < 0:
            raise invalid("packet_length_bytes is negative")
        replicas = decode_replicas(message.replicas, self._widths_bits)
        if self._device is not None:
            self._device.set_session(number, replicas, message.packet_length_bytes, message.class_of_service)
        return p4r.CloneSessionEntry(
            session_id=number,
            replicas=canonical_replicas(message.replicas),
            class_of_service=message.class_of_service,
            packet_length_bytes=message.packet_length_bytes,
        )

    def _delete(self, device: Replication, number: int) -> None:
        device.delete_session(number)


class PacketReplicationEngine(EntityKind):
    oneof = "packet_replication_engine_entry"

    def __init__(self, device: Replication | None, widths_bits: Widths) -> None:
        """Create no entries; a `device` of None means that they are only remembered, not installed."""
        kinds = (MulticastGroups(device, widths_bits), CloneSessions(device, widths_bits))
        self._kinds: dict[str | None, EntityKind] = {kind.oneof: kind for kind in kinds}

    def p4_id(self, message: Any) -> int:
        return 0

    def insert(self, message: Any) -> None:
        kind, inner = self._inner(message)
        kind.insert(inner)

    def modify(self, message: Any) -> None:
        kind, inner = self._inner(message)
        kind.modify(inner)

    def delete(self, message: Any) -> None:
        kind, inner = self._inner(message)
        kind.delete(inner)

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        kind, inner = self._inner(message)
        return kind.read(inner, role)

    def clear(self) -> None:
        for kind in self._kinds.values():
            kind.clear()

    def export(self) -> Iterator[Any]:
        for kind in self._kinds.values():
            yield from kind.export()

    def _inner(self, message: Any) -> tuple[EntityKind, Any]:
        kind = self._kinds.get(message.WhichOneof("type"))
        if kind is None:
            raise invalid("a packet_replication_engine_entry is a multicast group or a clone session, got neither")
        return kind, getattr(message, kind.oneof)
