"""The agents of jobs, as the experiment sees them: one launcher process that forks them into their hosts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.testbed import Testbed
from hosts.systems.aggregation.description import JobDescription
from switch.errors import UserError
from topo.json_lines import JsonLinesProcess, own_program

SILENCE_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 3.0


class Agents:
    """The launcher process and the agents it forks. A context manager."""

    def __init__(
        self, folder: Path, *, keep_open: Sequence[int] = (), silence_timeout_s: float = SILENCE_TIMEOUT_S
    ) -> None:
        """keep_open: descriptors that the agents inherit. silence_timeout_s: an event comes at least so often."""
        command = own_program("hosts.agents.launcher")
        self._process = JsonLinesProcess("agent launcher", command, log=folder / "agents.log", keep_open=keep_open)
        self._silence_timeout_s = silence_timeout_s

    def __enter__(self) -> Agents:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stop(STOP_TIMEOUT_S)

    def start(self, testbed: Testbed, job: JobDescription) -> None:
        """Start a job's server, if it has one, and workers; return when all are ready."""
        if job.exchange == "server":
            self.start_server(testbed, job)
        for worker in job.workers:
            self.start_worker(testbed, job, worker.index)
        for _ in range(len(job.workers) + (job.exchange == "server")):
            self.event("ready")

    def start_server(self, testbed: Testbed, job: JobDescription) -> None:
        """It says "ready" later."""
        self._start(testbed, job, job.server.name, role="server")

    def start_worker(self, testbed: Testbed, job: JobDescription, index: int, **options: Any) -> None:
        """It says "ready" later. options: more of the launcher's start command."""
        self._start(testbed, job, job.workers[index].name, role="worker", index=index, **options)

    def _start(self, testbed: Testbed, job: JobDescription, host: str, **fields: Any) -> None:
        self._process.send(
            "start",
            host_pid=testbed.network.host_pid(host),
            interface=f"{host}-eth0",
            job=job.model_dump(mode="json"),
            **fields,
        )

    def begin(self) -> None:
        """Let the workers of all jobs work."""
        self._process.send("begin")

    def stop(self, jobs: int) -> dict[tuple[int, str], dict[str, Any]]:
        """End the agents of all `jobs` jobs; their final statistics by job number and agent name ("server",
        "worker 0", ...)."""
        self._process.send("stop")
        final: dict[tuple[int, str], dict[str, Any]] = {}
        while jobs:
            event = self.event()
            if event["event"] == "final":
                final[event["job"], event["name"]] = event["statistics"]
            elif event["event"] == "stopped":
                jobs -= 1
        return final

    def event(self, name: str | None = None) -> dict[str, Any]:
        """The next event, or the next with this name. An agent's error is raised as UserError."""
        deadline = time.monotonic() + self._silence_timeout_s
        while True:
            event = self._process.event(deadline - time.monotonic())
            if event["event"] == "error":
                raise UserError(f"{event['name']}: {event['message']}")
            if name is None or event["event"] == name:
                return event
