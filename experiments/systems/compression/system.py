"""The compression system: gradients that adapt to the rate that the network has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.configuration.point import PointConfiguration
from experiments.scale import Scale
from experiments.system import Metric, PointTask, System
from experiments.systems.compression import figures as _figures  # noqa: F401  # their kinds
from experiments.systems.compression.configuration import CompressionConfiguration
from experiments.systems.compression.metrics import METRICS
from experiments.systems.compression.point import CompressionPoint
from hosts.compressors.methods import compressor
from switch.errors import UserError


class CompressionSystem(System):
    """Train with gradients that are compressed as far as the network asks for it, sent at a paced rate."""

    name = "compression"
    configuration = CompressionConfiguration
    metrics: Mapping[str, Metric] = METRICS
    service = "controller.systems.compression.service:CompressionService"
    assurance = (
        "All sums are exactly those of what workers sent, what was sent and what is held back are all gradients, and "
        "hosts agree with their links."
    )
    defaults: Mapping[str, Any] = {
        "clock": "virtual",
        "topology.kind": "star:9",
        "workload.kind": "training",
        "workload.rounds": 60,
    }

    benches: Mapping[str, str] = {
        "compressors": "experiments.systems.compression.bench.commands:compressors",
    }

    def check(self, configuration: PointConfiguration) -> None:
        assert isinstance(configuration, CompressionConfiguration)
        topology = configuration.topology.build(Scale())
        workers = configuration.workload.workers
        if workers + 1 > len(topology.hosts):
            raise ValueError(
                f"{workers} workers and a server need {workers + 1} hosts, {topology.name} has {len(topology.hosts)}"
            )
        if configuration.clock == "virtual" and configuration.switches.model != "gradbed":
            raise UserError("--switch: bmv2 needs the real clock: use --switch gradbed, or --clock real")
        if configuration.transport.pacing != "none" and any(
            link.model.rate_bps is None for link in topology.host_links
        ):
            raise UserError("--pacing: the server's link has no rate to pace by: give --rate-mbps, or --pacing none")
        compress, rule = configuration.compression.compress, configuration.ratio.rule
        if rule != "none" and not compressor(compress).can_be_cut:
            raise UserError(f"--ratio {rule}: a part of what {compress} makes is worth nothing: use --ratio none")

    def point(self, task: PointTask) -> CompressionPoint:
        assert isinstance(task.configuration, CompressionConfiguration)
        return CompressionPoint(task, task.configuration)
