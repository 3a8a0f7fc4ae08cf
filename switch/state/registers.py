"""Registers: their cells, their descriptions in P4Info and BMv2 JSON, and their P4Runtime entity.

P4Runtime specification 1.4, section "RegisterEntry".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradbed.switch.bmv2_json.model import ProgramModel, words_of
from gradbed.switch.p4runtime.status import RequestError
from gradbed.switch.p4runtime.values import CellCodec, Translations, cell_codec
from gradbed.switch.state import abi
from gradbed.switch.state.abi import StateAccessor, SwitchRecord, check, checked_index, number_of
from gradbed.switch.state.base import CellArray, CellEntries

# ---- Cells in the runtime library ----


class Registers(StateAccessor):
    def __init__(self, switch: SwitchRecord) -> None:
        super().__init__(switch)
        self._numbers = {name: i for i, name in enumerate(switch.model.registers)}

    def read(self, register: str, index: int) -> int:
        return self._read(register, index, 1)[0]

    def read_all(self, register: str) -> list[int]:
        return self._read(register, 0, self._register(register).size)

    def write(self, register: str, index: int, value: int) -> None:
        cells = self._register(register)
        value = abi.fits(value, cells.width_bits, f"register {register}")
        words = abi.packed([(value, cells.width_bits)])
        with self._guard:
            check(
                self._library.gb_register_set(ctypes.byref(cells), checked_index(index), words),
                IndexError(f"register {register} has {cells.size} cells, no index {index}"),
            )

    def _register(self, name: str) -> Any:
        return self._contents.registers[number_of(self._numbers, name, "register")]

    def _read(self, name: str, first: int, count: int) -> list[int]:
        cells = self._register(name)
        words_each = words_of(cells.width_bits)
        words = (ctypes.c_uint64 * max(1, count * words_each))()
        with self._guard:
            check(
                self._library.gb_register_get(ctypes.byref(cells), checked_index(first), count, words),
                IndexError(f"register {name} has {cells.size} cells, no index {first}"),
            )
        if words_each == 1:
            return words[:count]
        whole = bytes(words)
        size = abi.WORD_BYTES * words_each
        return [int.from_bytes(whole[i * size : (i + 1) * size], "little") for i in range(count)]


# ---- P4Info and BMv2 JSON ----


@dataclass(frozen=True)
class RegisterArray(CellArray):
    cell: CellCodec


def register_array(register: Any, info: Any, program: ProgramModel, names: Translations) -> RegisterArray:
    """Build it from a p4.config.v1.Register. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
    name = register.preamble.name
    in_program = program.registers.get(name)
    if in_program is None:
        raise ValueError(f"register {name!r} of the P4Info is not in the BMv2 JSON")
    try:
        cell = cell_codec(register.type_spec, info.type_info, in_program.width, names)
    except ValueError as error:
        raise ValueError(f"register {name!r}: {error}") from None
    return RegisterArray(register.preamble.id, name, in_program.size, cell)


# ---- RegisterEntry ----


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
