"""One meter cell, of an array or of a table entry: its rates, and what it has marked."""

from __future__ import annotations

import ctypes
from typing import Any

from switch.device import MeterCounts, MeterRates
from switch.runtime.state import abi


def meter_counts(library: Any, cell: int) -> MeterCounts:
    """Packets and bytes that it has marked with each colour. cell: its address."""
    counts = abi.ColourCounts()
    library.gb_meter_counts(cell, ctypes.byref(counts))
    return MeterCounts(*((colour.packets, colour.bytes) for colour in counts))


def configure_meter(library: Any, cell: int, rates: MeterRates | None) -> None:
    """None turns it off, so that everything is green. ValueError for rates below zero."""
    if rates is None:
        library.gb_meter_reset(cell)
        return
    values = (rates.committed_per_s, rates.committed_burst, rates.peak_per_s, rates.peak_burst)
    if any(v < 0 for v in (*values, rates.excess_burst or 0)):
        raise ValueError("meter rates and bursts are not negative")
    if rates.excess_burst is None:
        library.gb_meter_configure(cell, *values)
    else:
        library.gb_meter_configure_single_rate(cell, *values[:2], rates.excess_burst)
