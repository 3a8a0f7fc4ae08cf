"""A device under P4Runtime, the state that it keeps between packets, and the kinds of it.

A new kind of state is a module of its own. It is registered in KINDS if it stands for itself in P4Runtime, and as an
attribute of SwitchState. State is named as in BMv2 JSON (fully qualified, e.g. "RouterIngress.routes"). Values are
plain non-negative integers; widths are the program's business.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from gradbed.switch.bmv2_json.drop_sites import DropSite, DropSites
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import Program
from gradbed.switch.p4runtime.values import Translations
from gradbed.switch.state.abi import SwitchRecord
from gradbed.switch.state.action_profiles import Profiles
from gradbed.switch.state.base import EntityKind
from gradbed.switch.state.counters import CounterEntries, Counters, counter_array
from gradbed.switch.state.externs import EXTERNS, ExternEntries, extern_object
from gradbed.switch.state.meters import MeterEntries, Meters, meter_array
from gradbed.switch.state.registers import RegisterEntries, Registers, register_array
from gradbed.switch.state.replication import Replication
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


# ---- The seam between P4Runtime and the data plane ----


PacketInCallback = Callable[[bytes], None]
DigestCallback = Callable[[int, tuple[int, ...]], None]
"""Learn list's id in the JSON, and the values: 64-bit words, least significant first, a run for each element."""


class Device(Protocol):
    """A switch as the P4Runtime server sees it."""

    @property
    def device_id(self) -> int: ...

    @property
    def program(self) -> Program | None: ...

    @property
    def state(self) -> SwitchState:
        """Return what the running program keeps. KeyError before the first program."""

    @property
    def replication(self) -> Replication:
        """The packet replication engine."""

    def load(self, program: Program) -> None:
        """Replace the running program; all state starts afresh, with the program's entries and defaults."""

    def restart(self) -> None:
        """Lose the program and all state, as in a power failure. Callbacks stay."""

    def new_state(self, program: Program) -> SwitchState:
        """Return the fresh state of a program, which no packet passes; the caller closes it."""

    def clock_ns(self) -> int:
        """Return the nanoseconds since the switch started, on the clock by which packets are timed."""

    def has_port(self, port: int) -> bool:
        """Return whether there is such a port, the CPU port included."""

    # Packets and messages between the switch and its controller (v1model's CPU port).
    def packet_out(self, frame: bytes) -> None:
        """Hand a frame to the ingress pipeline on the CPU port. Raises ValueError."""

    def on_packet_in(self, callback: PacketInCallback | None) -> None:
        """Call back, from some thread, with each frame sent to the CPU port."""

    def on_digest(self, callback: DigestCallback | None) -> None:
        """Call back, from some thread, with each digest."""
