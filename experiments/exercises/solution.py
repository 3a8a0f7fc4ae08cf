"""A solution under test: its compiled program, a switch that runs and watches it, and what a check found."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from gradbed.common.errors import UserError
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4, input_files
from gradbed.switch.insight.coverage import Coverage
from gradbed.switch.insight.recorder import InstrumentedProgram, Level, build_instrumented
from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.trace import build_trace
from gradbed.switch.insight.trace_text import decisions
from gradbed.switch.insight.traced_switch import DEFAULT_CPU_PORT, Passage, TracedSwitch

# ---- The solution ----


MOST_BYTES = 1_000_000
"""Largest size of one file of a solution."""
_P4_INCLUDE = Path(__file__).resolve().parents[2] / "switch" / "compiler" / "p4include"


@dataclass(frozen=True)
class Solution:
    """A solution under test."""

    folder: Path
    """A copy that belongs to the check."""
    program: Path
    """The P4 file in it."""

    @cached_property
    def json(self) -> dict[str, Any]:
        """BMv2 JSON of the program.

        Raises:
            UserError: the program does not compile, or includes a file outside its folder.
        """
        folders = (self.folder.resolve(), _P4_INCLUDE)
        for file in input_files(self.program):
            # Macros of the command line are a file that does not exist.
            if file.path.exists() and not any(file.path.resolve().is_relative_to(folder) for folder in folders):
                raise UserError(f"{self.program.name} includes {file.path}, which is not in its folder")
        return compile_p4(self.program).json

    @cached_property
    def built(self) -> BuiltProgram:
        try:
            return build_program(self.json)
        except ValueError as error:
            raise UserError(f"{self.program.name}: {error}") from None

    @cached_property
    def instrumented(self) -> InstrumentedProgram:
        return build_instrumented(self.json)

    @cached_property
    def sources(self) -> SourceMap:
        return SourceMap(self.instrumented.model, [self.folder])

    def words(self, error: UserError) -> str:
        """Return an error's message with files as the student knows them."""
        return str(error).replace(f"{self.folder}/", "")


def copied(folder: Path, program: str, place: Path) -> Solution:
    """Copy the programs and entries of a student's folder into the new folder `place`.

    Links, hidden files and inner folders are left out.

    Raises:
        UserError: a file is too large, or cannot be read.
    """
    place.mkdir()
    for file in sorted(folder.iterdir()):
        if file.is_symlink() or not file.is_file() or file.name.startswith("."):
            continue
        if file.suffix not in (".p4", ".yaml", ".h"):
            continue
        if file.stat().st_size > MOST_BYTES:
            raise UserError(f"{file.name} is larger than {MOST_BYTES // 1000} kB")
        try:
            shutil.copyfile(file, place / file.name)
        except OSError as error:
            raise UserError(f"cannot read {file.name}: {error.strerror}") from None
    return Solution(place, place / program)


# ---- Findings ----


class Detail(NamedTuple):
    """A labelled line of a finding."""

    label: str
    """A word such as "packet"; empty: a further line of the label before."""
    text: str


@dataclass(frozen=True)
class SolutionFinding:
    """A fault that a check found in a solution."""

    what: str
    """One line."""
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of one check of a solution."""

    name: str
    finding: SolutionFinding | None
    """What is wrong; None if the check passed."""


class Refusal(Exception):
    """Raised by a check: one line, with what was expected and what came instead."""

    def __init__(self, what: str, expected: str = "", came: str = "") -> None:
        super().__init__(what)
        self.finding = SolutionFinding(
            what,
            tuple(Detail(label, text) for label, text in (("expected", expected), ("came out", came)) if text),
        )


# ---- A watched switch ----


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
