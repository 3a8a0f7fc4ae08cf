"""A phase whose workers run a PyTorch script: how long a gradient is, is known when all have registered a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.systems.aggregation.agents import MODULE, WORKER_RANK, server_spec
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration, ScriptWorkload
from gradbed.experiments.systems.aggregation.jobs import describe_job
from gradbed.experiments.systems.aggregation.phase import AggregationPhase, RoundReport
from gradbed.experiments.testbeds.agents import AgentSpec
from gradbed.experiments.torch_scripts import SILENCE_US, ScriptWorkers, check_script
from gradbed.hosts.learning.settings import ExternalSettings


class ScriptPhase(ScriptWorkers, AggregationPhase):
    """One job. Without a reference nothing is compared."""

    @property
    def values(self) -> int:
        """Of a gradient; 0: no model was registered."""
        return self._ranks.values

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        job = describe_job(self.jobs[0], answers[0], self.exchange, self.shared)
        job = job.model_copy(update={"give_up_us": SILENCE_US})
        self.descriptions = [job]
        return self._ranks.specs(job, f"{MODULE}:open_exchange", WORKER_RANK)

    def take(self, event: Mapping[str, Any]) -> list[AgentSpec] | None:
        if event["event"] == "round":
            self._take_round(0, event)
        if not self._ranks.take(event):
            return None
        (job,) = self.descriptions
        self.descriptions = [job.model_copy(update={"workload": ExternalSettings(values=self.values)})]
        return [server_spec(self.descriptions[0])] if self.exchange == "server" else []

    def _report(self, place: int, number: int) -> RoundReport:
        while len(self.rounds[place]) <= number:
            self.rounds[place].append(RoundReport())
        return self.rounds[place][number]

    @property
    def complete(self) -> bool:
        return self._ranks.complete


def check_script_jobs(configuration: AggregationConfiguration) -> None:
    """UserError if the script cannot run."""
    workload = configuration.workload
    assert isinstance(workload, ScriptWorkload)
    check_script(configuration, workload)
    if workload.jobs > 1:
        raise UserError("--jobs: a script is one job")
    if workload.baselines:
        raise UserError("--baselines: a script runs once; compare by running it again with another --placement")
