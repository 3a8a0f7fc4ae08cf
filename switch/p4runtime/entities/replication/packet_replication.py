"""PacketReplicationEngineEntry: multicast groups and clone sessions under one roof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.replication.clone_session import CloneSessions
from switch.p4runtime.entities.replication.multicast_group import MulticastGroups
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import invalid


class PacketReplicationEngine(EntityKind):
    oneof = "packet_replication_engine_entry"

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        super().__init__(device, pipeline)
        self._kinds: dict[str | None, EntityKind] = {
            kind.oneof: kind for kind in (MulticastGroups(device, pipeline), CloneSessions(device, pipeline))
        }

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
