"""MeterEntry: cells of indirect meters. P4Runtime specification 1.4, section "MeterEntry"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradbed.switch.device import MeterCounts
from gradbed.switch.state.base import CellEntries
from gradbed.switch.state.meters.access import Meters
from gradbed.switch.state.meters.codec import MeterArray, MeterConfig, check_clearing, fill_config, fill_meter_counts

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
