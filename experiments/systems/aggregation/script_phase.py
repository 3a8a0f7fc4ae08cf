"""A phase whose workers run a PyTorch script: how long a gradient is, is known when all have registered a model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.agents import AgentSpec
from experiments.system import Progress
from experiments.systems.aggregation.agents import script_spec, server_spec
from experiments.systems.aggregation.configuration import AggregationConfiguration, ScriptWorkload
from experiments.systems.aggregation.jobs import describe_job
from experiments.systems.aggregation.phase import AggregationPhase, RoundReport
from hosts.learning.settings import ExternalSettings
from hosts.torch_hook.script import Script
from hosts.torch_hook.torch_extra import require_torch
from switch.errors import UserError

SCRIPT_SILENCE_S = 3600.0
"""A script may compute so long between two backward passes."""


class ScriptPhase(AggregationPhase):
    """One job; the first worker's output is the command's own. Without a reference nothing is compared."""

    waits = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._terminal = (os.dup(1), os.dup(2))
        self.keep_open = self._terminal
        self.values = 0
        """Of a gradient; 0: no model was registered."""
        self._registered: dict[str, int] = {}
        self._ended = 0

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        job = describe_job(
            self.jobs[0], answers[0], self.exchange, self._topology, self._configuration, self._scale
        ).model_copy(update={"give_up_us": round(1e6 * SCRIPT_SILENCE_S)})
        self.descriptions = [job]
        return [script_spec(job, worker.index, self._script(worker.index)) for worker in job.workers]

    def _script(self, index: int) -> Script:
        workload = self._configuration.workload
        assert isinstance(workload, ScriptWorkload)
        log = str((self._task.folder / f"worker-{index}.log").absolute())
        return Script(
            path=str(workload.path.absolute()),
            arguments=workload.arguments,
            output=log if index else self._terminal,
        )

    def take(self, event: Mapping[str, Any]) -> list[AgentSpec] | None:
        workers = len(self.jobs[0].workers)
        if event["event"] == "registered":
            self._registered[event["name"]] = event["values"]
            if len(self._registered) == workers:
                return self._all_registered()
        elif event["event"] == "round":
            self._take_round(0, event)
        elif event["event"] == "done" and event["name"] != "server":
            self._ended += 1
        if self._ended and 0 < len(self._registered) < workers:
            raise UserError("some ranks have registered a model, others have ended without: every rank must")
        return None

    def _all_registered(self) -> list[AgentSpec]:
        if len(set(self._registered.values())) > 1:
            found = ", ".join(f"{name} {values}" for name, values in sorted(self._registered.items()))
            raise UserError(f"the ranks have registered models with different numbers of values: {found}")
        self.values = next(iter(self._registered.values()))
        (job,) = self.descriptions
        self.descriptions = [job.model_copy(update={"workload": ExternalSettings(values=self.values)})]
        return [server_spec(self.descriptions[0])] if self.exchange == "server" else []

    def _report(self, place: int, number: int) -> RoundReport:
        while len(self.rounds[place]) <= number:
            self.rounds[place].append(RoundReport())
        return self.rounds[place][number]

    @property
    def complete(self) -> bool:
        return self._ended == len(self.jobs[0].workers)

    def progress(self) -> list[Progress]:
        return []  # the terminal is the script's


def check_script(configuration: AggregationConfiguration) -> None:
    """UserError if the script cannot run."""
    workload = configuration.workload
    assert isinstance(workload, ScriptWorkload)
    require_torch("gradbed run torch")
    if not workload.path.is_file():
        raise UserError(f"there is no script {workload.path}")
    if configuration.clock == "virtual":
        raise UserError("--clock: a PyTorch script runs in processes of its own: use the real clock")
    if workload.jobs > 1:
        raise UserError("--jobs: a script is one job")
    if workload.baselines:
        raise UserError("--baselines: a script runs once; compare by running it again with another --placement")
