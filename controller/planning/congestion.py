"""Where switches begin to say that they are congested."""

from __future__ import annotations

from collections.abc import Iterable

from controller.planning.entries import congestion_threshold
from controller.planning.plan import Plan, SwitchPlan
from topo.graph import Topology


def congestion_plan(topology: Topology, switches: Iterable[str], packets: int, program: str) -> Plan:
    """Every port of `switches`, which run `program`, marks packets that find `packets` or more in its queue."""
    return Plan(
        switches={
            switch: SwitchPlan.of(
                program, [congestion_threshold(port, packets) for port in topology.neighbours(switch).values()]
            )
            for switch in switches
        }
    )
