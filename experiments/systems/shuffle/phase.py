"""One phase of a shuffle trial: one shuffle, and the events of its agents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gradbed.controller.systems.shuffle.messages import ShuffleRequest
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.systems.shuffle.jobs import ShuffleJob


class ShufflePhase(Phase):
    """One shuffle."""

    def __init__(
        self,
        name: str,
        request: ShuffleRequest,
        make_job: Callable[[Mapping[str, Any]], ShuffleJob],
        stopped: Collection[str] = (),
    ) -> None:
        """Prepare the phase.

        Args:
            make_job: makes the shuffle from the service's answer.
            stopped: names of agents that are stopped for good, which the phase does not wait for.
        """
        super().__init__(name, [request])
        self._make_job = make_job
        self._stopped = frozenset(stopped)
        self._waited_for: frozenset[str] = frozenset()
        self._begun_us: list[int] = []
        self._shuffled_us: dict[str, int] = {}
        """End time of each agent that has sent and decoded everything, by its name."""
        self.waits_us: dict[int, int] = {}
        """Wait of each transmission of class A."""

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        (answer,) = answers
        self.job = self._make_job(answer)
        specs = self.job.agents()
        self._waited_for = frozenset(spec.name for spec in specs) - self._stopped
        return specs

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        if event["event"] == "begun":
            self._shuffled_us.pop(event["name"], None)  # it was started anew
        elif event["event"] == "shuffled":
            self._begun_us.append(event["begun_us"])
            self._shuffled_us[event["name"]] = event["shuffled_us"]
            self.waits_us.update({int(number): wait for number, wait in event["waits_us"].items()})
        return None

    @property
    def _done(self) -> frozenset[str]:
        return self._waited_for & self._shuffled_us.keys()

    @property
    def complete(self) -> bool:
        return self._done == self._waited_for

    def progress(self) -> list[Progress]:
        return [Progress(self.name, len(self._done), len(self._waited_for))]

    @property
    def time_us(self) -> int:
        """Time from the first worker's beginning until the last has sent and decoded everything; 0 if all were
        stopped.
        """
        return max(self._shuffled_us.values()) - min(self._begun_us) if self._shuffled_us else 0
