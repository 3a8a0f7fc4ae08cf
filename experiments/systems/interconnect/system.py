"""The interconnect system: traffic over the optical and electrical interconnect."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError, suggestion
from gradbed.controller.core.service import ServiceConfig
from gradbed.controller.systems.interconnect.entries import POLICIES
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import FabricProgram, TrialTask
from gradbed.experiments.system import System, SystemOptions, SystemReport
from gradbed.experiments.systems.interconnect import figures as _figures  # noqa: F401  # their kinds
from gradbed.experiments.systems.interconnect.configuration import DEFAULT_TOPOLOGY, InterconnectConfiguration
from gradbed.experiments.systems.interconnect.metrics import METRICS
from gradbed.experiments.systems.interconnect.trial import InterconnectTrial, build_topology, programs_of
from gradbed.experiments.tables.metric import Metric
from gradbed.experiments.traffic.agents import check_traffic
from gradbed.experiments.traffic.connections import check_faults_of_traffic
from gradbed.hosts.traffic.schedule import longest_frame_bytes
from gradbed.topo.graph import Topology
from gradbed.topo.link import MOST_CHANNELS
from gradbed.topo.optical_electrical import WAVELENGTH_BYTES, size_of, with_wavelengths


class InterconnectSystem(System[InterconnectConfiguration]):
    """Traffic over the optical and electrical interconnect, routed by the load of its queues."""

    name = "interconnect"
    configuration = InterconnectConfiguration
    service = "gradbed.controller.systems.interconnect.service:InterconnectService"
    metrics: Mapping[str, Metric] = METRICS
    options = SystemOptions(
        defaults={"clock": "virtual", "topology.kind": DEFAULT_TOPOLOGY},
        bmv2_defaults={"routing.channels": "uplink"},
    )
    report = SystemReport(
        main_metrics=("accepted_load", "latency_s", "latency_p99_s", "loss", "largest_link_load"),
        assurance="Every packet is accounted for: host, switch and link counters agree.",
        colours={"least-loaded": 0, "random-plane": 1, "fixed-plane": 2, "mesh-first": 3, "ecmp": 4},
    )

    def check(self, configuration: InterconnectConfiguration) -> None:
        topology = configuration.topology.build(Scale())
        try:
            size_of(topology)
        except UserError as error:
            raise UserError(f"--topology: {error}") from error
        routing = configuration.routing
        if routing.optical == "openflow":
            REAL_CLOCK.require(configuration.clock == "real", "--optical: Open vSwitch", "--optical p4")
        if routing.channels != "uplink":
            if routing.optical == "openflow":
                raise UserError("--channels: Open vSwitch's ports are one channel: take --channels uplink")
            _require_channels(topology)
            if configuration.program.model == "bmv2":
                raise UserError("--channels: BMv2's ports are one channel: take --channels uplink")
        if routing.channels == "circuit":
            _check_guard(configuration)
        configuration.samples.order(topology, Scale())
        check_traffic(configuration.traffic, build_topology(configuration, Scale()))
        check_faults_of_traffic(configuration.faults)

    def fabric_program(self, topology: Topology, policy: str, seed: int) -> FabricProgram:
        """Return the interconnect as a fabric program; by default of policy least-loaded."""
        _require_channels(topology)
        policy = policy or "least-loaded"
        if policy not in POLICIES:
            raise UserError(
                f"--fabric-program: {self.name} has no policy {policy!r}{suggestion(policy, list(POLICIES))}"
            )
        settings = {"policy": policy, "per_wavelength": True, "seed": seed}
        return FabricProgram(
            with_wavelengths(topology),
            programs_of(topology, channels=True),
            ServiceConfig(name=self.name, service=self.service, settings=settings),
        )

    def trial(self, task: TrialTask[InterconnectConfiguration]) -> InterconnectTrial:
        return InterconnectTrial(task)


def _require_channels(topology: Topology) -> None:
    """Raise UserError if the network has more wavelengths than a link has channels, or is of another kind."""
    if (n := size_of(topology)) > MOST_CHANNELS:
        raise UserError(
            f"--channels: {n} units have {n} wavelengths, and at most {MOST_CHANNELS} can be channels: take "
            "--channels uplink"
        )


def _check_guard(configuration: InterconnectConfiguration) -> None:
    """Raise UserError if slots leave no time to send, or if a packet may still be in flight when the switch is
    set.
    """
    routing, rate_mbps = configuration.routing, configuration.topology.link.rate_mbps
    if routing.slot_us <= routing.guard_us:
        raise UserError(
            f"--slot-us: a slot of {routing.slot_us:g} us is all guard time (--guard-us {routing.guard_us:g}): "
            "take a longer one"
        )
    if rate_mbps is None:
        return
    longest = longest_frame_bytes(configuration.traffic.agent_sizes) + WAVELENGTH_BYTES
    least_us = math.ceil(8 * longest / rate_mbps)
    if routing.guard_us < least_us:
        raise UserError(
            f"--guard-us: a packet of {longest} bytes takes {least_us} us, and must have left before the optical "
            f"switch is set: take {least_us} or more"
        )
