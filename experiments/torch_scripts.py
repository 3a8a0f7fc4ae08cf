"""PyTorch scripts as the workers of a phase, whichever system sums for them (docs/torch.md)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError
from gradbed.common.modules import attribute
from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.phases import Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems import find_system, systems
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.torch_hook.agent import Script, ScriptConfig
from gradbed.hosts.torch_hook.torch_extra import require_torch

MODULE = "gradbed.hosts.torch_hook.agent"
"""For NetworkSetup.preload."""

SILENCE_US = 3_600_000_000
"""A script may compute so long between two backward passes."""


class ScriptSection(Section):
    """Workload of a script that runs in each worker's host and trains with the hook of gradbed.hosts.torch_hook."""

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
        """Take an event; return whether all ranks have now registered a model, so that `values` is known.

        Raises:
            UserError: ranks have registered different models, or some none.
        """
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
        """Return whether all scripts have ended."""
        return self._workers > 0 and self._ended == self._workers


class ScriptWorkers:
    """Mixin of phases whose workers run a script, before a system's own: class X(ScriptWorkers, Own)."""

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


# ---- Recording a script on this machine alone ----


RECORDER = "gradbed.hosts.torch_hook.recorder"
LOOK_S = 0.1
OF_THE_PROFILER = "USDT:"
"""Begins the lines of the profiler's own, which PyTorch prints whatever it is told."""


def run_torch_recording(script: Path, arguments: Sequence[str], ranks: int, folder: Path) -> int:
    """Run a script on `ranks` ranks, and record their trace in `folder`. UserError if a rank fails, or the
    folder has something in it."""
    require_torch("gradbed run torch --trace")
    if not script.is_file():
        raise UserError(f"there is no script {script}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already: choose another folder")
    convert = attribute(_recorder())
    with tempfile.TemporaryDirectory(prefix="gradbed-recording-") as recorded:
        _run_ranks(script, arguments, ranks, Path(recorded))
        print(f"made {convert(Path(recorded), ranks, folder)}")
    return 0


def _recorder() -> str:
    """Return "module:function" of the system that makes traces of recordings."""
    for name in systems():
        place = find_system(name).tools.recorder
        if place is not None:
            return place
    raise UserError("--trace: no system that is installed makes traces")


def _run_ranks(script: Path, arguments: Sequence[str], ranks: int, recorded: Path) -> None:
    """The first rank prints to the terminal; of another that fails its last line is told."""
    command = [sys.executable, "-m", RECORDER, str(recorded), str(script.absolute()), *arguments]
    common = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "KINETO_LOG_LEVEL": "5",
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
    }
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        for rank in range(ranks):
            of_rank = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            with (recorded / f"output.{rank}").open("wb") as output:
                to = None if rank == 0 else output
                running[rank] = subprocess.Popen(command, env=of_rank, stdin=subprocess.DEVNULL, stdout=to, stderr=to)
        _wait(running, recorded)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _wait(running: dict[int, subprocess.Popen[bytes]], recorded: Path) -> None:
    left = dict(running)
    while left:
        for rank, process in [*left.items()]:
            status = process.poll()
            if status is None:
                continue
            del left[rank]
            if status != 0:
                raise UserError(f"rank {rank} of the script ended with status {status}{_reason(recorded, rank)}")
        time.sleep(LOOK_S)


def _reason(recorded: Path, rank: int) -> str:
    """The last line that a rank printed, but for what the profiler says of itself."""
    lines = (recorded / f"output.{rank}").read_text(errors="replace").splitlines()
    said = [line for line in lines if line.strip() and not line.startswith(OF_THE_PROFILER)]
    return f": {said[-1]}" if said else ""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
