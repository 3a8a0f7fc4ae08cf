"""Planners by name: what a person, a configuration or a request can ask for."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.planner import (
    AggregationPlanner,
    ExplicitPlacement,
    NoPlacement,
    OwnTorPlacement,
    SharedPathPlacement,
)
from gradbed.controller.systems.aggregation.placement.stored import StoredPlanner

LimitedMethod = Literal["greedy", "greedy-gradients", "exhaustive", "milp", "random", "highest-degree"]
"""These choose at most so many programmable switches."""

UnlimitedMethod = Literal["server-tor", "every-tor", "grid"]

PlacementName = Literal["shared-path", "own-tor", "none", "explicit", "lp", LimitedMethod, UnlimitedMethod]
"""shared-path: switches on everybody's shortest path (SharedPathPlacement). own-tor: each
worker's top-of-rack switch, and the server's. explicit: the switches named, in equal
shares. lp: the switches named, in the shares of the linear program. none: the server alone. The others:
see place.METHODS."""

NAMED = ("explicit", "lp")


class PlannerOptions(BaseModel):
    """A planner and what it needs.

    switches: names, for explicit and lp. programmable: at most so many switches besides the server's ToR, for the
    methods that choose. switch_capacity_mbps: what a switch can sum (C of the linear program); null: all that
    arrives. demand_mbps: the rate that every worker needs. seed: for placement random.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    placement: PlacementName | None = None
    switches: tuple[str, ...] | None = None
    programmable: int | None = None
    switch_capacity_mbps: float | None = None
    demand_mbps: float | None = None
    seed: int = Field(default=1, ge=0)

    @property
    def solves(self) -> bool:
        """Whether it is a placement by the linear program, which reckons with rates."""
        return self.placement in ("lp", *get_args(LimitedMethod), *get_args(UnlimitedMethod))

    def planner(self) -> AggregationPlanner | None:
        """None if no placement is named; UserError if the options contradict each other."""
        name = self.placement
        limited = name in get_args(LimitedMethod)
        if limited and self.programmable is None:
            raise UserError(f"placement {name} needs to know how many switches may be programmable")
        if not limited and self.programmable is not None:
            choices = ", ".join(get_args(LimitedMethod))
            raise UserError(f"a number of programmable switches goes with a placement that chooses them: {choices}")
        if self.switches is not None and name not in NAMED:
            raise UserError(f"switches are named, but placement {name or 'by default'} chooses its own")
        if self.switches is None and name in NAMED:
            raise UserError(f"placement {name} needs the names of switches")
        if (self.switch_capacity_mbps, self.demand_mbps) != (None, None) and not self.solves:
            raise UserError(f"placement {name or 'by default'} reckons with no capacity of switches and no demand")
        if name is None:
            return None
        if name == "none":
            return NoPlacement()
        if name == "shared-path":
            return SharedPathPlacement()
        if name == "own-tor":
            return OwnTorPlacement()
        if name == "explicit":
            return ExplicitPlacement(self.switches or ())
        return self._linear_program(name)

    def _linear_program(self, name: str) -> AggregationPlanner:
        capacity, demand = self.switch_capacity_mbps, self.demand_mbps
        return StoredPlanner(
            {
                "maximum": self.programmable or 0,
                "method": "greedy" if name == "lp" else name,
                "switch_capacity_bps": None if capacity is None else capacity * 1e6,
                "seed": self.seed,
                "demand_bps": None if demand is None else demand * 1e6,
                "switches": self.switches,
            }
        )
