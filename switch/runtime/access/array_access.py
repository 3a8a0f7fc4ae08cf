"""Registers, and the counters that programs index."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from switch.device import Program
from switch.runtime.access import abi
from switch.runtime.access.switch_record import SwitchRecord, fits


class ArrayAccess(SwitchRecord):
    """Registers and indirect counters of one switch. Raises as switch.device.Device says."""

    def __init__(
        self,
        program: Program,
        guard: AbstractContextManager[Any] | None = None,
        clock_us: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__(program, guard, clock_us)
        self._register_number = {name: i for i, name in enumerate(self.model.registers)}
        self._counter_number = {name: i for i, name in enumerate(self.model.indirect_counters)}

    # ---- Registers ----

    def register_read(self, register: str, index: int) -> int:
        return self._register_cells(register, index, 1)[0]

    def register_read_all(self, register: str) -> list[int]:
        return self._register_cells(register, 0, self._register(register).size)

    def register_write(self, register: str, index: int, value: int) -> None:
        cells = self._register(register)
        words = abi.word_array(
            abi.to_words([(fits(value, cells.width_bits, f"register {register}"), cells.width_bits)])
        )
        with self._guard:
            self._check(
                self._library.gb_register_set(ctypes.byref(cells), self._index(index), words),
                IndexError(f"register {register} has {cells.size} cells, no index {index}"),
            )

    # ---- Counters ----

    def counter_read(self, counter: str, index: int) -> tuple[int, int]:
        """Packets and bytes."""
        return self._counter_cells(counter, index, 1)[0]

    def counter_read_all(self, counter: str) -> list[tuple[int, int]]:
        return self._counter_cells(counter, 0, self._counter(counter).size)

    def counter_write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        cells = self._counter(counter)
        count = abi.Count(fits(packets, 64, "packets"), fits(bytes_, 64, "bytes"))
        with self._guard:
            self._check(
                self._library.gb_counter_set(ctypes.byref(cells), self._index(index), ctypes.byref(count)),
                IndexError(f"counter {counter} has {cells.size} cells, no index {index}"),
            )

    # ---- Internals ----

    def _register(self, name: str) -> Any:
        return self.record.contents.registers[self._number(self._register_number, name, "register")]

    def _register_cells(self, name: str, first: int, count: int) -> list[int]:
        cells = self._register(name)
        words_each = abi.word_count(cells.width_bits)
        words = (ctypes.c_uint64 * max(1, count * words_each))()
        with self._guard:
            self._check(
                self._library.gb_register_get(ctypes.byref(cells), self._index(first), count, words),
                IndexError(f"register {name} has {cells.size} cells, no index {first}"),
            )
        if words_each == 1:
            return words[:count]
        whole = bytes(words)
        size = 8 * words_each
        return [int.from_bytes(whole[i * size : (i + 1) * size], "little") for i in range(count)]

    def _counter(self, name: str) -> Any:
        return self.record.contents.counters[self._number(self._counter_number, name, "indirect counter")]

    def _counter_cells(self, name: str, first: int, count: int) -> list[tuple[int, int]]:
        cells = self._counter(name)
        counts = (abi.Count * max(1, count))()
        with self._guard:
            self._check(
                self._library.gb_counter_get(ctypes.byref(cells), self._index(first), count, counts),
                IndexError(f"counter {name} has {cells.size} cells, no index {first}"),
            )
        return [(c.packets, c.bytes) for c in counts[:count]]
