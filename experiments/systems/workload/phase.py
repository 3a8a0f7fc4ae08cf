"""The one phase of a workload: all hosts send, until every schedule is over, and what goes on beside them, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from controller.entries.service import Traffic as TrafficJob
from experiments.agents import AgentSpec
from experiments.system import Progress
from experiments.traffic.agents import Traffic
from experiments.traffic.background import Background
from experiments.traffic.connections import ConnectionTraffic


class WorkloadPhase:
    """experiments.system.Phase."""

    name = "traffic"
    waits = False

    def __init__(self, traffic: Traffic | ConnectionTraffic, background: Background | None) -> None:
        self.traffic = traffic
        self.requests: Sequence[BaseModel] = [TrafficJob()]
        self.job = 0
        self.sent = 0
        self.packets = 0
        """Or connections."""
        self._background = background
        self._rounds_over = 0

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        self.job = answers[0]["job"]
        beside = [] if self._background is None else self._background.of_job(self.job)
        return [*(replace(spec, job=self.job) for spec in self.traffic.specs), *beside]

    def take(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "sent":
            self.sent += 1
            self.packets += event["packets"]
        elif event["event"] == "background":
            self._rounds_over += 1

    @property
    def complete(self) -> bool:
        workers = 0 if self._background is None else len(self._background.workers)
        return self.sent == len(self.traffic.specs) and self._rounds_over == workers

    def progress(self) -> list[Progress]:
        noun = "connections" if isinstance(self.traffic, ConnectionTraffic) else "packets"
        note = f"{self.packets:,} {noun}" if self.packets else ""
        return [Progress("hosts that have sent", self.sent, len(self.traffic.specs), note)]
