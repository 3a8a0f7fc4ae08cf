"""The launcher of agents on simulated time: commands and events of gradbed.hosts.agents.kernel.launcher, in one
process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel

from gradbed.common.errors import UserError
from gradbed.hosts.agents.frames.counts import Patterns
from gradbed.hosts.agents.launching import BEGIN, STOP, one_line, prepare_agent
from gradbed.hosts.agents.nic import Nic
from gradbed.hosts.agents.virtual.clock import Timer, VirtualClock
from gradbed.hosts.agents.virtual.context import VirtualContext, VirtualPort

STOP_TIMEOUT_S = 5
SILENCE_S = 3600
"""Of simulated time."""

"""How long an agent's next computation takes, by job and name."""


@dataclass
class _SimulatedAgent:
    """An agent that has not ended."""

    context: VirtualContext
    stop_rank: int
    asked_to_stop: bool = False


class VirtualLauncher:
    """Starts agents as greenlets. `send` and `event` are those of gradbed.common.json_lines.JsonLinesProcess."""

    def __init__(
        self,
        clock: VirtualClock,
        nics: Mapping[str, Nic],
        compute_us: Callable[[int, str], int] = lambda job, name: 0,
    ) -> None:
        """nics: by the names of interfaces."""
        self._clock = clock
        self._ports = {name: VirtualPort(clock, nic) for name, nic in nics.items()}
        self._compute_us = compute_us
        self._agents: dict[tuple[int, str], _SimulatedAgent] = {}
        self._stopping: dict[int, Timer] = {}
        """By job that was told to stop: when patience ends."""
        self._events: deque[dict[str, Any]] = deque()

    def send(self, command: str, **fields: Any) -> None:
        """A command, at the present time; a start's host_pid is of no use."""
        commands: dict[str, Callable[..., None]] = {
            "start": self._start,
            "begin": self._begin,
            "kill": self._kill,
            "pause": self._pause,
            "resume": self._resume,
            "stop": self._stop,
        }
        try:
            commands[command](**fields)
        except UserError as error:
            self._say("error", name="launcher", message=str(error))

    def event(self, timeout_s: float = SILENCE_S) -> dict[str, Any]:
        """The next event; time goes on until there is one.

        UserError with one line if there cannot be any more, or for an hour of simulated time there is none.
        timeout_s, of real time, is of no use.
        """
        end_ns = self._clock.now_ns + SILENCE_S * 10**9
        while not self._events:
            if not self._clock.step():
                raise UserError(f"nothing can happen any more: {self._who_waits()}")
            if self._clock.now_ns > end_ns:
                raise UserError(f"no agent has said anything for {SILENCE_S} s: {self._who_waits()}")
        return self._events.popleft()

    def has_event(self, timeout_s: float) -> bool:
        """Time goes on until there is one."""
        return True

    def stop(self, timeout_s: float = 0.0) -> None:
        """End all agents at once."""
        for agent in list(self._agents.values()):
            agent.context.kill()

    def _who_waits(self) -> str:
        waiting = [f"{agent.context.name} waits for {agent.context.activity}" for agent in self._agents.values()]
        shown = waiting[:3] + ([f"{len(waiting) - 3} more"] if len(waiting) > 3 else [])
        return f"at {self._clock.now_ns / 1e9:.6f} s, " + (", ".join(shown) or "without any agent")

    def _say(self, event: str, **fields: Any) -> None:
        self._events.append({"event": event, **fields})

    def _start(
        self,
        *,
        agent: str,
        name: str,
        job: int,
        interfaces: tuple[str, ...],
        config: BaseModel | Mapping[str, Any],
        stop_rank: int = 0,
        host_pid: int = 0,
        rates_bps: tuple[int | None, ...] = (),
        classes: Patterns = (),
    ) -> None:
        if job in self._stopping:
            raise UserError(f"{name} of job {job} must not start before the agents before it have stopped")
        if (job, name) in self._agents:
            raise UserError(f"job {job} has an agent {name} already")
        unknown = [interface for interface in interfaces if interface not in self._ports]
        if unknown:
            raise UserError(f"there is no interface {unknown[0]}")
        main, checked = prepare_agent(agent, config)
        context = VirtualContext(
            self._clock,
            job,
            name,
            {interface: self._ports[interface] for interface in interfaces},
            self._events.append,
            lambda: self._compute_us(job, name),
            classes,
        )
        self._agents[job, name] = _SimulatedAgent(context, stop_rank)
        self._clock.at(self._clock.now_ns, partial(context.start, partial(self._live, context, main, checked)))

    def _live(self, context: VirtualContext, main: Callable[..., Any], config: BaseModel) -> None:
        """The life of an agent, in its greenlet."""
        try:
            main(context, config)
            context.emit_interfaces()
        except UserError as error:
            context.emit("error", message=str(error))
        except Exception as error:
            context.emit("error", message=one_line(error))
        finally:
            del self._agents[context.job, context.name]
            if context.job in self._stopping:
                self._clock.at(self._clock.now_ns, lambda: self._go_on_stopping(context.job))

    def _begin(self, *, job: int | None = None) -> None:
        for agent in list(self._agents.values()):
            if job in (None, agent.context.job):
                self._tell(agent, BEGIN)

    def _tell(self, agent: _SimulatedAgent, command: bytes) -> None:
        self._clock.at(self._clock.now_ns, lambda: agent.context.tell(command))

    def _kill(self, *, job: int, name: str) -> None:
        agent = self._agents.get((job, name))
        if agent is None:
            raise UserError(f"there is no agent {name} of job {job} to be killed")
        self._end(agent)
        self._say("killed", job=job, name=name)

    def _pause(self, *, job: int, name: str) -> None:
        agent = self._agents.get((job, name))
        if agent is None:
            raise UserError(f"there is no agent {name} of job {job} to be paused")
        agent.context.pause()

    def _resume(self, *, job: int, name: str) -> None:
        if agent := self._agents.get((job, name)):
            agent.context.resume()

    def _end(self, agent: _SimulatedAgent) -> None:
        agent.context.kill()
        # One that never came to live.
        self._agents.pop((agent.context.job, agent.context.name), None)

    def _stop(self, *, job: int | None = None) -> None:
        jobs = sorted({number for number, _ in self._agents if job in (None, number)})
        for each in jobs:
            if each not in self._stopping:
                deadline_ns = self._clock.now_ns + STOP_TIMEOUT_S * 10**9
                for agent in self._of(each):
                    agent.context.resume()
                self._stopping[each] = self._clock.at(deadline_ns, partial(self._stop_timed_out, each))
                self._go_on_stopping(each)
        if not jobs:
            self._say("stopped", name="launcher", **({} if job is None else {"job": job}))

    def _of(self, job: int) -> list[_SimulatedAgent]:
        return [agent for (number, _), agent in self._agents.items() if number == job]

    def _go_on_stopping(self, job: int) -> None:
        agents = self._of(job)
        if not agents and job in self._stopping:
            self._stopping.pop(job).cancel()
            self._say("stopped", job=job, name="launcher")
        for agent in agents:
            if agent.stop_rank == min(other.stop_rank for other in agents) and not agent.asked_to_stop:
                agent.asked_to_stop = True
                self._tell(agent, STOP)

    def _stop_timed_out(self, job: int) -> None:
        for agent in self._of(job):
            self._say("error", job=job, name=agent.context.name, message="does not end when it is stopped")
            self._end(agent)
        self._go_on_stopping(job)
