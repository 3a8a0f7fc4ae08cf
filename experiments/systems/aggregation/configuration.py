"""Configuration of an aggregation trial: which switches sum, and what the workers send."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gradbed.controller.systems.aggregation.job_plan import DEFAULT_SLOTS
from gradbed.controller.systems.aggregation.placement.options import (
    PlacementName,
    PlannerOptions,
    is_limited,
    placement_names,
)
from gradbed.experiments.configuration.sections import (
    GRADIENTS_HELP,
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

    panel: ClassVar[str | None] = "Switches"

    placement: PlacementName = option(
        "greedy", f"Placement of aggregation switches: {', '.join(placement_names())} (docs/placement.md)."
    )
    programmable: int = option(
        1, "Maximum number of aggregation switches, not counting the servers' ToR switches (M).", ge=0
    )
    named: tuple[str, ...] | None = option(
        None,
        "Aggregation switches by name, with commas between, for the placements explicit and lp (default: all).",
        name="switches",
    )
    capacity_mbps: float | None = option(
        None, "Aggregation capacity of one switch in Mbit/s (C of the linear program).", gt=0, advanced=True
    )
    demand_mbps: float | None = option(
        None, "Rate in Mbit/s that every worker must reach (placement lp).", gt=0, advanced=True
    )
    slots: int = option(
        DEFAULT_SLOTS, "Number of aggregation slots in each switch, shared by all jobs.", ge=1, le=65536
    )
    slot_policy: SlotPolicy = option(
        "dynamic", "Slot allocation: dynamic (jobs share slots by hash) or static (an equal part for each job)."
    )
    congestion_packets: int = option(20, "ECN marking threshold of queues in packets; 0: no marking.", ge=0)
    legacy: Literal["none", "p4", "openflow"] = option(
        "p4",
        "Switches that do not aggregate: p4 (plain P4 forwarding), openflow (Open vSwitch), or none (they run the "
        "aggregation program, too).",
        advanced=True,
    )
    fabric_program: str = option(
        "none",
        "System whose programs run on all switches instead, SYSTEM or SYSTEM:POLICY; no switch aggregates then.",
        advanced=True,
    )
    links: Literal["memory", "veth"] = option(
        "memory",
        "Links between switches: memory (queues in one process) or veth (interfaces that tcpdump can capture).",
        advanced=True,
    )

    @property
    def is_limited(self) -> bool:
        """Return whether the placement chooses at most `programmable` switches."""
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

    workers: int = option(8, "Number of workers of each job (its parameter server is one more host).", ge=1, le=64)
    jobs: int = option(1, "Number of concurrent training jobs, each on its own hosts.", ge=1)
    rounds: int = option(10, "Number of training rounds: gradients that every worker sends.", ge=1)
    lanes: int = option(
        352, "Number of int32 values in a gradient packet.", ge=32, le=352, multiple_of=32, advanced=True
    )
    window_fragments: int = option(
        32, "Maximum window of a worker in unacknowledged packets.", ge=1, panel="Transport"
    )
    congestion_control: CongestionControlName = option("aimd", CONGESTION_CONTROL_HELP, panel="Transport")
    exchange: Literal["server", "ring", "gloo"] = option(
        "server",
        "All-reduce by: server (parameter server, with aggregation switches), ring (among the workers) or gloo "
        "(PyTorch's, over TCP).",
    )
    baselines: tuple[Baseline, ...] = option(
        (), "Baselines to run on the same network, with commas between: parameter-server, ring, gloo."
    )
    min_timeout_us: int = option(
        10_000,
        "Minimum margin of the retransmission timeout over the smoothed round-trip time, in us.",
        ge=1000,
        panel="Transport",
        advanced=True,
    )


class _Gradients(_AggregationWorkload):
    blocks: float | None = option(
        None,
        "Fraction of each gradient's blocks of 32 values to send, the same blocks on all workers (block sparsity).",
        gt=0,
        le=1,
        advanced=True,
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
    workload: Workload = Field(AggregationSyntheticWorkload(), description=GRADIENTS_HELP)

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
