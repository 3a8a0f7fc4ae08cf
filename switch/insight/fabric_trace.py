"""One packet's way through all switches of a network on the virtual clock: a trace for each that it reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from switch.errors import UserError
from switch.insight.events import Trace
from switch.insight.instrumented import InstrumentedProgram
from switch.insight.packet_state import PacketState, Places
from switch.insight.recorder import Level, Recorder
from switch.insight.records import Begin, End, Record
from switch.insight.source import SourceMap
from switch.insight.trace import build_trace
from switch.virtual import VirtualFabric

MARK_BYTES = 20
"""At the end of a frame, by which it is known again whatever becomes of its headers."""


@dataclass(frozen=True)
class Hop:
    """A packet in one switch. time_us: since the switch came up, when the frame was there."""

    device_id: int
    time_us: int
    trace: Trace


class FabricTrace:
    """Of the first frame that is wanted, wherever it and its copies go. A context manager around the packets; in the
    thread in which the fabric's time goes on. All switches run one program, built so that it reports."""

    def __init__(self, fabric: VirtualFabric, folders: Sequence[Path], wanted: Callable[[bytes], bool]) -> None:
        """folders: of the P4 sources. wanted: is shown each frame that a switch gets, until it says yes."""
        programs = {id(program): program for program in fabric.programs() if isinstance(program, InstrumentedProgram)}
        if len(programs) != 1:
            raise UserError("a trace is of one program, which all switches run")
        (self._program,) = programs.values()
        self.sources = SourceMap(self._program.json, folders)
        self._fabric = fabric
        self._wanted = wanted
        self._places = Places(self._program.model, self._program.layout)
        self._recorder = Recorder(self._program, Level.VALUES)
        self._mark: bytes | None = None
        self._hop_of_pass: dict[int, list[Record]] = {}
        self._hops: list[list[Record]] = []

    def __enter__(self) -> FabricTrace:
        self._recorder.__enter__()
        self._fabric.after_running = self._take
        return self

    def __exit__(self, *exception: object) -> None:
        self._fabric.after_running = None
        self._recorder.__exit__(None, None, None)

    def hops(self) -> list[Hop]:
        """In the order in which the packet was there; none if no frame was wanted."""
        self._take()
        numbers = {device.state.pointer: device_id for device_id, device in self._fabric.devices.items()}
        return [self._hop(numbers, records) for records in self._hops]

    def _take(self) -> None:
        records: list[Record] | None = None
        for record in self._recorder.take():
            if isinstance(record, Begin):
                records = self._records_of(record)
            if records is not None:
                records.append(record)

    def _records_of(self, begin: Begin) -> list[Record] | None:
        """Where a pass of the packet belongs; None: it is another packet's."""
        if begin.parent:
            hop = self._hop_of_pass.get(begin.parent)
        else:
            if self._mark is None and self._wanted(begin.frame):
                self._mark = begin.frame[-MARK_BYTES:]
            hop = None
            if self._mark is not None and begin.frame.endswith(self._mark):
                hop = []
                self._hops.append(hop)
        if hop is not None:
            self._hop_of_pass[begin.number] = hop
        return hop

    def _hop(self, numbers: dict[int, int], records: list[Record]) -> Hop:
        begin = records[0]
        assert isinstance(begin, Begin)
        state = PacketState(self._places, begin.state)
        outputs = [
            (PacketState(self._places, record.state).standard("egress_port"), record.frame)
            for record in records
            if isinstance(record, End) and record.frame
        ]
        port = state.standard("ingress_port")
        trace = build_trace(self._program, self.sources, port, begin.frame, records, outputs)
        return Hop(numbers[begin.switch], state.standard("ingress_global_timestamp"), trace)
