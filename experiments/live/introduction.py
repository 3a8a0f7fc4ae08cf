"""The first row of a recording: what the network is."""

from __future__ import annotations

from typing import Any

from gradbed.experiments.live.recording import VERSION
from gradbed.experiments.programs import Program
from gradbed.experiments.setup import NetworkSetup, PointTask
from gradbed.experiments.testbeds.interface import Testbed


def introduction(testbed: Testbed, network: NetworkSetup, task: PointTask[Any], system: str) -> dict[str, Any]:
    """gradbed.experiments.live.recording says what it has; x and y of nodes come later. Rates and delays are
    nominal."""
    topology = testbed.topology
    return {
        "kind": "begin",
        "version": VERSION,
        "title": f"{system} on {topology.name}",
        "system": system,
        "clock": task.configuration.clock,
        "scale": task.scale.factor,
        "seed": task.seed,
        "folder": str(task.folder),
        "nodes": [
            *({"name": host.name, "tier": None, "ip": host.ip} for host in topology.hosts),
            *({"name": switch.name, "tier": switch.tier, "number": switch.number} for switch in topology.switches),
        ],
        "links": [
            {
                "a": link.a.node,
                "b": link.b.node,
                "a_port": link.a.port,
                "b_port": link.b.port,
                "rate_bps": None if link.model.rate_bps is None else task.scale.nominal_rate(link.model.rate_bps),
                "delay_us": task.scale.nominal_time(link.model.delay_us),
                "queue_packets": link.model.queue_packets,
            }
            for link in topology.links
        ],
        "programs": {
            name: _program(program) for name, program in network.switches.items() if isinstance(program, Program)
        },
    }


def _program(program: Program) -> dict[str, Any]:
    return {"name": program.name, "source": str(program.source), "macros": dict(program.macros)}
