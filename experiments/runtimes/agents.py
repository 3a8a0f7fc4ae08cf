"""The agents of a run, as the experiment sees them: one launcher process that forks them into their hosts."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from gradbed.common.errors import UserError
from gradbed.common.json_lines import JsonLinesProcess, own_program
from gradbed.formats.packet_class import PacketClass
from gradbed.hosts.agents.launching import ComputeTimes

SILENCE_TIMEOUT_S = 60.0
"""Nothing at all of the launcher for so long, which gives signs of life as long as there are agents, is an error."""
STOP_TIMEOUT_S = 3.0
KERNEL_NIC = "gradbed.switch.kernel_nic:KernelNic"
"""Hosts know nothing of switches, whose engine has it."""


@dataclass(frozen=True)
class AgentSpec:
    """An agent to start.

    agent: "module:function", which takes a gradbed.hosts.agents.context.AgentContext and a config. name: unique
    within the job. stop_rank: when the job stops, agents of a lower rank are told first, the next once these have
    ended.
    """

    host: str
    agent: str
    name: str
    config: BaseModel | Mapping[str, Any]
    stop_rank: int = 0
    job: int = 1


class Hosts(Protocol):
    """Hosts in which agents run (gradbed.emulation.network.EmulatedNetwork)."""

    def host_pid(self, host: str) -> int:
        """Return a process in the host's namespaces."""

    def host_interfaces(self, host: str) -> tuple[str, ...]:
        """Return names of interfaces, in the order of the host's ports."""


class Launcher(Protocol):
    """Takes commands and gives events of gradbed.hosts.agents.kernel.launcher: a process, or all on virtual time.

    A start's config is a pydantic model or a mapping, which may become JSON on the way.
    """

    def send(self, command: str, **arguments: Any) -> None: ...

    def event(self, timeout_s: float) -> dict[str, Any]: ...

    def has_event(self, timeout_s: float) -> bool: ...

    def stop(self, timeout_s: float) -> None: ...


class LauncherProcess(JsonLinesProcess):
    """A launcher that is given configs as JSON."""

    def send(self, command: str, **arguments: Any) -> None:
        config = arguments.get("config", {})
        if isinstance(config, BaseModel):
            arguments["config"] = config.model_dump(mode="json")
        elif config:
            arguments["config"] = dict(config)
        super().send(command, **arguments)


