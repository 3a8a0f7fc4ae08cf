"""Configuration of an aggregation trial: which switches sum, and what the workers send."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gradbed.controller.systems.aggregation.job_plan import DEFAULT_SLOTS
from gradbed.controller.systems.aggregation.placement.options import (
    PlacementName,
    PlannerOptions,
    is_limited,
    placement_names,
)
from gradbed.experiments.configuration.sections import (
    SYNTHETIC_UNLESS_SAID,
    Section,
    SyntheticGradients,
    TrainedGradients,
    option,
)
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.scale import Scale
from gradbed.experiments.torch_scripts import ScriptSection
from gradbed.formats.aggregation import SlotPolicy
from gradbed.hosts.transport.congestion_window import CONGESTION_CONTROL_HELP, CongestionControlName
from gradbed.topo.graph import Topology

Baseline = Literal["parameter-server", "ring", "gloo"]
"""Phases before and after the requested one on the same network.

They are the parameter server alone, ring all-reduce among the workers, and all-reduce of PyTorch's Gloo over TCP.
"""


class AggregationSwitchesSection(Section):
    """Selection of the switches that sum, and their limits."""

    placement: PlacementName = option("greedy", f"Which switches sum: {', '.join(placement_names())}.")
    programmable: int = option(1, "Largest number of switches that sum, besides the servers' ToRs (M).", ge=0)
    named: tuple[str, ...] | None = option(
        None, "The switches that sum, for explicit and lp, and for up (default: all).", name="switches"
    )
    capacity_mbps: float | None = option(None, "What one switch can sum (C of the linear program).", gt=0)
    demand_mbps: float | None = option(None, "The rate that every worker must reach.", gt=0)
    slots: int = option(DEFAULT_SLOTS, "Fragments that a switch can hold, for all jobs together.", ge=1, le=65536)
    slot_policy: SlotPolicy = option("dynamic", "dynamic: jobs share slots by hash; static: each has a part.")
    congestion_packets: int = option(
        20, "Queue length in packets from which packets are marked (ECN); 0: never.", ge=0
    )
    legacy: Literal["none", "p4", "openflow"] = option(
        "p4", "What switches are that do not sum: p4 (plain forwarding), openflow, none (programmable all the same)."
    )
    fabric_program: str = option(
        "none",
        "System whose switch programs run on all switches in place of these, as SYSTEM or SYSTEM:POLICY; they sum "
        "nothing.",
    )
    links: Literal["memory", "veth"] = option(
        "memory", "Links between switches: memory, or veth, whose interfaces can be captured."
    )

    @property
    def is_limited(self) -> bool:
        """Whether the placement chooses at most `programmable` switches; the others do not ask."""
        return is_limited(self.placement)

    def planner_options(self, topology: Topology, seed: int, scale: Scale) -> PlannerOptions:
        """Return the options of the placement planner, in emulated units.

        The limit on programmable switches is at most the number of switches.
        """
        capacity_bps, demand_bps = scale.rate_bps(self.capacity_mbps), scale.rate_bps(self.demand_mbps)
        return PlannerOptions(
            placement=self.placement,
            switches=self.named,
            programmable=min(self.programmable, len(topology.switches)) if self.is_limited else None,
            switch_capacity_mbps=None if capacity_bps is None else capacity_bps / 1e6,
            demand_mbps=None if demand_bps is None else demand_bps / 1e6,
            seed=seed,
        )


class _AggregationWorkload(Section):
    """Options that all workloads of aggregation jobs share; times are nominal."""

    workers: int = option(8, "Number of workers of each job, besides the server.", ge=1, le=64)
    jobs: int = option(1, "Number of concurrent training jobs, each on its own hosts.", ge=1)
    rounds: int = option(10, "Gradients that every worker sends.", ge=1)
    lanes: int = option(352, "int32 lanes of a gradient packet.", ge=32, le=352, multiple_of=32)
    window_fragments: int = option(32, "Largest number of unacknowledged fragments of a worker.", ge=1)
    congestion_control: CongestionControlName = option("aimd", CONGESTION_CONTROL_HELP)
    exchange: Literal["server", "ring", "gloo"] = option(
        "server", "Who sums: the server and the switches; or the workers (ring all-reduce, PyTorch's Gloo)."
    )
    baselines: tuple[Baseline, ...] = option((), "Baselines on the same network: parameter-server, ring, gloo.")
    min_timeout_us: int = option(
        10_000, "Smallest margin of the retransmission timeout over a usual round trip.", ge=1000
    )


class _Gradients(_AggregationWorkload):
    blocks: float | None = option(
        None,
        "Fraction of a gradient's blocks of 32 values that is sent, the same of all workers; the rest is held back.",
        gt=0,
        le=1,
    )


class AggregationSyntheticWorkload(SyntheticGradients, _Gradients):
    """Random gradients, to load the network without learning."""


class AggregationTrainingWorkload(TrainedGradients, _Gradients):
    """Gradients of a model that the workers train."""


class AggregationScriptWorkload(ScriptSection, _AggregationWorkload):
    """Gradients of a PyTorch script (docs/torch.md)."""


Workload = Annotated[
    AggregationSyntheticWorkload | AggregationTrainingWorkload | AggregationScriptWorkload,
    Field(discriminator="kind"),
    SYNTHETIC_UNLESS_SAID,
]


class AggregationConfiguration(TrialConfiguration):
    """Everything that a sweep of an aggregation study can vary."""

    switches: AggregationSwitchesSection = AggregationSwitchesSection()
    workload: Workload = AggregationSyntheticWorkload()

    def chance(self) -> tuple[str, ...]:
        drawn = {
            "switches that sum": self.switches.placement == "random",
            "training": self.workload.kind == "training",
            "policy of the fabric program": self.switches.fabric_program != "none",
        }
        return (*super().chance(), *(words for words, is_drawn in drawn.items() if is_drawn))

    def canonical(self) -> AggregationConfiguration:
        if self.workload.exchange != "server":
            means_nothing: dict[str, object] = {"placement": "none", "programmable": 0}
        elif not self.switches.is_limited:
            means_nothing = {"programmable": 0}
        elif self.switches.programmable == 0 and self.workload.jobs == 1:
            means_nothing = {"placement": "server-tor"}
        else:
            return self
        return self.model_copy(update={"switches": self.switches.model_copy(update=means_nothing)})
