"""Meters of one program, and MeterConfig and MeterCounterData between messages and the device.

P4Runtime specification 1.4, sections "Meter & DirectMeter" and "MeterEntry & DirectMeterEntry".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from finsy.proto import p4i

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import MeterCounts, MeterRates
from gradbed.switch.p4runtime.values.status import invalid
from gradbed.switch.p4runtime.values.translation import Translations
from gradbed.switch.state.base import CellArray

INT64_GREATEST = (1 << 63) - 1
_COLOURS = ("green", "yellow", "red")


class MeterConfig(NamedTuple):
    """As a controller wrote it."""

    cir: int
    cburst: int
    pir: int
    pburst: int
    eburst: int


class MeterSpec:
    """What configurations a meter takes: those of its type."""

    def __init__(self, name: str, kind: int) -> None:
        """`kind` is a p4.config.v1.MeterSpec.Type."""
        self._name = name
        self._kind = kind

    def decode(self, message: Any) -> MeterConfig:
        """From a p4.v1.MeterConfig. Raises INVALID_ARGUMENT."""
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
    """From a p4.config.v1.Meter. Raises ValueError where the BMv2 JSON has no such meter."""
    name = meter.preamble.name
    if name not in program.indirect_meters:
        raise ValueError(f"meter {name!r} of the P4Info is not in the BMv2 JSON")
    return MeterArray(meter.preamble.id, name, program.meters[name].size, MeterSpec(name, meter.spec.type))


def fill_config(message: Any, config: MeterConfig) -> None:
    """Into a p4.v1.MeterConfig; zeros are a configuration too."""
    message.SetInParent()
    message.cir, message.cburst, message.pir, message.pburst, message.eburst = config


def check_clearing(data: Any) -> None:
    """A written MeterCounterData can only set the counts to zero. Raises INVALID_ARGUMENT."""
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
