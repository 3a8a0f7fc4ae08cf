"""Meters: those that programs index, and those of table entries."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from switch.device import MeterCounts, MeterRates, Program
from switch.runtime.access import abi
from switch.runtime.access.array_access import ArrayAccess
from switch.runtime.access.table_access import TableAccess


class MeterAccess(TableAccess, ArrayAccess):
    """Meters of one switch, beside its tables and arrays. Raises as switch.device.Device says."""

    def __init__(
        self,
        program: Program,
        guard: AbstractContextManager[Any] | None = None,
        clock_us: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__(program, guard, clock_us)
        self._meter_number = {name: i for i, name in enumerate(self.model.indirect_meters)}

    def meter_write(self, meter: str, index: int, rates: MeterRates | None) -> None:
        """Configure one cell of an indirect meter; None turns it off, so that everything is green."""
        self._configure(partial(self._array_cell, meter, index), rates)

    def meter_counts(self, meter: str, index: int) -> MeterCounts:
        return self._counts(partial(self._array_cell, meter, index))

    def meter_counts_clear(self, meter: str, index: int) -> None:
        self._clear(partial(self._array_cell, meter, index))

    def table_meter_write(self, table: str, handle: int, rates: MeterRates | None) -> None:
        """As meter_write, of the direct meter of an entry."""
        self._configure(partial(self._entry_cell, table, handle), rates)

    def table_meter_counts(self, table: str, handle: int) -> MeterCounts:
        return self._counts(partial(self._entry_cell, table, handle))

    def table_meter_counts_clear(self, table: str, handle: int) -> None:
        self._clear(partial(self._entry_cell, table, handle))

    # ---- Internals ----

    def _array_cell(self, meter: str, index: int) -> int:
        """The cell's address; that of _entry_cell, too, is good as long as the guard is held."""
        pointer = self.record.contents.meters[self._number(self._meter_number, meter, "indirect meter")]
        cell = self._library.gb_meter_cell(pointer, self._index(index))
        if not cell:
            raise IndexError(f"meter {meter} has no index {index}")
        return int(cell)

    def _entry_cell(self, table: str, handle: int) -> int:
        wanted = self._table(table)
        if wanted.direct_meter is None:
            raise ValueError(f"table {table} has no direct meter")
        cell = self._library.gb_table_meter_cell(self._table_pointer(wanted), self._handle(handle))
        if not cell:
            raise IndexError(f"table {table} has no entry with handle {handle}")
        return int(cell)

    def _configure(self, cell: Callable[[], int], rates: MeterRates | None) -> None:
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

    def _counts(self, cell: Callable[[], int]) -> MeterCounts:
        """Packets and bytes that it has marked with each colour."""
        counts = abi.ColourCounts()
        with self._guard:
            self._library.gb_meter_counts(cell(), ctypes.byref(counts))
        return MeterCounts(*((colour.packets, colour.bytes) for colour in counts))

    def _clear(self, cell: Callable[[], int]) -> None:
        with self._guard:
            self._library.gb_meter_counts_clear(cell())
