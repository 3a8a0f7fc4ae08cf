"""points/DIGEST/network.json: the network that a point ran on, and what its switches were to hold in each phase."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan
from gradbed.topo.graph import Topology

NAME = "network.json"


@dataclass(frozen=True)
class NetworkFile:
    """topology: in emulated units (experiments/scale.py). stored_plans: as the file has them."""

    topology: Topology
    stored_plans: Sequence[Mapping[str, Any]] = ()

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """By phase, when its agents began. UserError if they are none."""
        return {
            phase: Plan.from_json(json.dumps(part["plan"])) for part in self.stored_plans for phase in part["phases"]
        }


def write_network(folder: Path, topology: Topology, plans: Mapping[str, Plan]) -> None:
    """Into a point's folder. Phases with the same plan share it: a plan is a list of phases and what they hold."""
    shared: list[tuple[list[str], Plan]] = []
    for phase, plan in plans.items():
        names = next((names for names, known in shared if known == plan), None)
        if names is None:
            shared.append(([phase], plan))
        else:
            names.append(phase)
    parts = ",".join(
        f'{{"phases": {json.dumps(names)}, "plan": {plan.model_dump_json(exclude_defaults=True)}}}'
        for names, plan in shared
    )
    (folder / NAME).write_text(f'{{"topology": {topology.to_json()}, "plans": [{parts}]}}\n', encoding="utf-8")


def read_network(folder: Path) -> NetworkFile | None:
    """None where a point left none: it was computed, ran on another machine, or is of an older version."""
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return NetworkFile(Topology.from_json(json.dumps(found["topology"])), found["plans"])
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return None
