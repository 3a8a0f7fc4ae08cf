"""The kinds of state that a switch has, and what one switch that runs a program keeps of each between packets.

A new kind is a module of its own. It is registered in KINDS if it stands for itself in P4Runtime, and as an attribute
of SwitchState.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from gradbed.switch.bmv2_json.drop_sites import DropSite, DropSites
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import Program
from gradbed.switch.p4runtime.values import Translations
from gradbed.switch.state.action_profiles import Profiles
from gradbed.switch.state.base import EntityKind
from gradbed.switch.state.counters import CounterEntries, Counters, counter_array
from gradbed.switch.state.externs import EXTERNS, ExternEntries, extern_object
from gradbed.switch.state.meters import MeterEntries, Meters, meter_array
from gradbed.switch.state.record import SwitchRecord
from gradbed.switch.state.registers import RegisterEntries, Registers, register_array
from gradbed.switch.state.tables import Tables
from gradbed.switch.state.value_sets import ValueSetCodec, ValueSetEntries, ValueSets


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
    """Return what P4Info has of a kind, each with a preamble."""
    found: Iterable[Any] = getattr(info, kind)
    return [instance for type_ in found for instance in type_.instances] if kind == "externs" else found


# ---- One switch ----


class SwitchState(SwitchRecord):
    """Fresh when made, with the program's entries and defaults."""

    def __init__(
        self,
        program: Program,
        guard: AbstractContextManager[Any] | None = None,
        clock_us: Callable[[], int] = lambda: 0,
    ) -> None:
        """Create the state of a program; for guard and clock_us see SwitchRecord and Tables."""
        super().__init__(program, guard)
        self.tables = Tables(self, clock_us)
        self.profiles = Profiles(self)
        self.registers = Registers(self)
        self.counters = Counters(self)
        self.meters = Meters(self)
        self.value_sets = ValueSets(self)
        self.externs = {
            extern.name: EXTERNS[extern.kind].state(self, number, extern)
            for number, extern in enumerate(program.model.externs.values())
        }

    def program_drops(self) -> dict[DropSite, int]:
        """Return how many packets the program has dropped since it was loaded, by where it did."""
        with self.guard:
            counts = ctypes.cast(self.record.contents.drop_counts, ctypes.POINTER(ctypes.c_uint64))
            found = {site: int(counts[number]) for number, site in DropSites(self.model).by_number.items()}
        return {site: count for site, count in found.items() if count}
