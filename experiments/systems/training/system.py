"""The training system: ranks that execute traces, whose collectives use queue pairs and P4 switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradbed.common.capabilities import VIRTUAL_CLOCK
from gradbed.common.congestion_control import is_plugin
from gradbed.common.errors import UserError
from gradbed.common.plugins import load_plugin
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.system import (
    LINKS_FIGURE,
    SwitchCapabilities,
    System,
    SystemOptions,
    SystemReport,
    SystemTools,
)
from gradbed.experiments.systems.training import figures as _figures  # noqa: F401  # their kinds
from gradbed.experiments.systems.training.configuration import TrainingConfiguration, slow_host
from gradbed.experiments.systems.training.metrics import METRICS
from gradbed.experiments.systems.training.placement import place_ranks
from gradbed.experiments.systems.training.trial import TrainingTrial, fabric_program_of
from gradbed.experiments.tables.metric import Metric
from gradbed.hosts.agents.queue_pairs import CONGESTION_CONTROLS, queue_pair_control


class TrainingSystem(System[TrainingConfiguration]):
    """Train large models: ranks execute traces, and their collectives share a network of P4 switches."""

    name = "training"
    configuration = TrainingConfiguration
    service = "gradbed.controller.systems.training.service:TrainingService"
    metrics: Mapping[str, Metric] = METRICS
    options = SystemOptions(
        defaults={
            "clock": "virtual",
            "topology.kind": "fat-tree:4",
            "topology.link.rate_mbps": 100_000.0,
            "topology.link.delay_us": 1,
        },
    )
    switches = SwitchCapabilities(
        quiet=True,
    )
    report = SystemReport(
        main_metrics=("iteration_time_s", "compute_time_s", "exposed_s", "collective_time_s", "packet_hops"),
        assurance=(
            "Every rank executed its whole graph with the compute times of its trace, checked collectives have exact "
            "results, and host and link counters agree."
        ),
        figures={
            "timeline": {"kind": "training-timeline", "x": "seed", "y": "seed"},
            **LINKS_FIGURE,
        },
        colours={
            "ring": 0,
            "halving-doubling": 1,
            "double-binary-tree": 2,
            "sharded-parameter-server": 3,
            "hierarchical": 4,
            "in switches": 5,
            "hosts": 0,
        },
    )
    tools = SystemTools(
        makers={"trace": "gradbed.experiments.systems.training.configuration:NewTrace"},
        recorder="gradbed.hosts.systems.training.traces.recording:convert_recording",
    )

    def check(self, configuration: TrainingConfiguration) -> None:
        control = configuration.transport.congestion_control
        if queue_pair_control(control).has_fixed_timers:
            # They do not stretch with the network (experiments/scale.py).
            others = [name for name, each in CONGESTION_CONTROLS.items() if each.echoes_marks]
            VIRTUAL_CLOCK.require(configuration.clock == "virtual", f"--congestion-control {control}", *others)
        switches = configuration.switches
        if switches.k_max is not None and (switches.k_min is None or switches.k_min > switches.k_max):
            raise UserError("--k-max: it needs a --k-min, and is at least as large")
        topology = configuration.topology.build(Scale())
        if any(link.model.rate_bps is None for link in topology.host_links):
            raise UserError("--rate-mbps: hosts' links need a rate, by which their NICs send")
        if configuration.switches.fabric_program != "none" and configuration.collectives.in_network != "none":
            raise UserError("--fabric-program: its switches sum and copy nothing: take --in-network none")
        fabric_program_of(configuration.switches, topology, 1)
        ranks = configuration.ranks_of_a_job(len(topology.hosts))
        jobs = place_ranks(topology, ranks, configuration.ranks, 1)
        used = {host for hosts in jobs for host in hosts}
        for host, _, _ in map(slow_host, configuration.ranks.slow):
            topology.host(host)
            if host not in used and configuration.ranks.placement != "random":
                raise UserError(f"--slow: no rank lives on {host}")

    def warnings(self, configuration: TrainingConfiguration) -> Sequence[str]:
        name, switches = configuration.transport.congestion_control, configuration.switches
        control = queue_pair_control(name)
        has_other_switches = switches.fabric_program != "none" or configuration.collectives.in_network != "none"
        if not control.heeds_marks or switches.k_min is not None or has_other_switches:
            return ()
        if is_plugin(name):
            load_plugin("congestion_controls", name)  # one that does not load is the only line of its run
        consequence = "it follows losses alone" if control.heeds_losses else "its rate stays the link's"
        return [f"--congestion-control {name}: no switch marks packets; take --k-min, or {consequence}"]

    def trial(self, task: TrialTask[TrainingConfiguration]) -> TrainingTrial:
        return TrainingTrial(task)
