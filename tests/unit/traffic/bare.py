"""Traffic on the virtual clock through plain routers, without any system's jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradbed.controller.core.service import NoSettings, Service
from gradbed.controller.planning.plan import Plan
from gradbed.experiments.configuration.sections import SampleOrder
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.engine.sampling import Sampler
from gradbed.experiments.programs import FORWARD
from gradbed.experiments.runtimes.virtual import VirtualRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.system import System
from gradbed.experiments.traffic.agents import plan_traffic
from gradbed.experiments.traffic.configuration import TrafficSection
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.topo.graph import Topology


class BareService(Service[NoSettings, NoSettings, NoSettings, NoSettings]):
    """Nothing beside the routes."""

    Settings = Request = State = Answer = NoSettings
    programs = ("forward",)

    def admit(self, number: int, request: NoSettings, others: Mapping[int, NoSettings]) -> NoSettings:
        return request

    def plan(self, number: int, state: NoSettings) -> Plan:
        return Plan(switches={})

    def answer(self, number: int, state: NoSettings) -> NoSettings:
        return state


class BareSystem(System):
    name = "bare"
    service = f"{__name__}:BareService"

    def trial(self, task: Any) -> Any:
        raise NotImplementedError("traffic is run by the test itself")


def run_traffic(
    section: TrafficSection, topology: Topology, folder: Path, seed: int = 1, scale: Scale | None = None
) -> TrafficResults:
    """topology: in emulated units."""
    return run_sampled(section, topology, folder, None, seed, scale)[0]


def run_sampled(
    section: TrafficSection,
    topology: Topology,
    folder: Path,
    order: SampleOrder | None,
    seed: int = 1,
    scale: Scale | None = None,
) -> tuple[TrafficResults, Mapping[str, Sequence[Mapping[str, Any]]]]:
    scale = scale or Scale()
    task = TrialTask(TrialConfiguration(clock="virtual"), seed, scale, folder)
    traffic = plan_traffic(section, topology, scale, seed)
    switches = {switch.name: FORWARD for switch in topology.switches}
    with VirtualRuntime(BareSystem(), NetworkSetup(topology, switches, NoSettings()), task) as runtime:
        runtime.agents.start(traffic.specs)
        runtime.begin()
        sampler = Sampler(runtime, order or SampleOrder(1), scale)
        if order is not None:
            sampler.start()
        sent = 0
        while sent < len(traffic.specs):
            sent += runtime.event()["event"] == "sent"
        runtime.cancel_calls()
        assert runtime.backend.quiesce(3600.0)
        return TrafficResults.of(traffic, runtime.stop_agents()), sampler.rows()
