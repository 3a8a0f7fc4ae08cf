"""The one phase of a point: traffic, from the first packet to the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controller.systems.interconnect.service import Traffic as TrafficJob
from experiments.phases import Progress
from experiments.setup import PointTask
from experiments.testbeds.agents import AgentSpec
from experiments.traffic.agents import Traffic, plan_traffic
from experiments.traffic.configuration import TrafficSection
from topo.graph import Topology


class TrafficPhase:
    """experiments.phases.Phase."""

    name = "traffic"
    waits = False
    requests = (TrafficJob(),)

    def __init__(self, section: TrafficSection, topology: Topology, task: PointTask) -> None:
        self._section, self._topology, self._task = section, topology, task
        self.traffic: Traffic = plan_traffic(section, topology, task.scale, task.seed)
        self._sent = 0

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> Sequence[AgentSpec]:
        (answer,) = answers
        task = self._task
        self.traffic = plan_traffic(self._section, self._topology, task.scale, task.seed, job=answer["job"])
        return self.traffic.specs

    def take(self, event: Mapping[str, Any]) -> None:
        self._sent += event["event"] == "sent"

    @property
    def complete(self) -> bool:
        return self._sent == len(self.traffic.specs)

    def progress(self) -> list[Progress]:
        return [Progress(self.name, self._sent, len(self.traffic.specs))]
