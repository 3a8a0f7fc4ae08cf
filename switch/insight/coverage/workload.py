"""Coverage of workloads: frames at a port of a switch that was set up, and STF files."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradbed.common.errors import UserError
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.insight.coverage.coverage import Coverage
from gradbed.switch.insight.instrumented import InstrumentedProgram
from gradbed.switch.insight.recorder import Level
from gradbed.switch.insight.traced_switch import TracedSwitch
from gradbed.switch.stf.runner import Outcome, absent_port, run_on
from gradbed.switch.stf.statements import Packet, Script, Statement


def cover_frames(
    program: InstrumentedProgram,
    coverage: Coverage,
    port: int,
    frames: Iterable[bytes],
    set_up: Callable[[TracedSwitch], None],
    cpu_port: int,
) -> None:
    """set_up: writes entries and groups to the fresh switch."""
    with TracedSwitch(program, Level.POINTS, cpu_port) as switch:
        set_up(switch)
        _see_entries(switch, coverage)
        for frame in frames:
            coverage.see_packet(switch.send(port, frame).records)


def cover_script(program: InstrumentedProgram, coverage: Coverage, script: Script) -> Outcome:
    """Run an STF file on a fresh switch; whether it passes is no matter of coverage, but told. UserError."""
    wrong = absent_port(script)
    if wrong is not None:
        raise UserError(wrong)
    cpu_port = next(port for port in range(510, -1, -1) if port not in script.ports)
    with TracedSwitch(program, Level.POINTS, cpu_port) as switch:
        outcome = run_on(_CoveredTarget(switch, coverage), script)
    if outcome.misfit is not None:
        raise UserError(outcome.misfit)
    return outcome


def _see_entries(switch: TracedSwitch, coverage: Coverage) -> None:
    for table in switch.program.model.tables:
        coverage.see_entries(switch.entries(table))


class _CoveredTarget:
    """A gradbed.switch.stf.target.Target that watches."""

    def __init__(self, switch: TracedSwitch, coverage: Coverage) -> None:
        self._switch = switch
        self._coverage = coverage
        self._changed = True
        self._outputs: list[tuple[int, bytes]] = []

    def apply(self, statement: Statement) -> None:
        self._switch.target.apply(statement)
        self._changed = True

    @property
    def model(self) -> ProgramModel:
        return self._switch.program.model

    def send(self, packet: Packet) -> None:
        # Commands come in blocks: what the entries are matters when a packet comes.
        self._see_entries()
        passage = self._switch.send(packet.port, packet.frame)
        self._coverage.see_packet(passage.records)
        self._outputs += passage.outputs

    def drain(self) -> list[tuple[int, bytes]]:
        self._see_entries()
        outputs, self._outputs = self._outputs, []
        return outputs

    def _see_entries(self) -> None:
        if self._changed:
            _see_entries(self._switch, self._coverage)
            self._changed = False
