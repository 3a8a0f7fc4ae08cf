"""Run an STF file against a switch and compare what left it with what the file expects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.codegen import BuiltProgram
from gradbed.switch.engine.abi import DROP_PORT
from gradbed.switch.stf.engine_target import EngineTarget
from gradbed.switch.stf.frame_fields import named_differences
from gradbed.switch.stf.names import NoFit
from gradbed.switch.stf.statements import Expect, NoPacket, Packet, Script
from gradbed.switch.stf.target import CheckFailed, NotPossible, StfTarget


@dataclass(frozen=True)
class Outcome:
    """Outcome of an STF file on a switch."""

    failures: tuple[str, ...]
    """One line each, `file:line: what`; none if the test passed."""
    not_possible: tuple[str, ...] = ()
    """What this switch cannot do, likewise; of what depends on it nothing was tried."""
    misfit: str | None = None
    """The failure that is a mistake of the file, such as a table that the program lacks; what follows it was not
    tried."""

    @property
    def passed(self) -> bool:
        return not self.failures


def run_script(program: BuiltProgram, script: Script) -> Outcome:
    """Run a file on this project's own switch."""
    wrong = absent_port(script)
    if wrong is not None:
        return Outcome((wrong,), misfit=wrong)
    with EngineTarget(program, script.ports) as target:
        return run_on(target, script)


def absent_port(script: Script) -> str | None:
    """Return `file:line: what` for the first statement with a port that no switch has."""
    for statement in script.statements:
        if isinstance(statement, (Packet, Expect)) and statement.port >= DROP_PORT:
            what = f"ports are 0..{DROP_PORT - 1}, so there is no port {statement.port}"
            return f"{script.path}:{statement.line}: {what}"
    return None


def run_on(target: StfTarget, script: Script) -> Outcome:
    """Run a file on a switch that has the program loaded and is otherwise fresh."""
    run = _Run(target, script)
    run.all()
    return Outcome(tuple(run.failures), tuple(run.not_possible), run.misfit)


class _Run:
    def __init__(self, target: StfTarget, script: Script) -> None:
        self.failures: list[str] = []
        self.not_possible: list[str] = []
        self.misfit: str | None = None
        self._target = target
        self._script = script
        self._received: dict[int, list[bytes]] = defaultdict(list)
        self._expected: dict[int, list[Expect]] = defaultdict(list)

    def all(self) -> None:
        for statement in self._script.statements:
            try:
                if isinstance(statement, Packet):
                    self._target.send(statement)
                elif isinstance(statement, Expect):
                    self._expected[statement.port].append(statement)
                elif isinstance(statement, NoPacket):
                    self._check_nothing_more(statement)
                else:
                    self._target.apply(statement)
            except CheckFailed as failure:
                self._fail(statement.line, str(failure))
            except NotPossible as reason:
                self.not_possible.append(f"{self._script.path}:{statement.line}: {reason}")
                if reason.ends:
                    break
            except NoFit as error:
                # What follows would fail because of this.
                self._fail(statement.line, str(error))
                self.misfit = self.failures[-1]
                return
        self._receive()
        for port in sorted(self._script.ports):
            self._compare(port)

    def _receive(self) -> None:
        for port, frame in self._target.drain():
            self._received[port].append(frame)

    def _check_nothing_more(self, statement: NoPacket) -> None:
        self._receive()
        for port, frames in sorted(self._received.items()):
            for frame in frames[len(self._expected[port]) :]:
                self._fail(statement.line, f"a packet left by port {port}: {frame.hex()}")

    def _compare(self, port: int) -> None:
        """Compare packets and expectations of one port, in order."""
        received, expected = self._received[port], self._expected[port]
        for expect, frame in zip(expected, received):  # noqa: B905
            if not expect.describes(frame):
                self._fail(expect.line, f"port {port}: {difference(self._target.model, expect, frame)}")
        for expect in expected[len(received) :]:
            self._fail(expect.line, f"port {port}: no packet came{_number_of(expected, received)}")
        for frame in received[len(expected) :]:
            last = self._script.statements[-1].line
            self._fail(last, f"port {port}: a packet came that no expect is for: {frame.hex()}")

    def _fail(self, line: int, what: str) -> None:
        self.failures.append(f"{self._script.path}:{line}: {what}")


def difference(model: ProgramModel, expect: Expect, frame: bytes) -> str:
    """Return a line on how a frame differs from the expected digits: in which fields, where that is known."""
    wanted, got = expect.digits or "", frame.hex()
    at = next((i for i, (w, g) in enumerate(zip(wanted, got)) if w not in ("*", g)), None)  # noqa: B905
    if at is not None:
        fields = named_differences(model, wanted, frame)
        where = f"differs in {fields}" if fields else f"differs from hex digit {at} on"
    elif len(got) < len(wanted):
        where = f"is too short: {len(got)} hex digits, {len(wanted)} expected"
    else:
        where = f"is too long: {len(got)} hex digits, {len(wanted)} expected"
    return f"the packet {where}; expected {wanted}{'$' if expect.exact else ''}, got {got}"


def _number_of(expected: Sequence[Expect], received: Sequence[bytes]) -> str:
    return f" ({len(received)} of {len(expected)})" if len(expected) > 1 else ""
