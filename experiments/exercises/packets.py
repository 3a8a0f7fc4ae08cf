"""Check a solution by packets of an STF file; the first failure is reported with the packet that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.experiments.exercises.finding import Detail, SolutionFinding
from gradbed.experiments.exercises.subject import Solution
from gradbed.experiments.exercises.watch import WatchedSwitch, frame_text, outputs_text
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.insight.traced_switch import Passage
from gradbed.switch.stf import read_stf, run_script
from gradbed.switch.stf.runner import difference, run_on
from gradbed.switch.stf.statements import CheckCounter, Expect, NoPacket, Packet, RegisterRead, Script, StfStatement


def check_packets(subject: Solution, test: Path) -> SolutionFinding | None:
    """Return the first failure; None: there is none."""
    script = read_stf(test)
    failures = run_script(subject.built, script).failures
    if not failures:
        return None
    told = [failure.removeprefix(f"{test}:").partition(": ") for failure in failures]
    line, said = min((int(number), said) for number, _, said in told)
    watched = _Watched(subject, script)
    with watched.watch:
        try:
            run_on(watched, script)
        except UserError as error:  # it goes round in circles
            return SolutionFinding(f"{_about(test, line)}: {error}", watched.watch.details())
        return watched.finding(test, line, said)


class _Watched:
    """A gradbed.switch.stf.target.Target that records what became of each packet."""

    def __init__(self, subject: Solution, script: Script) -> None:
        self._script = script
        self.watch = WatchedSwitch(subject, next(p for p in range(510, -1, -1) if p not in script.ports))
        self._outputs: list[tuple[int, bytes]] = []
        self._passages: list[tuple[Packet, Passage]] = []

    @property
    def model(self) -> ProgramModel:
        return self.watch.model

    def apply(self, statement: StfStatement) -> None:
        self.watch.switch.target.apply(statement)

    def send(self, packet: Packet) -> None:
        passage = self.watch.send(packet.port, packet.frame)
        self._passages.append((packet, passage))
        self._outputs += passage.outputs

    def drain(self) -> list[tuple[int, bytes]]:
        outputs, self._outputs = self._outputs, []
        return outputs

    def finding(self, test: Path, line: int, said: str) -> SolutionFinding:
        """Return the finding for the first failure, whose line and text are those of the runner."""
        for packet, passage in self._passages:
            wrong = self._difference(packet, passage)
            if wrong is not None:
                return SolutionFinding(f"{_about(test, packet.line)}: {wrong}", self._details(packet, passage))
        before = [(packet, passage) for packet, passage in self._passages if packet.line <= line]
        failed = next((each for each in self._script.statements if each.line == line), None)
        # A command that does not fit the program is no matter of packets.
        if not before or not isinstance(failed, (Expect, NoPacket, RegisterRead, CheckCounter)):
            return SolutionFinding(f"{_about(test, line)}: {said}")
        return SolutionFinding(f"{_about(test, line)}: {said}", self._details(*before[-1]))

    def _details(self, packet: Packet, passage: Passage) -> tuple[Detail, ...]:
        return (
            Detail("packet", f"by port {packet.port}: {frame_text(packet.frame)}"),
            Detail("expected", _expected_text(self._expected(packet))),
            Detail("came out", outputs_text(passage.outputs)),
            *self.watch.details((packet.port, packet.frame, passage)),
        )

    def _expected(self, packet: Packet) -> list[Expect]:
        """Return the expectations that follow the packet in the file, up to the next packet."""
        found: list[Expect] = []
        for statement in self._script.statements:
            if statement.line > packet.line and isinstance(statement, Packet):
                break
            if statement.line > packet.line and isinstance(statement, Expect):
                found.append(statement)
        return found

    def _difference(self, packet: Packet, passage: Passage) -> str | None:
        """Return how the packet's outputs differ from what follows it in the file."""
        expected = self._expected(packet)
        ports = self._script.ports
        for port in sorted({expect.port for expect in expected}):
            came = [frame for out, frame in passage.outputs if out == port]
            wanted = [expect for expect in expected if expect.port == port]
            for expect, frame in zip(wanted, came):  # noqa: B905
                if not expect.describes(frame):
                    return f"port {port}: {difference(self.model, expect, frame).partition('; expected')[0]}"
            if len(came) < len(wanted):
                return f"nothing left by port {port}" if not came else f"too few packets left by port {port}"
            if len(came) > len(wanted):
                return f"too many packets left by port {port}"
        wanted_ports = {expect.port for expect in expected}
        strict = not expected and any(isinstance(statement, NoPacket) for statement in self._script.statements)
        for port, _ in passage.outputs:
            if port not in wanted_ports and (port in ports or strict):
                return f"a packet left by port {port}"
        return None


def _expected_text(expected: Sequence[Expect]) -> str:
    return "; ".join(f"by port {e.port}: {_digits(e)}" for e in expected) or "no packet"


def _digits(expect: Expect) -> str:
    """Return the digits as in the file, with Ethernet's fields apart."""
    if expect.digits is None:
        return "any packet"
    digits = expect.digits
    parts = [digits[:12], digits[12:24], digits[24:28], digits[28:]]
    return " ".join(part for part in parts if part) + ("" if expect.exact else " ...")


def _about(test: Path, line: int) -> str:
    """Return the comment above a line of the file."""
    lines = test.read_text(encoding="utf-8").splitlines()[:line]
    comments = [each.removeprefix("# ") for each in lines if each.startswith("# ")]
    return comments[-1] if comments else test.stem
