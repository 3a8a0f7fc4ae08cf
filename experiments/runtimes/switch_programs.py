"""What the switches of a runtime run, as the controller pushes it, and what packets reach of it: the coverage of all
programs, or one packet's way through them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.experiments.programs import Program
from gradbed.switch.insight.coverage import NetworkCoverage, Report
from gradbed.switch.insight.network_trace import NetworkTrace
from gradbed.switch.insight.recorder import Level, read_entries, switch_passes
from gradbed.switch.insight.trace_text import trace_text

if TYPE_CHECKING:
    from gradbed.experiments.configuration.sections import SwitchProgramsSection
    from gradbed.experiments.setup import NetworkSetup
    from gradbed.switch.insight.recorder import InstrumentedProgram


# ---- Pipelines ----


def pipelines_of(setup: NetworkSetup, by: SwitchProgramsSection) -> dict[str, Pipeline]:
    """Compile the programs of a network, and return their pipelines by name. by: what compiles."""
    found = {}
    for program in setup.switches.values():
        if isinstance(program, Program) and program.name not in found:
            files = program.compiled(by)
            found[program.name] = Pipeline.load(program.name, files.json, files.p4info, program.routed)
    return found


# ---- Coverage and traces ----


def watch_level(setup: NetworkSetup) -> Level | None:
    """Return how much is to be recorded for what is asked for; None if nothing is.

    Raises:
        UserError: Both coverage and a trace are asked for.
    """
    if setup.coverage and setup.trace is not None:
        raise UserError("--trace: coverage and a trace are two runs")
    if setup.coverage:
        return NetworkCoverage.level
    return None if setup.trace is None else NetworkTrace.level


class PacketWatch:
    """Coverage or trace of the packets in a network, from words of recorders (gradbed.switch.insight.recorder)."""

    def __init__(self, setup: NetworkSetup, programs: Mapping[int, InstrumentedProgram]) -> None:
        """Make a watch of programs by device id, as the switches run them."""
        folders = list(
            dict.fromkeys(each.source.parent for each in setup.switches.values() if isinstance(each, Program))
        )
        self._topology = setup.topology
        self._programs = programs
        self._coverage = NetworkCoverage(programs, folders) if setup.coverage else None
        self._trace = None if setup.trace is None else NetworkTrace(programs, folders, setup.trace)

    def see(self, words: Sequence[int], devices: Mapping[int, int]) -> None:
        """Take in words; `devices` are device ids by the addresses of their states."""
        switches = {address: (device_id, self._programs[device_id]) for address, device_id in devices.items()}
        if self._coverage is not None:
            self._coverage.see(switch_passes(switches, False, words))
        elif self._trace is not None:
            self._trace.see(switch_passes(switches, True, words))

    def see_entries(self, device_id: int, words: Sequence[int]) -> None:
        """Take in the entries that a switch has now."""
        if self._coverage is not None:
            self._coverage.see_entries(device_id, read_entries(self._programs[device_id], words))

    def coverage(self) -> list[Report]:
        """Return one report for each program."""
        return [] if self._coverage is None else self._coverage.reports()

    def trace(self) -> list[dict[str, Any]]:
        """Return the rows of Runtime.trace."""
        hops = [] if self._trace is None else self._trace.hops()
        return [
            {
                "hop": number,
                "switch": self._topology.switch_by_number(hop.device_id).name,
                "port": hop.trace.port,
                "time_us": hop.time_us,
                "text": trace_text(hop.trace, hop.sources),
            }
            for number, hop in enumerate(hops, 1)
        ]
