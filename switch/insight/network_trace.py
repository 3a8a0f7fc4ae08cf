"""The trace of a packet through a network of switches, and of its copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradbed.switch.insight.packet_state import PacketState, Places
from gradbed.switch.insight.recorder import (
    Begin,
    End,
    InstrumentedProgram,
    Level,
    Record,
    SwitchPass,
)
from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.trace import build_trace
from gradbed.switch.insight.trace_events import Trace

MARK_BYTES = 20
"""Trailer of a frame, which identifies it however its headers change."""


@dataclass(frozen=True)
class Hop:
    """A packet in one switch."""

    device_id: int
    time_us: int
    """Time since the switch came up, when the frame was there."""
    trace: Trace
    sources: SourceMap


class NetworkTrace:
    """Trace of the first frame that is wanted, wherever it and its copies go.

    The switches' programs are built to report (gradbed.switch.insight.recorder).
    """

    level = Level.VALUES

    def __init__(
        self,
        programs: Mapping[int, InstrumentedProgram],
        folders: Sequence[Path],
        wanted: Callable[[bytes], bool],
    ) -> None:
        """Trace in these programs, by device id; `folders` have the P4 sources.

        `wanted` is called with each frame at its first switch, until it returns True.
        """
        self._of_program = {
            id(program): (SourceMap(program.model, folders), Places(program.model, program.layout))
            for program in programs.values()
        }
        self._wanted = wanted
        self._mark: bytes | None = None
        self._shown: set[bytes] = set()
        """Marks of frames that were not wanted."""
        self._hop_of_pass: dict[int, list[Record]] = {}
        self._hops: list[tuple[SwitchPass, list[Record]]] = []
        """The first pass in a switch, and the records of all."""

    def see(self, passes: Iterable[SwitchPass]) -> None:
        for each in passes:
            hop = self._hop(each)
            if hop is not None:
                hop.extend(each.records)

    def hops(self) -> list[Hop]:
        """Return hops in the order in which the packet was there; none if no frame was wanted."""
        return [self._traced_hop(first, records) for first, records in self._hops]

    def _hop(self, found: SwitchPass) -> list[Record] | None:
        """Return where the records of a pass of the packet belong; None: it is another packet's."""
        begin = found.records[0]
        assert isinstance(begin, Begin)
        if begin.parent:
            hop = self._hop_of_pass.get(begin.parent)
        else:
            if self._mark is None:
                self._show(begin.frame)
            hop = None
            if self._mark is not None and begin.frame.endswith(self._mark):
                hop = []
                self._hops.append((found, hop))
        if hop is not None:
            self._hop_of_pass[begin.number] = hop
        return hop

    def _show(self, frame: bytes) -> None:
        mark = frame[-MARK_BYTES:]
        if mark not in self._shown and self._wanted(frame):
            self._mark = mark
        self._shown.add(mark)

    def _traced_hop(self, first: SwitchPass, records: Sequence[Record]) -> Hop:
        begin = records[0]
        assert isinstance(begin, Begin)
        sources, places = self._of_program[id(first.program)]
        state = PacketState(places, begin.state)
        outputs = [
            (PacketState(places, record.state).standard("egress_port"), record.frame)
            for record in records
            if isinstance(record, End) and record.frame
        ]
        port = state.standard("ingress_port")
        trace = build_trace(first.program, sources, port, begin.frame, records, outputs)
        return Hop(first.device_id, state.standard("ingress_global_timestamp"), trace, sources)
