"""PyTorch scripts as the workers of a phase, whichever system sums for them (docs/torch.md)."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError
from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.phases import Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.setup import TrialTask
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.torch_hook.agent import Script, ScriptConfig
from gradbed.hosts.torch_hook.torch_extra import require_torch

MODULE = "gradbed.hosts.torch_hook.agent"
"""For NetworkSetup.preload."""

SILENCE_US = 3_600_000_000
"""A script may compute so long between two backward passes."""


class ScriptSection(Section):
    """Of a workload: a script, once in each worker's host, that trains with the hook of gradbed.hosts.torch_hook."""

    kind: Literal["script"] = "script"
    path: Path = option(Path(), "PyTorch script that every worker runs (--workload script).", name="script")
    arguments: tuple[str, ...] = Field(default=(), json_schema_extra={"option": False})


class ScriptRanks:
    """The scripts of a job. The first worker's output is the command's own."""

    def __init__(self, workload: ScriptSection, folder: Path) -> None:
        """folder: for the other workers' output."""
        self._workload = workload
        self._folder = folder
        self.keep_open: Sequence[int] = (os.dup(1), os.dup(2))
        """For NetworkSetup.keep_open; closed with this object."""
        for descriptor in self.keep_open:
            weakref.finalize(self, os.close, descriptor)
        self.values = 0
        """Of a gradient; 0: no model was registered."""
        self._workers = 0
        self._registered: dict[str, int] = {}
        self._ended = 0

    def specs(self, job: CollectiveJob, exchange: str, stop_rank: int) -> list[AgentSpec]:
        """exchange: as of gradbed.hosts.torch_hook.agent.ScriptConfig. How long a gradient is, is not known
        yet."""
        self._workers = len(job.workers)
        return [
            AgentSpec(
                host=worker.name,
                agent=f"{MODULE}:main",
                name=f"worker {worker.index}",
                config=ScriptConfig(
                    exchange=exchange,
                    job=job.model_dump(mode="json"),
                    index=worker.index,
                    script=self._script(worker.index),
                ),
                stop_rank=stop_rank,
                job=job.job,
            )
            for worker in job.workers
        ]

    def _script(self, index: int) -> Script:
        log = str((self._folder / f"worker-{index}.log").absolute())
        return Script(
            path=str(self._workload.path.absolute()),
            arguments=self._workload.arguments,
            output=log if index else (self.keep_open[0], self.keep_open[1]),
        )

    def take(self, event: Mapping[str, Any]) -> bool:
        """Whether with this event all ranks have registered a model, and `values` is known. UserError if they do not
        agree."""
        if event["event"] == "registered":
            self._registered[event["name"]] = event["values"]
            if len(self._registered) == self._workers:
                self.values = self._agreed()
                return True
        elif event["event"] == "done" and event["name"] != "server":
            self._ended += 1
        if self._ended and 0 < len(self._registered) < self._workers:
            raise UserError("some ranks have registered a model, others have ended without: every rank must")
        return False

    def _agreed(self) -> int:
        if len(set(self._registered.values())) > 1:
            found = ", ".join(f"{name} {values}" for name, values in sorted(self._registered.items()))
            raise UserError(f"the ranks have registered models with different numbers of values: {found}")
        return next(iter(self._registered.values()))

    @property
    def complete(self) -> bool:
        """Whether all scripts have ended."""
        return self._workers > 0 and self._ended == self._workers


class ScriptWorkers:
    """What phases whose workers run a script have in common, before a system's own: class X(ScriptWorkers, Own)."""

    waits = True
    task: TrialTask[Any]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ranks = ScriptRanks(self.task.configuration.workload, self.task.folder)
        self.keep_open = self._ranks.keep_open

    def progress(self) -> list[Progress]:
        return []  # the terminal is the script's


def check_script(configuration: TrialConfiguration, workload: ScriptSection) -> None:
    """UserError if the script cannot run."""
    require_torch("gradbed run torch")
    if not workload.path.is_file():
        raise UserError(f"there is no script {workload.path}")
    REAL_CLOCK.require(configuration.clock == "real", "--clock: a PyTorch script")
