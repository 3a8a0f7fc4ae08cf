"""MulticastGroupEntry. P4Runtime specification 1.4, section "MulticastGroupEntry"."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.replication.replicas import canonical_replicas, decode_replicas
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import exists_already, invalid, not_found


class MulticastGroups(EntityKind):
    oneof = "multicast_group_entry"

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        super().__init__(device, pipeline)
        self._groups: dict[int, Any] = {}

    def p4_id(self, message: Any) -> int:
        return 0

    def insert(self, message: Any) -> None:
        group_id = self._group_id(message)
        if group_id in self._groups:
            raise exists_already(f"multicast group {group_id} exists")
        self._set(group_id, message)

    def modify(self, message: Any) -> None:
        group_id = self._group_id(message)
        self._existing(group_id)
        self._set(group_id, message)

    def delete(self, message: Any) -> None:
        group_id = self._group_id(message)
        self._existing(group_id)
        self._device.multicast_group_delete(group_id)
        del self._groups[group_id]

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        group_id = message.multicast_group_id
        groups = [self._existing(group_id)] if group_id else list(self._groups.values())
        return (_entity(group) for group in groups)

    def clear(self) -> None:
        for group_id in self._groups:
            # A device may have dropped its groups by itself when it loaded the program.
            with contextlib.suppress(KeyError):
                self._device.multicast_group_delete(group_id)

    def export(self) -> Iterator[Any]:
        for group in self._groups.values():
            yield p4r.Update(type=p4r.Update.INSERT, entity=_entity(group))

    def _set(self, group_id: int, message: Any) -> None:
        replicas = decode_replicas(message.replicas, self._pipeline)
        self._device.multicast_group_set(group_id, replicas)
        self._groups[group_id] = p4r.MulticastGroupEntry(
            multicast_group_id=group_id,
            replicas=canonical_replicas(message.replicas),
            metadata=message.metadata,
        )

    def _group_id(self, message: Any) -> int:
        group_id: int = message.multicast_group_id
        if group_id == 0:
            raise invalid("multicast_group_id is not set")
        if group_id >> self._pipeline.group_width_bits:
            raise invalid(f"multicast group {group_id} does not fit in {self._pipeline.group_width_bits} bits")
        return group_id

    def _existing(self, group_id: int) -> Any:
        group = self._groups.get(group_id)
        if group is None:
            raise not_found(f"there is no multicast group {group_id}")
        return group


def _entity(group: Any) -> Any:
    entity = p4r.Entity()
    entity.packet_replication_engine_entry.multicast_group_entry.CopyFrom(group)
    return entity
