"""The interconnect system: traffic over the optical and electrical interconnect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.configuration.point import PointConfiguration
from experiments.scale import Scale
from experiments.system import Metric, PointTask, System
from experiments.systems.interconnect import figures as _figures  # noqa: F401  # their kinds
from experiments.systems.interconnect.configuration import DEFAULT_TOPOLOGY, InterconnectConfiguration
from experiments.systems.interconnect.metrics import METRICS
from experiments.systems.interconnect.point import InterconnectPoint, build_topology
from experiments.traffic.agents import check_traffic
from switch.errors import UserError
from switch.link import MOST_CHANNELS
from topo.optical_electrical import size_of


class InterconnectSystem(System):
    """Traffic over the optical and electrical interconnect, routed by the load of its queues."""

    name = "interconnect"
    configuration = InterconnectConfiguration
    metrics: Mapping[str, Metric] = METRICS
    service = "controller.systems.interconnect.service:InterconnectService"
    assurance = "All packets are accounted for: hosts, switches and links agree."
    defaults: Mapping[str, Any] = {"clock": "virtual", "topology.kind": DEFAULT_TOPOLOGY}
    benches: Mapping[str, str] = {"interconnect": "experiments.systems.interconnect.bench.commands:interconnect"}

    def check(self, configuration: PointConfiguration) -> None:
        assert isinstance(configuration, InterconnectConfiguration)
        n = size_of(configuration.topology.build(Scale()))
        routing = configuration.routing
        if routing.channels == "wavelength":
            if n > MOST_CHANNELS:
                raise UserError(
                    f"--channels: {n} units have {n} wavelengths, and at most {MOST_CHANNELS} can be channels: take "
                    "--channels uplink"
                )
            if routing.model == "bmv2":
                raise UserError("--channels: BMv2's ports are one channel: take --channels uplink")
        if configuration.clock == "virtual" and routing.model != "gradbed":
            raise UserError(f"--switch: {routing.model} needs the real clock: use --switch gradbed, or --clock real")
        configuration.samples.order(configuration.topology.build(Scale()), Scale())
        check_traffic(configuration.traffic, build_topology(configuration, Scale()))

    def point(self, task: PointTask) -> InterconnectPoint:
        assert isinstance(task.configuration, InterconnectConfiguration)
        return InterconnectPoint(task, task.configuration)
