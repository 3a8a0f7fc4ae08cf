"""ValueSetEntry: members of parser value sets. P4Runtime specification 1.4, section "ValueSetEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4r

from gradbed.switch.p4runtime.pipeline.keys import Key
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.values.status import exhausted, exists_already
from gradbed.switch.state.base import EntityKind, known
from gradbed.switch.state.value_sets.access import ValueSets
from gradbed.switch.state.value_sets.codec import ValueSetCodec


class ValueSetEntries(EntityKind):
    oneof = "value_set_entry"

    def __init__(self, value_sets: ValueSets, codecs: Mapping[int, ValueSetCodec]) -> None:
        self._value_sets = value_sets
        self._codecs = codecs
        self._members: dict[int, list[Key]] = {value_set_id: [] for value_set_id in codecs}

    def p4_id(self, message: Any) -> int:
        value_set_id: int = message.value_set_id
        return value_set_id

    def modify(self, message: Any) -> None:
        codec = known(self._codecs, message.value_set_id, "value set")
        if len(message.members) > codec.size:
            raise exhausted(f"value set {codec.name} holds {codec.size} members, got {len(message.members)}")
        keys = [codec.decode(member) for member in message.members]
        if len(set(keys)) != len(keys):
            raise exists_already(f"value set {codec.name}: two members are the same")
        self._value_sets.write(codec.name, codec.device_members(keys))
        self._members[codec.value_set_id] = keys

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.value_set_id:
            wanted = [known(self._codecs, message.value_set_id, "value set")]
        else:
            wanted = list(self._codecs.values())
        found = [(codec, self._members[codec.value_set_id]) for codec in wanted if role.reads(codec.value_set_id)]
        return (_entity(*one) for one in found)

    def export(self) -> Iterator[Any]:
        for value_set_id, keys in self._members.items():
            if keys:
                entity = _entity(self._codecs[value_set_id], keys)
                yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def _entity(codec: ValueSetCodec, keys: list[Key]) -> Any:
    entity = p4r.Entity()
    entity.value_set_entry.value_set_id = codec.value_set_id
    for key in keys:
        codec.encode(key, entity.value_set_entry.members.add())
    return entity
