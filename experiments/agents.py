"""The agents of a job, as the experiment sees them: one launcher process that forks them into their hosts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from experiments.testbed import Testbed
from hosts.job import JobDescription
from switch.errors import UserError
from topo.json_lines import JsonLinesProcess, own_program

SILENCE_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 3.0


class Agents:
    """The launcher process and the agents it forks. A context manager."""

    def __init__(self, folder: Path) -> None:
        command = own_program("hosts.agents.launcher")
        self._process = JsonLinesProcess("agent launcher", command, log=folder / "agents.log")

    def __enter__(self) -> Agents:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stop(STOP_TIMEOUT_S)

    def start(self, testbed: Testbed, job: JobDescription) -> None:
        """Start the job's server and workers; return when all are ready."""
        description = job.model_dump(mode="json")
        roles = [("server", None, job.server.name), *(("worker", w.index, w.name) for w in job.workers)]
        for role, index, host in roles:
            self._process.send(
                "start",
                role=role,
                index=index,
                host_pid=testbed.network.host_pid(host),
                interface=f"{host}-eth0",
                job=description,
            )
        for _ in roles:
            self.event("ready")

    def begin(self) -> None:
        """Let the workers train."""
        self._process.send("begin")

    def stop(self) -> dict[str, dict[str, Any]]:
        """End all agents; their final statistics by agent name ("server", "worker 0", ...)."""
        self._process.send("stop")
        final: dict[str, dict[str, Any]] = {}
        while True:
            event = self.event()
            if event["event"] == "final":
                final[event["name"]] = event["statistics"]
            elif event["event"] == "stopped":
                return final

    def event(self, name: str | None = None) -> dict[str, Any]:
        """The next event, or the next with this name. An agent's error is raised as UserError."""
        deadline = time.monotonic() + SILENCE_TIMEOUT_S
        while True:
            event = self._process.event(deadline - time.monotonic())
            if event["event"] == "error":
                raise UserError(f"{event['name']}: {event['message']}")
            if name is None or event["event"] == name:
                return event
