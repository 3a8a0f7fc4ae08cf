"""Configurations: of a network, and of the aggregation experiment over one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from controller.systems.aggregation.placement.planners import PlacementName, PlannerOptions
from controller.systems.aggregation.slots import DEFAULT_SLOTS, SlotPolicy
from switch.link import LinkModel


class NetworkConfig(BaseModel):
    """What is built, and what every link does; loss and duplicate are probabilities for each direction."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: str = "fat-tree:4"
    lanes: int = Field(default=352, ge=32, le=352, multiple_of=32)
    rate_mbps: float = Field(default=20.0, ge=0)
    """0: unlimited."""
    delay_us: int = Field(default=50, ge=0)
    loss: float = Field(default=0.0, ge=0, lt=1)
    duplicate: float = Field(default=0.0, ge=0, lt=1)
    queue_packets: int = Field(default=1000, ge=1)
    jitter_us: int = Field(default=0, ge=0)
    """Delays are spread evenly over delay_us - jitter_us to delay_us + jitter_us."""
    reorder: bool = False
    """Whether a packet may overtake one that drew a longer delay."""
    slots: int = Field(default=DEFAULT_SLOTS, ge=1)
    """Fragments that a switch can hold."""
    congestion_packets: int = Field(default=20, ge=0)
    """So many packets waiting for a link are congestion, which P4 switches mark; 0: they never mark."""
    switch: Literal["gradbed", "bmv2"] = "gradbed"
    links: Literal["memory", "veth"] = "memory"
    seed: int = Field(default=1, ge=0)

    @property
    def link_model(self) -> LinkModel:
        return LinkModel(
            rate_bps=round(self.rate_mbps * 1e6) or None,
            delay_us=self.delay_us,
            loss=self.loss,
            duplicate=self.duplicate,
            queue_packets=self.queue_packets,
            jitter_us=self.jitter_us,
            reorder=self.reorder,
        )


class JobConfig(NetworkConfig):
    """Jobs over one network: who takes part, which switches sum, and how workers send."""

    jobs: int = Field(default=1, ge=1)
    """They train at the same time, on different hosts."""
    workers: int = Field(default=8, ge=1)
    """Of each job."""
    placement: PlacementName = "shared-path"
    programmable: int | None = None
    """At most so many switches besides the servers' ToRs sum, where the placement chooses."""
    switches: tuple[str, ...] | None = None
    """For the placements that take the switches named."""
    switch_capacity_mbps: float | None = None
    """What one switch can sum; None: all that its links bring."""
    demand_mbps: float | None = None
    """The rate at which every worker must be able to send."""
    legacy: Literal["none", "openflow", "p4"] = "none"
    """What the switches are that do not sum."""
    slot_policy: SlotPolicy = "dynamic"
    """With "static" every job has its share of the slots for itself."""
    window: int = Field(default=32, ge=1)
    """Fragments that a worker has unanswered at most."""
    congestion_control: Literal["aimd", "ecn", "none"] = "aimd"
    min_timeout_ms: int = Field(default=50, ge=1)
    """Workers wait at least this long before they send a packet again."""
    output: Path = Path("results")

    @property
    def planner_options(self) -> PlannerOptions:
        return PlannerOptions(
            placement=self.placement,
            switches=self.switches,
            programmable=self.programmable,
            switch_capacity_mbps=self.switch_capacity_mbps,
            demand_mbps=self.demand_mbps,
            seed=self.seed,
        )


class AggregationConfig(JobConfig):
    """Jobs trained twice over one network: gradients summed in the switches, and by the servers alone."""

    baselines: tuple[Literal["ring", "gloo"], ...] = ()
    """Further modes, without a server: ring all-reduce, and that of PyTorch's Gloo over TCP."""
    rounds: int = Field(default=60, ge=1)
    hidden_units: int = Field(default=64, ge=0)
    batch_samples: int = Field(default=32, ge=1)
    """For each worker and round."""


class TorchConfig(JobConfig):
    """A PyTorch script, once in each worker's host, that trains with the hook of hosts.torch_hook."""

    script: Path
    arguments: tuple[str, ...] = ()
    workers: int = Field(default=4, ge=1)
    exchange: Literal["server", "ring"] = "server"
    """Who sums, as in hosts.systems.aggregation.description.JobDescription."""
