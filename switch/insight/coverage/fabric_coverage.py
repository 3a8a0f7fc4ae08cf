"""Coverage over a whole network: what of their programs the packets in all its switches reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gradbed.switch.insight.coverage.coverage import Coverage, Report
from gradbed.switch.insight.instrumented import InstrumentedProgram
from gradbed.switch.insight.recorder import Level
from gradbed.switch.insight.records import SwitchPass, TableEntry
from gradbed.switch.insight.source import SourceMap


class FabricCoverage:
    """Of switches whose programs are built so that they report (gradbed.switch.insight.instrumented)."""

    level = Level.POINTS

    def __init__(self, programs: Mapping[int, InstrumentedProgram], folders: Sequence[Path]) -> None:
        """programs: by device id. folders: of the P4 sources."""
        of_program = {
            id(program): Coverage(program, SourceMap(program.model, folders)) for program in programs.values()
        }
        self._coverages = {device_id: of_program[id(program)] for device_id, program in programs.items()}

    def see(self, passes: Iterable[SwitchPass]) -> None:
        for each in passes:
            self._coverages[each.device_id].see_packet(each.records)

    def see_entries(self, device_id: int, entries: Iterable[TableEntry]) -> None:
        """Those that a switch has now."""
        self._coverages[device_id].see_entries(entries)

    def reports(self) -> list[Report]:
        """One for each program. Hits are passes of packets through a switch's pipelines."""
        return [coverage.report() for coverage in dict.fromkeys(self._coverages.values())]
