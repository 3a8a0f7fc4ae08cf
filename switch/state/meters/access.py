"""Meters that programs index, and the cells of all meters, through the runtime library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar

from gradbed.switch.device import MeterCounts, MeterRates
from gradbed.switch.state import abi
from gradbed.switch.state.record import Access, SwitchRecord, checked_index, number_of

ColourCounts = abi.Count * 3
"""Green, yellow, red."""

CELL_FUNCTIONS: abi.Functions = {
    "gb_meter_configure": (None, (ctypes.c_void_p, *(ctypes.c_double,) * 4)),
    "gb_meter_configure_single_rate": (None, (ctypes.c_void_p, *(ctypes.c_double,) * 3)),
    "gb_meter_reset": (None, (ctypes.c_void_p,)),
    "gb_meter_counts": (None, (ctypes.c_void_p, ctypes.POINTER(ColourCounts))),
    "gb_meter_counts_clear": (None, (ctypes.c_void_p,)),
}

Find = Callable[[], int]
"""The address of a cell, which is good as long as the guard is held."""


class MeterCells:
    """What can be done with one cell, of whatever meter. One without rates marks everything green; new rates start
    with full buckets."""

    def __init__(self, library: ctypes.CDLL, guard: AbstractContextManager[Any]) -> None:
        """library: with CELL_FUNCTIONS."""
        self._library = library
        self._guard = guard

    def configure(self, cell: Find, rates: MeterRates | None) -> None:
        if rates is None:
            with self._guard:
                self._library.gb_meter_reset(cell())
            return
        values = (rates.committed_per_s, rates.committed_burst, rates.peak_per_s, rates.peak_burst)
        if any(v < 0 for v in (*values, rates.excess_burst or 0)):
            raise ValueError("meter rates and bursts are not negative")
        with self._guard:
            if rates.excess_burst is None:
                self._library.gb_meter_configure(cell(), *values)
            else:
                self._library.gb_meter_configure_single_rate(cell(), *values[:2], rates.excess_burst)

    def counts(self, cell: Find) -> MeterCounts:
        counts = ColourCounts()
        with self._guard:
            self._library.gb_meter_counts(cell(), ctypes.byref(counts))
        return MeterCounts(*((colour.packets, colour.bytes) for colour in counts))

    def clear(self, cell: Find) -> None:
        with self._guard:
            self._library.gb_meter_counts_clear(cell())


class Meters(Access):
    functions: ClassVar[abi.Functions] = {
        "gb_meter_cell": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_uint32)),
        **CELL_FUNCTIONS,
    }

    def __init__(self, switch: SwitchRecord) -> None:
        super().__init__(switch)
        self._numbers = {name: i for i, name in enumerate(switch.model.indirect_meters)}
        self._cells = MeterCells(self._library, self._guard)

    def write(self, meter: str, index: int, rates: MeterRates | None) -> None:
        """Configure a cell; None turns it off, so that everything is green."""
        self._cells.configure(partial(self._cell, meter, index), rates)

    def counts(self, meter: str, index: int) -> MeterCounts:
        return self._cells.counts(partial(self._cell, meter, index))

    def clear_counts(self, meter: str, index: int) -> None:
        self._cells.clear(partial(self._cell, meter, index))

    def _cell(self, meter: str, index: int) -> int:
        pointer = self._contents.meters[number_of(self._numbers, meter, "indirect meter")]
        cell = self._library.gb_meter_cell(pointer, checked_index(index))
        if not cell:
            raise IndexError(f"meter {meter} has no index {index}")
        return int(cell)
