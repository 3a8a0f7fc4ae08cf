"""What switches hold of a system's plan when they do not run the system's program: they only forward.

Planners of a system treat all switches alike and speak the tables of its program. A switch that runs another one, or
that knows OpenFlow alone, holds the plain forwarding view of its part, which the system makes of each entry
(controller/core/service.py): entries of p4src/forward.p4, or flows that do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.controller.planning.openflow_rules import FORWARD_PROGRAM, openflow_plan
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
from gradbed.topo.graph import Topology

OPENFLOW: Literal["openflow"] = "openflow"
"""Stands for the program of a switch that runs none, and is spoken to by OpenFlow."""

PlainView = Callable[[str, TableEntry], TableEntry | None]
"""(switch, entry of a system's program) to the entry of p4src/forward.p4 that stands for it; None: there is none.
UserError if the switch would have to run the program."""


def table_programs(switches: Mapping[str, str]) -> dict[str, str]:
    """The program whose tables each switch is planned with: an OpenFlow switch's are those of p4src/forward.p4."""
    return {name: FORWARD_PROGRAM if program == OPENFLOW else program for name, program in switches.items()}


def as_switches_hold_it(
    plan: Plan, topology: Topology, switches: Mapping[str, str], programs: Collection[str], plain: PlainView
) -> Plan:
    """A system's plan, with the plain view of it where a switch runs none of the system's programs.

    switches: what each runs, by name. UserError for what a switch cannot do.
    """

    def held(name: str, part: SwitchPlan) -> SwitchPlan:
        running = switches[name]
        if running == part.program or (running == OPENFLOW and part.kind == "openflow"):
            return part
        if running in programs or part.more_than_entries or part.flows:
            raise UserError(f"{name} runs {running}, its plan is for {part.program}")
        entries = [entry for entry in (plain(name, each) for each in part.entries) if entry is not None]
        if running == OPENFLOW:
            return openflow_plan(topology.switch(name), SwitchPlan.of(FORWARD_PROGRAM, entries, part.groups))
        return SwitchPlan.of(running, entries, part.groups)

    return Plan(switches={name: held(name, part) for name, part in plan.switches.items()})
