"""RegisterEntry: cells of registers. P4Runtime specification 1.4, section "RegisterEntry"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradbed.switch.p4runtime.values.status import RequestError
from gradbed.switch.state.base import CellEntries
from gradbed.switch.state.registers.access import Registers
from gradbed.switch.state.registers.codec import RegisterArray


class RegisterEntries(CellEntries[RegisterArray]):
    oneof = "register_entry"
    what = "register"

    def __init__(self, registers: Registers, arrays: Mapping[int, RegisterArray]) -> None:
        super().__init__(arrays)
        self._registers = registers

    def modify(self, message: Any) -> None:
        register, indices = self._addressed(message)
        try:
            value = register.cell.decode(message.data)
        except RequestError as error:
            raise RequestError(error.code, f"register {register.name}: {error.message}") from None
        for index in indices:
            self._registers.write(register.name, index, value)

    def export(self) -> Iterator[Any]:
        for register in self._arrays.values():
            for index, value in enumerate(self._registers.read_all(register.name)):
                if value:
                    yield self._update(register, index, value)

    def _cells(self, array: RegisterArray, indices: range, message: Any) -> Sequence[int]:
        if len(indices) == 1:
            return [self._registers.read(array.name, indices.start)]
        return self._registers.read_all(array.name)

    def _fill(self, entry: Any, array: RegisterArray, index: int, cell: int) -> None:
        entry.register_id = array.p4_id
        entry.index.index = index
        array.cell.encode(cell, entry.data)
