"""Registers, through the runtime library."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

from gradbed.switch.bmv2_json.model import words_of
from gradbed.switch.state import abi
from gradbed.switch.state.record import Access, SwitchRecord, check, checked_index, number_of

_POINTER = ctypes.POINTER(abi.Register)


class Registers(Access):
    functions: ClassVar[abi.Functions] = {
        "gb_register_get": (ctypes.c_int, (_POINTER, ctypes.c_uint32, ctypes.c_uint32, abi.Words)),
        "gb_register_set": (ctypes.c_int, (_POINTER, ctypes.c_uint32, abi.ConstWords)),
    }

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
