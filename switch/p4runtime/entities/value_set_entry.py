"""ValueSetEntry: members of parser value sets. P4Runtime specification 1.4, section "ValueSetEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.pipeline.keys import Key
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.pipeline.value_sets import ValueSetCodec
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import exhausted, exists_already, invalid, not_found


class ValueSetEntries(EntityKind):
    oneof = "value_set_entry"

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        super().__init__(device, pipeline)
        self._members: dict[int, list[Key]] = {value_set_id: [] for value_set_id in pipeline.value_sets}

    def p4_id(self, message: Any) -> int:
        value_set_id: int = message.value_set_id
        return value_set_id

    def modify(self, message: Any) -> None:
        codec = self._codec(message.value_set_id)
        if len(message.members) > codec.size:
            raise exhausted(f"value set {codec.name} holds {codec.size} members, got {len(message.members)}")
        keys = [codec.decode(member) for member in message.members]
        if len(set(keys)) != len(keys):
            raise exists_already(f"value set {codec.name}: two members are the same")
        self._device.value_set_write(codec.name, codec.device_members(keys))
        self._members[codec.value_set_id] = keys

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.value_set_id:
            wanted = [self._codec(message.value_set_id)]
        else:
            wanted = list(self._pipeline.value_sets.values())
        found = [(codec, self._members[codec.value_set_id]) for codec in wanted if role.reads(codec.value_set_id)]
        return (_entity(*one) for one in found)

    def export(self) -> Iterator[Any]:
        for value_set_id, keys in self._members.items():
            if keys:
                entity = _entity(self._pipeline.value_sets[value_set_id], keys)
                yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)

    def _codec(self, value_set_id: int) -> ValueSetCodec:
        codec = self._pipeline.value_sets.get(value_set_id)
        if codec is None:
            if not value_set_id:
                raise invalid("value_set_id is not set")
            raise not_found(f"there is no value set {value_set_id}")
        return codec


def _entity(codec: ValueSetCodec, keys: list[Key]) -> Any:
    entity = p4r.Entity()
    entity.value_set_entry.value_set_id = codec.value_set_id
    for key in keys:
        codec.encode(key, entity.value_set_entry.members.add())
    return entity
