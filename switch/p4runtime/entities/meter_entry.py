"""MeterEntry: cells of indirect meters. P4Runtime specification 1.4, section "MeterEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.device import Device, MeterCounts
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.counter_entry import check_index
from switch.p4runtime.pipeline.meters import MeterArray, MeterConfig, check_clearing, fill_config, fill_meter_counts
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import invalid, not_found


class MeterEntries(EntityKind):
    oneof = "meter_entry"

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        super().__init__(device, pipeline)
        self._configs: dict[int, dict[int, MeterConfig]] = {meter_id: {} for meter_id in pipeline.meters}

    def p4_id(self, message: Any) -> int:
        meter_id: int = message.meter_id
        return meter_id

    def modify(self, message: Any) -> None:
        meter = self._meter(message.meter_id)
        indices = self._indices(meter, message)
        config = meter.spec.decode(message.config) if message.HasField("config") else None
        clear = message.HasField("counter_data")
        if clear:
            check_clearing(message.counter_data)
        configs = self._configs[meter.meter_id]
        for index in indices:
            # Writing counts alone leaves the configuration as it is only if it is given again: so the specification.
            self._device.meter_write(meter.name, index, None if config is None else meter.spec.rates(config))
            if config is None:
                configs.pop(index, None)
            else:
                configs[index] = config
            if clear:
                self._device.meter_counts_clear(meter.name, index)

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.meter_id == 0:
            meters = [(m, range(m.size)) for m in self._pipeline.meters.values()]
        else:
            meter = self._meter(message.meter_id)
            meters = [(meter, self._indices(meter, message))]
        with_counts = message.HasField("counter_data")
        found = []
        for meter, indices in meters:
            if role.reads(meter.meter_id):
                configs = self._configs[meter.meter_id]
                for index in indices:
                    counts = self._device.meter_counts(meter.name, index) if with_counts else None
                    found.append((meter, index, configs.get(index), counts))
        return (_entity(*one) for one in found)

    def export(self) -> Iterator[Any]:
        for meter_id, configs in self._configs.items():
            for index, config in configs.items():
                entity = _entity(self._pipeline.meters[meter_id], index, config, None)
                yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)

    def _meter(self, meter_id: int) -> MeterArray:
        meter = self._pipeline.meters.get(meter_id)
        if meter is None:
            raise not_found(f"there is no meter {meter_id}") if meter_id else invalid("meter_id is not set")
        return meter

    def _indices(self, meter: MeterArray, message: Any) -> range:
        if not message.HasField("index"):
            return range(meter.size)
        return check_index(message.index.index, meter.size, f"meter {meter.name}")


def _entity(meter: MeterArray, index: int, config: MeterConfig | None, counts: MeterCounts | None) -> Any:
    entity = p4r.Entity()
    entry = entity.meter_entry
    entry.meter_id = meter.meter_id
    entry.index.index = index
    if config is not None:
        fill_config(entry.config, config)
    if counts is not None:
        fill_meter_counts(entry.counter_data, counts)
    return entity
