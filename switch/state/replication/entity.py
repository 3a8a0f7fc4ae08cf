"""PacketReplicationEngineEntry: multicast groups and clone sessions under one roof.

P4Runtime specification 1.4, sections "MulticastGroupEntry" and "CloneSessionEntry".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from finsy.proto import p4r

from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.values.status import exists_already, invalid, not_found
from gradbed.switch.state.base import EntityKind
from gradbed.switch.state.replication.access import Replication
from gradbed.switch.state.replication.codec import Widths, canonical_replicas, decode_replicas

GREATEST_SESSION = (1 << 16) - 1
GREATEST_CLASS_OF_SERVICE = 7


class _Replicated(EntityKind):
    """Entities that are made and deleted, under numbers from 1 on, and outlive a program on the device."""

    what: ClassVar[str]
    number_field: ClassVar[str]

    def __init__(self, device: Replication | None, widths_bits: Widths) -> None:
        """`device` None: nothing is installed, only remembered."""
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
        """Raises KeyError if there is none."""
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
        """`device` None: nothing is installed, only remembered."""
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
