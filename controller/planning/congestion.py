"""Where switches begin to say that they are congested."""

from __future__ import annotations

from collections.abc import Iterable

from gradbed.controller.planning.entries import congestion_slope, congestion_threshold
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
from gradbed.topo.graph import Topology


def congestion_plan(
    topology: Topology,
    switches: Iterable[str],
    packets: int,
    program: str,
    *,
    always_packets: int | None = None,
    p_max: float = 1.0,
) -> Plan:
    """Every port of `switches`, which run `program`, marks packets that find `packets` or more in its queue; with
    always_packets only those that find so many, and the others by chance, up to p_max."""

    def entry(port: int) -> TableEntry:
        if always_packets is None or always_packets <= packets:
            return congestion_threshold(port, packets)
        return congestion_slope(port, packets, always_packets, p_max)

    return Plan(
        switches={
            switch: SwitchPlan.of(program, [entry(port) for port in topology.neighbours(switch).values()])
            for switch in switches
        }
    )
