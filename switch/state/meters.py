"""Meters: the cells of all meters, and those that programs index as P4Runtime entities.

P4Runtime specification 1.4, sections "Meter & DirectMeter" and "MeterEntry & DirectMeterEntry".
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from finsy.proto import p4i

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import MeterCounts, MeterRates
from gradbed.switch.p4runtime.status import invalid
from gradbed.switch.p4runtime.values import Translations
from gradbed.switch.state import abi
from gradbed.switch.state.abi import StateAccessor, SwitchRecord, checked_index, number_of
from gradbed.switch.state.base import CellArray, CellEntries

# ---- Cells in the runtime library ----


ColourCounts = abi.CountStruct * 3
"""Green, yellow, red."""

Find = Callable[[], int]
"""The address of a cell, which is good as long as the guard is held."""


class MeterCells:
    """Access to the cells of direct or indirect meters.

    A cell without rates marks everything green; new rates start with full buckets.
    """

    def __init__(self, library: ctypes.CDLL, guard: AbstractContextManager[Any]) -> None:
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
            self._library.gb_meter_counts(cell(), counts)
        return MeterCounts(*((colour.packets, colour.bytes) for colour in counts))

    def clear(self, cell: Find) -> None:
        with self._guard:
            self._library.gb_meter_counts_clear(cell())


class Meters(StateAccessor):
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


# ---- P4Info, BMv2 JSON and messages ----


INT64_GREATEST = (1 << 63) - 1
_COLOURS = ("green", "yellow", "red")


class MeterConfig(NamedTuple):
    """A meter's configuration as a controller wrote it."""

    cir: int
    cburst: int
    pir: int
    pburst: int
    eburst: int


class MeterSpec:
    """The configurations that a meter of its type takes."""

    def __init__(self, name: str, kind: int) -> None:
        """Take `kind`, a p4.config.v1.MeterSpec.Type."""
        self._name = name
        self._kind = kind

    def decode(self, message: Any) -> MeterConfig:
        """Build it from a p4.v1.MeterConfig. Raises INVALID_ARGUMENT."""
        config = MeterConfig(message.cir, message.cburst, message.pir, message.pburst, message.eburst)
        if min(config) < 0:
            raise invalid(f"meter {self._name}: rates and bursts are not negative")
        if self._kind != p4i.MeterSpec.SINGLE_RATE_THREE_COLOR and config.eburst:
            raise invalid(f"meter {self._name} takes no eburst: it is not a single-rate three-colour meter")
        if self._kind == p4i.MeterSpec.TWO_RATE_THREE_COLOR:
            if config.pir < config.cir:
                raise invalid(f"meter {self._name}: pir {config.pir} is below cir {config.cir}")
        elif (config.pir, config.pburst) != (config.cir, config.cburst):
            raise invalid(f"meter {self._name} has a single rate: pir and pburst are to equal cir and cburst")
        return config

    def rates(self, config: MeterConfig) -> MeterRates:
        excess = config.eburst if self._kind == p4i.MeterSpec.SINGLE_RATE_THREE_COLOR else None
        return MeterRates(config.cir, config.cburst, config.pir, config.pburst, excess)


@dataclass(frozen=True)
class MeterArray(CellArray):
    """An indirect meter."""

    spec: MeterSpec


def meter_array(meter: Any, info: Any, program: ProgramModel, names: Translations) -> MeterArray:
    """Build it from a p4.config.v1.Meter. Raises ValueError where the BMv2 JSON has no such meter."""
    name = meter.preamble.name
    if name not in program.indirect_meters:
        raise ValueError(f"meter {name!r} of the P4Info is not in the BMv2 JSON")
    return MeterArray(meter.preamble.id, name, program.meters[name].size, MeterSpec(name, meter.spec.type))


def fill_config(message: Any, config: MeterConfig) -> None:
    """Fill a p4.v1.MeterConfig; zeros are a configuration too."""
    message.SetInParent()
    message.cir, message.cburst, message.pir, message.pburst, message.eburst = config


def check_clearing(data: Any) -> None:
    """Raise INVALID_ARGUMENT unless a written MeterCounterData sets all counts to zero."""
    for colour in _COLOURS:
        counts = getattr(data, colour)
        if counts.packet_count or counts.byte_count:
            raise invalid("the counts of a meter's colours can be set to 0 only")


def fill_meter_counts(data: Any, counts: MeterCounts) -> None:
    for colour, (packets, bytes_) in zip(_COLOURS, counts, strict=True):
        message = getattr(data, colour)
        message.SetInParent()
        message.packet_count = packets & INT64_GREATEST
        message.byte_count = bytes_ & INT64_GREATEST


# ---- MeterEntry ----


_Cell = tuple[MeterConfig | None, MeterCounts | None]
"""Configuration, None for the default, and counts if they were asked for."""


class MeterEntries(CellEntries[MeterArray]):
    oneof = "meter_entry"
    what = "meter"

    def __init__(self, meters: Meters, arrays: Mapping[int, MeterArray]) -> None:
        super().__init__(arrays)
        self._meters = meters
        self._configs: dict[int, dict[int, MeterConfig]] = {meter_id: {} for meter_id in arrays}

    def modify(self, message: Any) -> None:
        meter, indices = self._addressed(message)
        config = meter.spec.decode(message.config) if message.HasField("config") else None
        clear = message.HasField("counter_data")
        if clear:
            check_clearing(message.counter_data)
        configs = self._configs[meter.p4_id]
        for index in indices:
            # Writing counts alone leaves the configuration as it is only if it is given again: so the specification.
            self._meters.write(meter.name, index, None if config is None else meter.spec.rates(config))
            if config is None:
                configs.pop(index, None)
            else:
                configs[index] = config
            if clear:
                self._meters.clear_counts(meter.name, index)

    def export(self) -> Iterator[Any]:
        for meter_id, configs in self._configs.items():
            for index, config in configs.items():
                yield self._update(self._arrays[meter_id], index, (config, None))

    def _cells(self, array: MeterArray, indices: range, message: Any) -> Sequence[_Cell]:
        configs = self._configs[array.p4_id]
        if not message.HasField("counter_data"):
            return [(configs.get(index), None) for index in indices]
        return [(configs.get(index), self._meters.counts(array.name, index)) for index in indices]

    def _fill(self, entry: Any, array: MeterArray, index: int, cell: _Cell) -> None:
        config, counts = cell
        entry.meter_id = array.p4_id
        entry.index.index = index
        if config is not None:
            fill_config(entry.config, config)
        if counts is not None:
            fill_meter_counts(entry.counter_data, counts)
