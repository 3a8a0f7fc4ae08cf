"""A phase of a point: one shuffle, and what its agents tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller.systems.shuffle.messages import ShuffleRequest
from experiments.agents import AgentSpec
from experiments.system import Progress
from experiments.systems.shuffle.jobs import ShuffleJob


class ShufflePhase:
    """experiments.system.Phase. make_job: of the service's answer."""

    waits = False

    def __init__(
        self, name: str, request: ShuffleRequest, make_job: Callable[[Mapping[str, Any]], ShuffleJob]
    ) -> None:
        self.name = name
        self.requests = [request]
        self._make_job = make_job
        self._agents = 0
        self.begun_us: list[int] = []
        self.shuffled_us: list[int] = []
        self.waits_us: dict[int, int] = {}
        """Of transmissions of class A."""

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        (answer,) = answers
        self.job = self._make_job(answer)
        specs = self.job.agents()
        self._agents = len(specs)
        return specs

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        if event["event"] == "shuffled":
            self.begun_us.append(event["begun_us"])
            self.shuffled_us.append(event["shuffled_us"])
            self.waits_us.update({int(number): wait for number, wait in event["waits_us"].items()})
        return None

    @property
    def complete(self) -> bool:
        return len(self.shuffled_us) == self._agents

    def progress(self) -> list[Progress]:
        return [Progress(self.name, len(self.shuffled_us), self._agents)]

    @property
    def time_us(self) -> int:
        """From the first worker's beginning until the last has sent and decoded everything."""
        return max(self.shuffled_us) - min(self.begun_us)
