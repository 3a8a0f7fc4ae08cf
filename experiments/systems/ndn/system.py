"""The NDN system: gradients distributed by name."""

from __future__ import annotations

from collections.abc import Mapping

from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.system import LINKS_FIGURE, System, SystemOptions, SystemReport, SystemTools
from gradbed.experiments.systems.ndn import figures as _figures  # noqa: F401  # their kinds
from gradbed.experiments.systems.ndn.configuration import NdnConfiguration
from gradbed.experiments.systems.ndn.metrics import METRICS
from gradbed.experiments.systems.ndn.trial import NdnTrial, network_of
from gradbed.experiments.tables.metric import Metric


class NdnSystem(System[NdnConfiguration]):
    """Train peer to peer: gradients pushed along subscriptions, lost ones asked of routers' stores (NDN)."""

    name = "ndn"
    configuration = NdnConfiguration
    service = "gradbed.controller.systems.ndn.service:NdnService"
    metrics: Mapping[str, Metric] = METRICS
    options = SystemOptions(
        defaults={"workload.kind": "training"},
    )
    report = SystemReport(
        main_metrics=("round_time_s", "gradient_hops", "transmissions", "recoveries", "accuracy"),
        assurance="Results are bit-identical to single-process training; router and host counters agree.",
        figures={
            "rounds": {
                "kind": "course",
                "x": "seed",
                "y": "round_time_s",
                "course": {"table": "versions", "step": "version", "y": "round_time_s", "y_times": 1e3},
                "x_label": "version",
                "y_label": "round time (ms)",
            },
            "accuracy": {
                "kind": "course",
                "x": "seed",
                "y": "accuracy",
                "course": {"table": "versions", "step": "version", "y": "accuracy", "y_times": 100.0},
                "x_label": "version",
                "y_label": "test accuracy (%)",
            },
            **LINKS_FIGURE,
        },
    )
    tools = SystemTools(
        prompt="gradbed.experiments.systems.ndn.prompt:NdnPrompt",
    )

    def check(self, configuration: NdnConfiguration) -> None:
        topology = configuration.topology.build(Scale())
        workload = configuration.workload
        needed = workload.peers + len(workload.observers)
        if needed > len(topology.hosts):
            raise ValueError(
                f"{workload.peers} peers and {len(workload.observers)} observers need {needed} hosts, "
                f"{topology.name} has {len(topology.hosts)}: fewer --peers, or another --topology"
            )

    def trial(self, task: TrialTask[NdnConfiguration]) -> NdnTrial:
        return NdnTrial(task)

    def network(self, task: TrialTask[NdnConfiguration]) -> NetworkSetup:
        configuration = task.configuration
        return network_of(configuration, configuration.topology.build(task.scale), task.scale)
