"""What one switch that runs a program keeps between packets, by kind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from gradbed.switch.bmv2_json.drop_sites import DropSite, DropSites
from gradbed.switch.device import Program
from gradbed.switch.state.counters.access import Counters
from gradbed.switch.state.externs.kinds import EXTERNS
from gradbed.switch.state.meters.access import Meters
from gradbed.switch.state.profiles.access import Profiles
from gradbed.switch.state.record import SwitchRecord
from gradbed.switch.state.registers.access import Registers
from gradbed.switch.state.tables.access import Tables
from gradbed.switch.state.value_sets.access import ValueSets


class SwitchState(SwitchRecord):
    """Fresh when made, with the program's entries and defaults."""

    def __init__(
        self,
        program: Program,
        guard: AbstractContextManager[Any] | None = None,
        clock_us: Callable[[], int] = lambda: 0,
    ) -> None:
        """guard and clock_us: see SwitchRecord and Tables."""
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
            counts = self.record.contents.drop_counts
            found = {site: int(counts[number]) for number, site in DropSites(self.model).by_number.items()}
        return {site: count for site, count in found.items() if count}
