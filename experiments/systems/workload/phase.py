"""The one phase of a workload: all hosts send, until every schedule is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from controller.entries.service import Traffic as TrafficJob
from experiments.agents import AgentSpec
from experiments.system import Progress
from experiments.traffic.agents import Traffic


class WorkloadPhase:
    """experiments.system.Phase."""

    name = "traffic"
    waits = False

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.requests: Sequence[BaseModel] = [TrafficJob()]
        self.job = 0
        self.sent = 0
        self.packets = 0

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        self.job = answers[0]["job"]
        return [replace(spec, job=self.job) for spec in self.traffic.specs]

    def take(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "sent":
            self.sent += 1
            self.packets += event["packets"]

    @property
    def complete(self) -> bool:
        return self.sent == len(self.traffic.specs)

    def progress(self) -> list[Progress]:
        note = f"{self.packets:,} packets" if self.packets else ""
        return [Progress("hosts that have sent", self.sent, len(self.traffic.specs), note)]
