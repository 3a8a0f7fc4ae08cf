"""A phase whose workers run a PyTorch script: how long a gradient is, is known when all have registered a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.experiments.systems.compression.phase import MODULE, WORKER_RANK, CompressionPhase, RoundReport
from gradbed.experiments.testbeds.agents import AgentSpec
from gradbed.experiments.torch_scripts import SILENCE_US, ScriptWorkers


class ScriptPhase(ScriptWorkers, CompressionPhase):
    """As many rounds as the script takes."""

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        patience = {"give_up_us": SILENCE_US, "left_after_us": SILENCE_US}
        self.description = self._describe(answers[0]).model_copy(update=patience)
        scripts = self._ranks.specs(self.description, f"{MODULE}:open_exchange", WORKER_RANK)
        return [*scripts, *self._background(self.description.job)]

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        super().take(event)
        if not self._ranks.take(event):
            return None
        assert self.description is not None
        workload = self.description.workload.model_copy(update={"values": self._ranks.values})
        self.description = self.description.model_copy(update={"workload": workload})
        return [self.server_spec(self.description)]

    def _report(self, number: int) -> RoundReport:
        while len(self.rounds) <= number:
            self.rounds.append(RoundReport())
        return self.rounds[number]

    @property
    def complete(self) -> bool:
        return self._ranks.complete and self.background_is_over
