"""The kinds of state that stand for themselves: what a new one is registered by, beside `SwitchState`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.p4runtime.values.translation import Translations
from gradbed.switch.state.base import EntityKind
from gradbed.switch.state.counters.codec import counter_array
from gradbed.switch.state.counters.entity import CounterEntries
from gradbed.switch.state.externs.codec import extern_object
from gradbed.switch.state.externs.entity import ExternEntries
from gradbed.switch.state.meters.codec import meter_array
from gradbed.switch.state.meters.entity import MeterEntries
from gradbed.switch.state.registers.codec import register_array
from gradbed.switch.state.registers.entity import RegisterEntries
from gradbed.switch.state.value_sets.codec import ValueSetCodec
from gradbed.switch.state.value_sets.entity import ValueSetEntries


class Kind(NamedTuple):
    """`codec` makes one object's codec of its description in P4Info, P4Info, the program and translated names; it
    raises ValueError. `entities` makes the entities of a device's state and those codecs by P4Info id."""

    codec: Callable[[Any, Any, ProgramModel, Translations], Any]
    entities: Callable[[Any, Mapping[int, Any]], EntityKind]


KINDS = {
    "value_sets": Kind(ValueSetCodec, ValueSetEntries),
    "meters": Kind(meter_array, MeterEntries),
    "counters": Kind(counter_array, CounterEntries),
    "registers": Kind(register_array, RegisterEntries),
    "externs": Kind(extern_object, ExternEntries),
}
"""By their name in P4Info, in ProgramModel and in SwitchState alike."""


def objects_of(info: Any, kind: str) -> Iterable[Any]:
    """What P4Info has of a kind, each with a preamble."""
    found: Iterable[Any] = getattr(info, kind)
    return [instance for type_ in found for instance in type_.instances] if kind == "externs" else found
