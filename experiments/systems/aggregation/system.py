"""The aggregation system: gradients of training jobs summed in switches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, SwitchCollectives, TrialTask
from gradbed.experiments.system import SwitchCapabilities, System, SystemOptions, SystemReport, SystemTools
from gradbed.experiments.systems.aggregation import figures as _figures  # noqa: F401  # their kinds
from gradbed.experiments.systems.aggregation.collectives import switch_collectives
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration, AggregationScriptWorkload
from gradbed.experiments.systems.aggregation.metrics import METRICS
from gradbed.experiments.systems.aggregation.phase import check_choice, check_script_jobs
from gradbed.experiments.systems.aggregation.trial import (
    AggregationTrial,
    fabric_program_of,
    network_of,
    slots_of_a_job,
)
from gradbed.experiments.tables.metric import Metric
from gradbed.hosts.torch_hook.torch_extra import require_torch
from gradbed.topo.graph import Topology
from gradbed.topo.selectors import choose_hosts_of_jobs

if TYPE_CHECKING:
    from rich.console import Console

    from gradbed.experiments.results.study_results import StudyResults


CALIBRATION_VALUES = 35_200
EXPECTED_SHARE = 0.6
"""Fraction of the link rate that the calibration's network is expected to reach; only the length of a trial
depends on it.
"""


class AggregationSystem(System[AggregationConfiguration]):
    """Train with gradients summed in the switches, and compare with the server alone."""

    name = "aggregation"
    configuration = AggregationConfiguration
    service = "gradbed.controller.systems.aggregation.service:AggregationService"
    metrics: Mapping[str, Metric] = METRICS
    options = SystemOptions(
        defaults={
            "switches.programmable": 2,
            "workload.kind": "training",
            "workload.rounds": 60,
            "workload.baselines": ("parameter-server",),
        },
        script_defaults={
            "switches.programmable": 2,
            "workload.kind": "script",
            "workload.workers": 4,
        },
        network_options=(
            "topology",
            *(f"switches.{each}" for each in ("named", "legacy", "slots", "congestion_packets", "links")),
            "program",
            "workload.lanes",
        ),
    )
    switches = SwitchCapabilities(
        collective="all-reduce",
    )
    report = SystemReport(
        main_metrics=("throughput_bps", "bound_share", "round_time_s", "server_share", "accuracy"),
        assurance="Results are bit-identical to single-process training; switch and host counters agree.",
        figures={},  # its report draws them
        colours={
            "server": 0,
            "parameter server": 0,
            "none": 0,
            "in-network": 1,
            "greedy": 1,
            "ring": 2,
            "gloo": 3,
            "exhaustive": 3,
            "highest-degree": 4,
            "random": 5,
            "server-tor": 6,
            "every-tor": 7,
            "dynamic": 0,
            "static": 1,
        },
    )
    tools = SystemTools(
        prompt="gradbed.experiments.systems.aggregation.prompt:AggregationPrompt",
    )

    def check(self, configuration: AggregationConfiguration) -> None:
        if isinstance(configuration.workload, AggregationScriptWorkload):
            check_script_jobs(configuration)
        for option, named in (
            ("--exchange", [configuration.workload.exchange]),
            ("--baselines", configuration.workload.baselines),
        ):
            if "gloo" in named:
                require_torch(f"{option} gloo")
        if configuration.clock == "virtual":
            _check_virtual(configuration)
        topology = configuration.topology.build(Scale())
        workload, switches = configuration.workload, configuration.switches
        if (
            fabric_program_of(configuration, topology)
            and workload.exchange == "server"
            and switches.placement != "none"
        ):
            raise UserError("--fabric-program: its switches sum nothing: take --placement none, or --exchange ring")
        hosts = workload.jobs * (workload.workers + 1)
        if hosts > len(topology.hosts):
            raise ValueError(
                f"{workload.jobs} job(s) of {workload.workers} workers and a server need {hosts} hosts, "
                f"{topology.name} has {len(topology.hosts)}"
            )
        slots_of_a_job(configuration)
        jobs = choose_hosts_of_jobs(topology, workload.jobs, workload.workers)
        check_choice(topology, jobs, switches.planner_options(topology, seed=1, scale=Scale()))

    def trial(self, task: TrialTask[AggregationConfiguration]) -> AggregationTrial:
        return AggregationTrial(task)

    def network(self, task: TrialTask[AggregationConfiguration]) -> NetworkSetup:
        """Return a network in which every switch sums, or the named ones."""
        configuration = task.configuration
        topology = configuration.topology.build(task.scale)
        names = configuration.switches.named or [switch.name for switch in topology.switches]
        return network_of(configuration, topology, [topology.switch(name).name for name in names])

    def calibration(self, rate_mbps: float, seconds: float) -> AggregationConfiguration:
        """Return a k=4 fat-tree on which eight workers sum random gradients in up to five switches."""
        round_s = 32 * CALIBRATION_VALUES / (EXPECTED_SHARE * rate_mbps * 1e6)
        return AggregationConfiguration.model_validate(
            {
                "switches": {"placement": "greedy", "programmable": 4},
                "workload": {"values": CALIBRATION_VALUES, "rounds": max(3, math.ceil(seconds / round_s))},
            }
        )

    def collectives(self, topology: Topology, groups: Sequence[tuple[Sequence[str], str]]) -> SwitchCollectives:
        return switch_collectives(self.name, self.service, topology, groups)

    def present(self, results: StudyResults, console: Console) -> None:
        from gradbed.experiments.systems.aggregation.report import present

        present(results, console)


def _check_virtual(configuration: AggregationConfiguration) -> None:
    """Raise UserError for what only the kernel's network has."""
    switches, workload = configuration.switches, configuration.workload
    REAL_CLOCK.require(switches.legacy != "openflow", "--legacy: Open vSwitch", "--legacy p4")
    REAL_CLOCK.require("gloo" not in (workload.exchange, *workload.baselines), "gloo", "ring")
