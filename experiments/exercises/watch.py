"""A switch that is watched: what it decided about the last packet, and which parts of the program no packet
reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from gradbed.experiments.exercises.finding import Detail
from gradbed.experiments.exercises.subject import Solution
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.insight.coverage import Coverage
from gradbed.switch.insight.recorder import Level
from gradbed.switch.insight.trace import build_trace
from gradbed.switch.insight.trace_text import decisions
from gradbed.switch.insight.traced_switch import DEFAULT_CPU_PORT, Passage, TracedSwitch

DECISIONS_SHOWN = 12
UNREACHED_SHOWN = 4
BYTES_SHOWN = 80
BURST_EVENTS = 100_000
PACKET_US = 1000
"""Time that passes with each packet that is sent alone."""
CATEGORIES = {"parser states": "parser state", "tables": "table", "actions": "action", "branches": "condition"}
STANDARD = ("core.p4", "v1model.p4")


class WatchedSwitch:
    """A context manager with a traced switch."""

    def __init__(self, subject: Solution, cpu_port: int = DEFAULT_CPU_PORT, unwatched: int = 0) -> None:
        """Start the switch.

        Args:
            unwatched: number of packets at first that are not traced.
        """
        self._subject = subject
        self._sent, self._unwatched = 0, unwatched
        self._coverage = Coverage(subject.instrumented, subject.sources)
        self.switch = TracedSwitch(subject.instrumented, Level.VALUES, cpu_port)
        self.last: tuple[int, bytes, Passage] | None = None
        """Port, frame, and what became of it; None after many at once."""

    def __enter__(self) -> WatchedSwitch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.switch.__exit__(kind, value, trace)

    @property
    def model(self) -> ProgramModel:
        return self._subject.instrumented.model

    def send(self, port: int, frame: bytes, duration_us: float = PACKET_US) -> Passage:
        passage = self.switch.send(port, frame, duration_us, recorded=self._looks())
        self.last = port, frame, passage
        self._coverage.see_packet(passage.records)
        return passage

    def let_pass(self, duration_us: float) -> Passage:
        """Let time pass for packets that were sent together, and return what happened."""
        passage = self.switch.let_pass(duration_us, BURST_EVENTS, recorded=self._looks())
        if passage.records:
            self.last = None
            self._coverage.see_packet(passage.records)
        return passage

    def _looks(self) -> bool:
        self._sent += 1
        return self._sent > self._unwatched

    def details(self, packet: tuple[int, bytes, Passage] | None = None) -> tuple[Detail, ...]:
        """Return what decided about a packet (the last one if none is given), and what none reached."""
        packet = packet or self.last
        found: list[Detail] = []
        if packet is not None:
            port, frame, passage = packet
            subject = self._subject
            trace = build_trace(subject.instrumented, subject.sources, port, frame, passage.records, passage.outputs)
            lines = decisions(trace, subject.sources)
            left_out = len(lines) - DECISIONS_SHOWN
            shown = [f"... {left_out} more before these", *lines[-DECISIONS_SHOWN:]] if left_out > 0 else lines
            found += labelled("decided", shown)
        return (*found, *labelled("unreached", self._unreached()))

    def _unreached(self) -> list[str]:
        """Return what no packet of this check reached, which may be the reason."""
        report = self._coverage.report()
        items = [
            f"{item.source}  {word} {item.name}" if item.source else f"{word} {item.name}"
            for category, word in CATEGORIES.items()
            for item in report.items[category]
            if not item.hits and not (item.source and item.source.file in STANDARD) and item.name != "NoAction"
        ]
        more = len(items) - UNREACHED_SHOWN
        return [*items[:UNREACHED_SHOWN], *([f"and {more} more"] if more > 0 else [])]


def labelled(label: str, lines: Sequence[str]) -> list[Detail]:
    return [Detail("" if number else label, line) for number, line in enumerate(lines)]


def frame_text(frame: bytes) -> str:
    """Return a frame in hexadecimal, with Ethernet's fields apart; long ones are cut."""
    if not frame:
        return "no bytes"
    shown = frame[:BYTES_SHOWN]
    parts = [shown[:6], shown[6:12], shown[12:14], shown[14:]]
    more = f"... ({len(frame)} bytes)" if len(frame) > len(shown) else ""
    return " ".join(part.hex() for part in parts if part) + more


def outputs_text(outputs: Sequence[tuple[int, bytes]]) -> str:
    """Return "by port 2: 02000..." for each packet that left."""
    return "; ".join(f"by port {port}: {frame_text(frame)}" for port, frame in outputs) or "no packet"
