"""ExternEntry: externs that P4Runtime knows nothing of. P4Runtime specification 1.4, section "ExternEntry".

The entry is a p4.v1.P4Data with all that the object keeps. Written without an entry, the object starts afresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4d, p4r

from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.values.status import invalid, not_found, unimplemented
from gradbed.switch.state.base import EntityKind
from gradbed.switch.state.externs.codec import ExternObject
from gradbed.switch.state.externs.kind import ExternState


class ExternEntries(EntityKind):
    oneof = "extern_entry"

    def __init__(self, states: Mapping[str, ExternState], objects: Mapping[int, ExternObject]) -> None:
        """`states` by name, `objects` by P4Info id."""
        self._states = states
        self._objects = objects

    def p4_id(self, message: Any) -> int:
        extern_id: int = message.extern_id
        return extern_id

    def modify(self, message: Any) -> None:
        if not self._objects:
            raise unimplemented("the program has no externs but v1model's")
        if not message.extern_id:
            raise invalid("extern_id is not set")
        [found] = self._wanted(message)
        state = self._states[found.name]
        if not message.HasField("entry"):
            state.clear()
            return
        entry = p4d.P4Data()
        if not message.entry.Unpack(entry):
            raise invalid(f"the entry of extern {found.name} is a p4.v1.P4Data, not {message.entry.type_url}")
        state.write(entry)

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        found = [each for each in self._wanted(message) if role.reads(each.p4_id)]
        return [p4r.Entity(extern_entry=self._entry(each, self._states[each.name].read())) for each in found]

    def export(self) -> Iterator[Any]:
        for each in self._objects.values():
            update = p4r.Update(type=p4r.Update.MODIFY)
            update.entity.extern_entry.CopyFrom(self._entry(each, self._states[each.name].read()))
            yield update

    def _wanted(self, message: Any) -> list[ExternObject]:
        """One, or all of a type, or all. Raises NOT_FOUND."""
        found = [
            each
            for each in self._objects.values()
            if message.extern_type_id in (0, each.type_id) and message.extern_id in (0, each.p4_id)
        ]
        if message.extern_id and not found:
            raise not_found(f"there is no extern {message.extern_id} of type {message.extern_type_id}")
        return found

    @staticmethod
    def _entry(extern: ExternObject, data: Any) -> Any:
        entry = p4r.ExternEntry(extern_type_id=extern.type_id, extern_id=extern.p4_id)
        entry.entry.Pack(data)
        return entry
