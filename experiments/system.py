"""What a system (aggregation, later others) brings to the experiment layer, and the list of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from experiments.fidelity.report import FidelityReport
from experiments.scale import Scale
from experiments.study.sections import Section, TopologySection
from switch.errors import UserError

Value = str | int | float | bool | None
Row = Mapping[str, Any]


class PointConfiguration(Section):
    """What one point of a study runs on; a system adds its sections as fields. Everything a sweep can vary."""

    topology: TopologySection = Field(default_factory=TopologySection)

    def canonical(self) -> PointConfiguration:
        """Itself, with whatever does not matter set to one value: configurations that mean the same are run once."""
        return self


@dataclass(frozen=True)
class Metric:
    """A number that each point of a system yields.

    scales: how it follows the link rate. "rate" (bit/s) is also given divided by the emulated link rate, "time" (s)
    also multiplied by it (bits that fit into that time), both in a column NAME_normalised; None: not at all.
    """

    unit: str
    meaning: str
    scales: Literal["rate", "time"] | None = None


@dataclass(frozen=True)
class PointTask:
    """What a system is asked to run. folder: the point's own, for logs and captures."""

    configuration: PointConfiguration
    seed: int
    scale: Scale
    folder: Path
    capture: bool = False
    """Whether to leave pcap files in the folder."""


@dataclass(frozen=True)
class PointResult:
    """What a point found.

    metrics: values of the system's metrics. decisions: all that was chosen or drawn by chance (placement,
    designations, losses of links), as plain JSON values: equal for equal configuration and seed. tables: further rows
    by table name (rounds, hosts). failures: what makes the point worthless, such as wrong sums.
    """

    metrics: Mapping[str, Value]
    fidelity: FidelityReport
    decisions: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    failures: Sequence[str] = ()


class System(Protocol):
    """Runs points of one kind.

    configuration: the sections that its studies have. metrics: by name. needs_network: run each point as root in a
    sandbox of its own (topo/sandbox.py), so that points share nothing.
    """

    configuration: type[PointConfiguration]
    metrics: Mapping[str, Metric]
    needs_network: bool

    def check(self, configuration: PointConfiguration) -> None:
        """ValueError or UserError if a point cannot run, such as for want of hosts; called before anything runs."""

    def run(self, task: PointTask) -> PointResult:
        """Run one point. UserError for what the user can put right."""


SYSTEMS: dict[str, str] = {"aggregation": "experiments.systems.aggregation.system:AggregationSystem"}
"""Module and class by the word after `system:`; imported when a study asks for it."""


def find_system(name: str) -> System:
    """UserError, with a suggestion, if there is none of this name."""
    try:
        module, _, class_name = SYSTEMS[name].partition(":")
    except KeyError:
        raise UserError(f"no system is called {name!r}{suggestion(name, SYSTEMS)}") from None
    system: System = getattr(importlib.import_module(module), class_name)()
    return system


def suggestion(word: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """ "; did you mean ...?" if a known word is near, else the known words."""
    words = list(known)
    near = get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(words)}"
