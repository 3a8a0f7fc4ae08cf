"""ExternEntry: externs that P4Runtime knows nothing of. v1model has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import not_found, unimplemented
from switch.state.base import EntityKind


class ExternEntries(EntityKind):
    oneof = "extern_entry"

    def p4_id(self, message: Any) -> int:
        extern_id: int = message.extern_id
        return extern_id

    def insert(self, message: Any) -> NoReturn:
        raise unimplemented("v1model has no extern_entry")

    modify = insert
    delete = insert

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.extern_id:
            raise not_found(f"there is no extern {message.extern_id}")
        return ()

    def export(self) -> Iterator[Any]:
        return iter(())
