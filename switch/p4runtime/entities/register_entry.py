"""RegisterEntry: cells of registers. P4Runtime specification 1.4, section "RegisterEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.counter_entry import check_index
from switch.p4runtime.pipeline.pipeline import RegisterArray
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import RequestError, invalid, not_found


class RegisterEntries(EntityKind):
    oneof = "register_entry"

    def p4_id(self, message: Any) -> int:
        register_id: int = message.register_id
        return register_id

    def modify(self, message: Any) -> None:
        register = self._register(message.register_id)
        indices = self._indices(register, message)
        try:
            value = register.cell.decode(message.data)
        except RequestError as error:
            raise RequestError(error.code, f"register {register.name}: {error.message}") from None
        for index in indices:
            self._device.register_write(register.name, index, value)

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.register_id == 0:
            registers = [r for r in self._pipeline.registers.values() if role.reads(r.register_id)]
            return self._encode([(r, 0, self._device.register_read_all(r.name)) for r in registers])
        register = self._register(message.register_id)
        indices = self._indices(register, message)
        if not role.reads(register.register_id):
            return ()
        if message.HasField("index"):
            values = [self._device.register_read(register.name, indices.start)]
        else:
            values = self._device.register_read_all(register.name)
        return self._encode([(register, indices.start, values)])

    def export(self) -> Iterator[Any]:
        for register in self._pipeline.registers.values():
            for index, value in enumerate(self._device.register_read_all(register.name)):
                if value:
                    update = p4r.Update(type=p4r.Update.MODIFY)
                    _fill(update.entity.register_entry, register, index, value)
                    yield update

    def _register(self, register_id: int) -> RegisterArray:
        register = self._pipeline.registers.get(register_id)
        if register is None:
            raise (
                not_found(f"there is no register {register_id}") if register_id else invalid("register_id is not set")
            )
        return register

    def _indices(self, register: RegisterArray, message: Any) -> range:
        if not message.HasField("index"):
            return range(register.size)
        return check_index(message.index.index, register.size, f"register {register.name}")

    @staticmethod
    def _encode(found: list[tuple[RegisterArray, int, list[int]]]) -> Iterator[Any]:
        for register, first, values in found:
            for index, value in enumerate(values, first):
                entity = p4r.Entity()
                _fill(entity.register_entry, register, index, value)
                yield entity


def _fill(entry: Any, register: RegisterArray, index: int, value: int) -> None:
    entry.register_id = register.register_id
    entry.index.index = index
    register.cell.encode(value, entry.data)
