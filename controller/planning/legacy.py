"""Which switches cannot aggregate, and their part of a plan.

Planners treat all switches alike: they speak the forwarding tables of p4src/aggregation.p4. What legacy switches hold
follows from that: the same entries for p4src/forward.p4, or flows that do the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from controller.planning.openflow_rules import FORWARD_PROGRAM, openflow_plan
from controller.planning.plan import Plan, SwitchPlan, TableEntry
from switch.errors import UserError
from topo.graph import Topology

LegacyKind = Literal["openflow", "p4"]
"""An OpenFlow switch (Open vSwitch), or a P4 switch with the plain forwarding program."""

FORWARDING_TABLES = frozenset({"ipv4_routes", "multicast_routes", "designated_routes"})
MARKING_TABLES = frozenset({"congestion_thresholds"})
"""Legacy switches do not mark congestion, whatever their queues hold."""


def with_legacy_switches(plan: Plan, topology: Topology, legacy: Mapping[str, LegacyKind]) -> Plan:
    """The same plan, with the parts of the switches in `legacy` in their own kind; UserError if one of them is to
    aggregate."""
    return Plan(
        switches={
            name: _legacy_plan(topology, name, legacy[name], switch) if name in legacy else switch
            for name, switch in plan.switches.items()
        }
    )


def _legacy_plan(topology: Topology, name: str, kind: LegacyKind, plan: SwitchPlan) -> SwitchPlan:
    forwarding = []
    for entry in plan.entries:
        if entry.table in FORWARDING_TABLES:
            forwarding.append(entry)
        elif entry.table not in MARKING_TABLES:
            raise UserError(f"{name} is a legacy switch, which cannot sum gradients: choose other switches")
    plain = SwitchPlan.of(FORWARD_PROGRAM, forwarding, plan.groups)
    if kind == "openflow":
        return openflow_plan(topology.switch(name), plain)
    return SwitchPlan.of(FORWARD_PROGRAM, map(_by_udp_port, forwarding), plan.groups)


def _by_udp_port(entry: TableEntry) -> TableEntry:
    """Plain forwarding knows no gradients; the designated switch is in their UDP source port, too."""
    if entry.table != "designated_routes":
        return entry
    (number,) = entry.match.values()
    return entry.model_copy(update={"match": {"hdr.udp.src_port": number}})
