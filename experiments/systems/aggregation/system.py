"""The aggregation system in studies: its sections and its metrics. What runs a point: aggregation_point.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from controller.systems.aggregation.placement.planners import LimitedMethod, UnlimitedMethod
from experiments.scale import Scale
from experiments.study.sections import Section
from experiments.system import Metric, PointConfiguration, PointResult, PointTask
from experiments.systems.aggregation import figures as _figures  # noqa: F401  # their kinds

Placement = Literal[LimitedMethod, UnlimitedMethod, "none"]

LIMITED = frozenset(get_args(LimitedMethod))
"""The placements that choose at most `maximum` switches; the others do not ask."""


class SwitchesSection(Section):
    """Which switches sum, and what they can hold.

    maximum: programmable switches besides the server's ToR (M); methods that choose by themselves pass over it.
    capacity_mbps: what a switch can sum (C of the linear program), nominal; null: all that arrives. slots: of each
    programmable switch, for all jobs together; with slot_policy static each job has its share of them.
    congestion_packets: so many packets in a queue are congestion, which P4 switches mark; 0: never. legacy: what the
    switches are that do not sum (none: programmable ones that nobody asks to sum). model: the programmable ones.
    """

    placement: Placement = "greedy"
    maximum: int = Field(default=1, ge=0)
    capacity_mbps: float | None = Field(default=None, gt=0)
    slots: int = Field(default=4096, ge=1, le=65536)
    slot_policy: Literal["dynamic", "static"] = "dynamic"
    congestion_packets: int = Field(default=20, ge=0)
    legacy: Literal["none", "p4", "openflow"] = "p4"
    model: Literal["gradbed", "bmv2"] = "gradbed"
    links: Literal["memory", "veth"] = "memory"


class _Workload(Section):
    """Of each job: workers besides the server. exchange: who sums; with ring (all-reduce) and gloo (PyTorch's, over
    TCP) it is the workers, and switches only forward. min_timeout_us, nominal: how much longer than its usual round
    trip a worker waits at least before it sends a packet again; it grows when links are slowed down."""

    workers: int = Field(default=8, ge=1, le=64)
    jobs: int = Field(default=1, ge=1)
    rounds: int = Field(default=10, ge=1)
    lanes: int = Field(default=352, ge=32, le=352, multiple_of=32)
    window_fragments: int = Field(default=32, ge=1)
    congestion_control: Literal["aimd", "ecn", "none"] = "aimd"
    exchange: Literal["server", "ring", "gloo"] = "server"
    min_timeout_us: int = Field(default=10_000, ge=1)


class SyntheticWorkload(_Workload):
    """Random gradients of `values` int32 each, for throughput without learning."""

    kind: Literal["synthetic"] = "synthetic"
    values: int = Field(default=35_200, ge=1)


class TrainingWorkload(_Workload):
    """A classifier of the digits data set (hosts/learning)."""

    kind: Literal["training"] = "training"
    hidden_units: int = Field(default=64, ge=0, le=65536)
    batch_samples: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=0.5, gt=0)


Workload = Annotated[SyntheticWorkload | TrainingWorkload, Field(discriminator="kind")]


class AggregationConfiguration(PointConfiguration):
    """All that a sweep of an aggregation study can vary."""

    switches: SwitchesSection = SwitchesSection()
    workload: Workload = SyntheticWorkload()

    def canonical(self) -> AggregationConfiguration:
        if self.workload.exchange != "server":
            means_nothing = {"placement": "none", "maximum": 0}
        elif self.switches.placement not in LIMITED:
            means_nothing = {"maximum": 0}
        elif self.switches.maximum == 0 and self.workload.jobs == 1:
            means_nothing = {"placement": "server-tor"}
        else:
            return self
        return self.model_copy(update={"switches": self.switches.model_copy(update=means_nothing)})

    @model_validator(mode="before")
    @classmethod
    def _synthetic_unless_said(cls, data: object) -> object:
        """A workload without a kind is synthetic."""
        if isinstance(data, dict) and isinstance(data.get("workload"), dict) and "kind" not in data["workload"]:
            return {**data, "workload": {"kind": "synthetic", **data["workload"]}}
        return data


METRICS = {
    "programmable": Metric("", "switches that sum, the servers' ToRs among them"),
    "throughput_bps": Metric("bit/s", "aggregation throughput", "rate"),
    "wire_throughput_bps": Metric("bit/s", "aggregation throughput, as switches counted it", "rate"),
    "bound_bps": Metric("bit/s", "upper bound of the linear program", "rate"),
    "packet_bound_bps": Metric("bit/s", "upper bound for packets with the labels chosen", "rate"),
    "bound_share": Metric("", "throughput / upper bound"),
    "round_time_s": Metric("s", "median round time", "time"),
    "server_bytes": Metric("B", "gradient bytes into the servers' links, a round"),
    "server_packets": Metric("", "gradient packets into the servers' links, a round"),
    "byte_hops": Metric("B", "bytes times hops, a round"),
    "resends": Metric("", "gradient packets sent again, a round"),
    "slot_success": Metric("", "share of fragments' first packets at a switch that found a slot"),
    "fairness": Metric("", "Jain's index over the jobs' throughputs"),
    "accuracy": Metric("", "test accuracy"),
}


class AggregationSystem:
    """experiments.system.System for gradients summed in switches."""

    configuration = AggregationConfiguration
    metrics: Mapping[str, Metric] = METRICS
    needs_network = True

    def check(self, configuration: PointConfiguration) -> None:
        assert isinstance(configuration, AggregationConfiguration)
        topology = configuration.topology.build(Scale())
        workload, switches = configuration.workload, configuration.switches
        hosts = workload.jobs * (workload.workers + 1)
        if hosts > len(topology.hosts):
            raise ValueError(
                f"{workload.jobs} job(s) of {workload.workers} workers and a server need {hosts} hosts, "
                f"{topology.name} has {len(topology.hosts)}"
            )
        if switches.placement in LIMITED and switches.maximum > len(topology.switches):
            raise ValueError(
                f"switches.maximum is {switches.maximum}, but {topology.name} has {len(topology.switches)} switches"
            )

    def run(self, task: PointTask) -> PointResult:
        from experiments.systems.aggregation.point import run_point

        assert isinstance(task.configuration, AggregationConfiguration)
        return run_point(task, task.configuration)
