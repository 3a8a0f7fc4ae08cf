"""Coverage over a whole network on the virtual clock: what of a program the packets in all its switches reach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from switch.errors import UserError
from switch.insight.coverage import Coverage, Report
from switch.insight.instrumented import InstrumentedProgram
from switch.insight.recorder import Level, Recorder
from switch.insight.records import Begin, Record
from switch.insight.source import SourceMap
from switch.virtual import VirtualFabric


class FabricCoverage:
    """Of switches that all run one program, built so that it reports (switch.insight.instrumented). A context manager
    around the packets; in the thread in which the fabric's time goes on."""

    def __init__(self, fabric: VirtualFabric, folders: Sequence[Path]) -> None:
        """folders: of the P4 sources. UserError where switches run several programs."""
        programs = {id(program): program for program in fabric.programs() if isinstance(program, InstrumentedProgram)}
        if len(programs) != 1:
            raise UserError("coverage is of one program, which all switches run")
        (program,) = programs.values()
        self._fabric = fabric
        self._program = program
        self._coverage = Coverage(program, SourceMap(program.json, folders))
        self._recorder = Recorder(program, Level.POINTS)

    def __enter__(self) -> FabricCoverage:
        self._recorder.__enter__()
        self._see_entries()
        self._fabric.after_running = self._take
        return self

    def __exit__(self, *exception: object) -> None:
        self._fabric.after_running = None
        self._recorder.__exit__(None, None, None)

    def report(self) -> Report:
        """Hits are passes of packets through a switch's pipelines."""
        self._take()
        self._see_entries()
        return self._coverage.report()

    def _see_entries(self) -> None:
        for device in self._fabric.devices.values():
            for table in self._program.model.tables:
                self._coverage.see_entries(self._recorder.entries(device.state, table))

    def _take(self) -> None:
        passes: list[Record] = []
        for record in self._recorder.take():
            if isinstance(record, Begin) and passes:
                self._coverage.see_packet(passes)
                passes = []
            passes.append(record)
        if passes:
            self._coverage.see_packet(passes)