class Agents:
    """The launcher and its agents. A context manager."""

    def __init__(
        self,
        folder: Path,
        hosts: Hosts,
        *,
        preload: Sequence[str] = (),
        keep_open: Sequence[int] = (),
        silence_timeout_s: float = SILENCE_TIMEOUT_S,
        compute: ComputeTimes | None = None,
        launcher: Launcher | None = None,
        classes: Sequence[PacketClass] = (),
        rates_bps: Mapping[str, tuple[int | None, ...]] | None = None,
    ) -> None:
        """Start the launcher.

        Args:
            folder: Where its log goes.
            hosts: Hosts of the agents; need not be up before the first agent starts.
            preload: Modules that the launcher loads at once.
            keep_open: Descriptors that the agents inherit.
            silence_timeout_s: Silence of the launcher for so long is an error.
            compute: Minimum duration of computations.
            launcher: One that is there (gradbed.hosts.agents.virtual.launcher) instead of a process.
            classes: Packet classes by which interfaces count.
            rates_bps: Rates of the links of each host's interfaces, for NICs.
        """
        self._rates_bps = rates_bps or {}
        self._classes = tuple(each.words for each in classes)
        self._launcher: Launcher = launcher or LauncherProcess(
            "agent launcher",
            own_program(
                "gradbed.hosts.agents.kernel.launcher",
                *(compute.to_arguments() if compute else ()),
                *("--nics", KERNEL_NIC),
                *preload,
            ),
            log=folder / "agents.log",
            keep_open=keep_open,
        )
        self._hosts = hosts
        self._silence_timeout_s = silence_timeout_s
        self._started: dict[tuple[int, str], AgentSpec] = {}
        """By job and name, since the last stop."""
        self._kept: deque[dict[str, Any]] = deque()
        """Events that came while another was waited for."""
        self._interfaces: dict[tuple[int, str], dict[str, dict[str, Any]]] = {}
        self._heard_s = 0.0
        """When the launcher last said anything."""

    def __enter__(self) -> Agents:
        return self

    def __exit__(self, *exception: object) -> None:
        self._launcher.stop(STOP_TIMEOUT_S)

    def start(self, specs: Sequence[AgentSpec]) -> None:
        """Start agents, and return when all of them are ready.

        Raises:
            UserError: One cannot be started.
        """
        self.launch(specs)
        missing = {(spec.job, spec.name) for spec in specs}
        while missing:
            missing.discard(self._await("ready"))

    def launch(self, specs: Sequence[AgentSpec]) -> None:
        """Start agents, which say "ready" later."""
        self._heard_s = time.monotonic()
        for spec in specs:
            self._launcher.send(
                "start",
                agent=spec.agent,
                name=spec.name,
                job=spec.job,
                host_pid=self._hosts.host_pid(spec.host),
                interfaces=self._hosts.host_interfaces(spec.host),
                rates_bps=self._rates_bps.get(spec.host, ()),
                config=spec.config,
                stop_rank=spec.stop_rank,
                classes=self._classes,
            )
            self._started[spec.job, spec.name] = spec

    def started(self, job: int, name: str) -> AgentSpec:
        """Return as what an agent was started, so that it can be started again.

        Raises:
            UserError: It never was.
        """
        try:
            return self._started[job, name]
        except KeyError:
            raise UserError(f"job {job} has had no agent {name} to be started again") from None

    def begin(self) -> None:
        """Let all agents work; those that have begun take no notice, unless they meet more than once."""
        self._launcher.send("begin")

    def kill(self, job: int, name: str) -> None:
        """End an agent at once, in the middle of whatever it does; return when it has ended. A later event says so,
        too."""
        self._launcher.send("kill", job=job, name=name)
        while self._await("killed") != (job, name):
            pass
        self._kept.append({"event": "killed", "job": job, "name": name})

    def pause(self, job: int, name: str) -> None:
        """Let an agent do nothing from now on; what comes for it waits."""
        self._launcher.send("pause", job=job, name=name)

    def resume(self, job: int, name: str) -> None:
        """Let it go on; nothing if it has ended since, or goes on already."""
        self._launcher.send("resume", job=job, name=name)

    def stop(self) -> dict[tuple[int, str], dict[str, Any]]:
        """End all agents, and return the final statistics of those that have any, by job number and agent name.

        With the key "interfaces": what an agent's interfaces carried, by their names
        (gradbed.hosts.agents.frames.counts); of an agent that was killed, since it was started anew.
        """
        final: dict[tuple[int, str], dict[str, Any]] = {}
        jobs = {job for job, _ in self._started}
        self._started.clear()
        for job in sorted(jobs):
            self._launcher.send("stop", job=job)
        while jobs:
            event = self.event()
            if event["event"] == "final":
                final[event["job"], event["name"]] = event["statistics"]
            elif event["event"] == "stopped":
                jobs.discard(event["job"])
        for agent, interfaces in self._interfaces.items():
            final.setdefault(agent, {})["interfaces"] = interfaces
        self._interfaces.clear()
        return final

    def event_within(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next event if one comes in that time, else None.

        Silence over many calls is an error as in one.
        """
        if self._kept:
            return self._kept.popleft()
        deadline_s = time.monotonic() + timeout_s
        while (says := self._launcher.has_event(deadline_s - time.monotonic())) or self._is_silent():
            if (event := self._heard(self._silence_timeout_s if says else 0.0)) is not None:
                return event
        return None

    def event(self, name: str | None = None) -> dict[str, Any]:
        """Return the next event, or the next with this name.

        Raises:
            UserError: It is an agent's error.
        """
        while True:
            if not self._kept:
                # Calls that are made meanwhile may keep events, which came before this one.
                newest = self._next_event()
                self._kept.append(newest)
            event = self._kept.popleft()
            if name is None or event["event"] == name:
                return event

    def _await(self, name: str) -> tuple[int, str]:
        """Return job and agent of the next new event with this name; others are kept."""
        while (event := self._next_event())["event"] != name:
            self._kept.append(event)
        return event["job"], event["name"]

    def _next_event(self) -> dict[str, Any]:
        """Return the next event that is not just a sign of life."""
        while (event := self._heard(self._silence_timeout_s)) is None:
            pass
        return event

    def _is_silent(self) -> bool:
        return time.monotonic() > self._heard_s + self._silence_timeout_s

    def _heard(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the launcher's next event, as `_passed_on` does."""
        event = self._launcher.event(timeout_s)
        self._heard_s = time.monotonic()
        return self._passed_on(event)

    def _passed_on(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return an event; None for a mere sign of life, and for what is kept until the stop.

        Raises:
            UserError: It is an agent's error.
        """
        if event["event"] == "error":
            raise UserError(f"{event['name']}: {event['message']}")
        if event["event"] == "interfaces":
            self._interfaces[event["job"], event["name"]] = event["interfaces"]
            return None
        return None if event["event"] == "alive" else event
