"""What every switch was to hold, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.planning.text import switch_text
from gradbed.experiments.study.report.reading import Run

MOST_LINES = 150
"""Of a switch in a phase; the file has all."""
MOST_CHARACTERS = 1_500_000
"""Of a page."""


@dataclass(frozen=True)
class HeldPlan:
    """phases: in which it was held, empty if in all. file: relative to the run's folder."""

    phases: Sequence[str]
    text: str
    left_out_lines: int


@dataclass(frozen=True)
class SwitchHolds:
    name: str
    tier: str
    summary: str
    plans: Sequence[HeldPlan]


@dataclass(frozen=True)
class PlanView:
    """Of the point with this digest. place: in words, empty if there is one place alone."""

    digest: str
    place: str
    switches: Sequence[SwitchHolds]


def plan_view(run: Run) -> PlanView | None:
    """Of the first point that left its plan; None if none did."""
    for point in run.points:
        network = run.network(point.stored.digest)
        if network is not None and network.plans:
            break
    else:
        return None
    phases = list(network.plans)
    switches, characters = [], 0
    for switch in network.topology.switches:
        held: dict[str, list[str]] = {}
        last = None
        for phase in phases:
            if (plan := network.plans[phase].switches.get(switch.name)) is not None:
                held.setdefault(switch_text(switch.name, plan), []).append(phase)
                last = plan
        if last is None:
            continue
        plans = []
        for text, names in held.items():
            lines = text.splitlines()[1:]
            room = MOST_LINES if characters < MOST_CHARACTERS else 0
            shown = "\n".join(lines[:room])
            characters += len(shown)
            plans.append(HeldPlan([] if len(names) == len(phases) else names, shown, max(0, len(lines) - room)))
        switches.append(SwitchHolds(switch.name, switch.tier, _summary(last), plans))
    return PlanView(point.stored.digest, point.place_text.removesuffix(": "), switches)


def _summary(plan: SwitchPlan) -> str:
    """Kind, program, and how much of what it holds."""
    parts = (
        (plan.flows, "flow", "flows"),
        (plan.entries, "entry", "entries"),
        (plan.groups, "group", "groups"),
        (plan.clones, "clone session", "clone sessions"),
        (plan.registers, "register cell", "register cells"),
        (plan.meters, "meter cell", "meter cells"),
        (plan.defaults, "default action", "default actions"),
    )
    counted = [f"{len(held)} {one if len(held) == 1 else many}" for held, one, many in parts if held]
    kind = "P4" if plan.kind == "p4" else "OpenFlow"
    return f"{plan.program} ({kind}): {', '.join(counted) or 'nothing'}"
