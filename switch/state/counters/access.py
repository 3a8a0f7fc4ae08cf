"""Counters that programs index, through the runtime library. Those of table entries are the tables'."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

from gradbed.switch.device import Counts
from gradbed.switch.state import abi
from gradbed.switch.state.record import Access, SwitchRecord, check, checked_index, number_of

_POINTER = ctypes.POINTER(abi.Counter)
_COUNTS = ctypes.POINTER(abi.Count)


class Counters(Access):
    functions: ClassVar[abi.Functions] = {
        "gb_counter_get": (ctypes.c_int, (_POINTER, ctypes.c_uint32, ctypes.c_uint32, _COUNTS)),
        "gb_counter_set": (ctypes.c_int, (_POINTER, ctypes.c_uint32, _COUNTS)),
    }

    def __init__(self, switch: SwitchRecord) -> None:
        super().__init__(switch)
        self._numbers = {name: i for i, name in enumerate(switch.model.indirect_counters)}

    def read(self, counter: str, index: int) -> Counts:
        return self._read(counter, index, 1)[0]

    def read_all(self, counter: str) -> list[Counts]:
        return self._read(counter, 0, self._counter(counter).size)

    def write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        cells = self._counter(counter)
        count = abi.Count(abi.fits(packets, 64, "packets"), abi.fits(bytes_, 64, "bytes"))
        with self._guard:
            check(
                self._library.gb_counter_set(ctypes.byref(cells), checked_index(index), ctypes.byref(count)),
                IndexError(f"counter {counter} has {cells.size} cells, no index {index}"),
            )

    def _counter(self, name: str) -> Any:
        return self._contents.counters[number_of(self._numbers, name, "indirect counter")]

    def _read(self, name: str, first: int, count: int) -> list[Counts]:
        cells = self._counter(name)
        counts = (abi.Count * max(1, count))()
        with self._guard:
            check(
                self._library.gb_counter_get(ctypes.byref(cells), checked_index(first), count, counts),
                IndexError(f"counter {name} has {cells.size} cells, no index {first}"),
            )
        numbers = memoryview(counts).cast("B").cast("Q").tolist()[: 2 * count]
        return list(zip(numbers[::2], numbers[1::2], strict=True))
