"""What has to be so as long as nothing happens to the network: no fault, no loss, no other traffic."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.experiments.phases import Measured
from gradbed.experiments.systems.compression.phase import CompressionPhase


def unexpected(phase: CompressionPhase, found: Measured) -> Iterator[str]:
    """A line for each thing that is not as expected."""
    configuration = phase.configuration
    models = [link.model for link in phase.topology.links]
    if (
        configuration.faults
        or configuration.background.load
        or any(m.loss or m.duplicate or m.bit_error_rate for m in models)
    ):
        return
    for number, report in enumerate(phase.rounds):
        if missing := sorted(set(phase.names) - report.received.keys()):
            yield f"round {number + 1}: nothing of {missing[0]} is in the sum, though nothing has happened"
        # On the real clock the machine may have kept packets waiting.
        if configuration.clock == "virtual" and configuration.ratio.rule == "repaired":
            for name, reported in report.exchanged.items():
                if reported["planned_bytes"] < reported["total_bytes"]:
                    yield f"round {number + 1}, {name}: a part was left out, though nothing has happened"
    yield from _uncounted(phase, found)


def _uncounted(phase: CompressionPhase, found: Measured) -> Iterator[str]:
    """Bytes that workers planned to send, and that the server's switch counted on their way to it."""
    configuration, topology = phase.configuration, phase.topology
    if configuration.transport.protocol != "packets" or configuration.program.model != "gradbed":
        return
    switch = topology.attachment(phase.server).name
    reported = [found.final.get((found.answers[0]["job"], name), {}) for name in phase.names]
    if any(each.get("timeout_resends", 0) + each.get("early_resends", 0) for each in reported):
        return  # where a queue was full, or an acknowledgement late
    planned = sum(each["planned_bytes"] for report in phase.rounds for each in report.exchanged.values())
    counted = found.counts.cell(switch, "part_out", topology.port(switch, phase.server)).bytes
    if counted != planned:
        yield f"workers sent {planned} B of gradients, switch {switch} counted {counted} B for the server"
