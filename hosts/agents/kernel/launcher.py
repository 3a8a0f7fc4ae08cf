"""Forks agents from one warmed-up process into the namespaces of their hosts.

    python -m gradbed.hosts.agents.kernel.launcher [--sign-of-life SECONDS] [--compute US,DISTRIBUTION,SEED]
        [--nics MODULE:CALLABLE] [MODULE ...]

loads the modules and reads JSON lines from standard input:

    {"command": "start", "agent": "module:main", "name": "worker 0", "job": 3, "host_pid": 123,
     "interfaces": ["h2-eth0"], "rates_bps": [100000000], "config": {...}, "stop_rank": 1,
     "classes": [[[12, 65535, 2048], ...], ...]}     by which to count packets (frames/counts.py)
    {"command": "begin"}     to all agents, once those that should have reported ready
    {"command": "kill", "job": 3, "name": "worker 0"}     ends an agent at once; another of its name may be started
    {"command": "pause", "job": 3, "name": "worker 0"}    lets an agent do nothing until {"command": "resume", ...}
    {"command": "stop"}      to all agents: of each job those of the lowest rank first, the next once these have ended

An agent is a function of a gradbed.hosts.agents.context.AgentContext and a config, whose type is taken from its
annotation. A function `prepare` of the same module, if there is one, is given the config before the fork, so
that agents share what it loads. Several jobs may run at once; with "job": 7, begin and stop are for its agents alone.
rates_bps: of the interfaces' links, null where there is none. --nics: what makes NICs for queue pairs
(gradbed.hosts.agents.kernel.nic.OpenNic).

The events of all agents come out as JSON lines with "job" and "name": by convention ready, done (an agent's work is
complete), final (after stop: the statistics at the very end), and whatever an agent has to say; interfaces (when an
agent has ended well: what those it opened carried, frames/counts.py); error; the launcher's own: killed,
stopped (all agents of a job have ended after a stop, so that more may be started; without any agent to stop there is
no job in it, unless the command had one), and alive, every few seconds while there are agents. The end of standard
input ends the launcher with status 0; agents never outlive it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.modules import attribute
from gradbed.common.signals import die_with_parent
from gradbed.hosts.agents.frames.counts import Patterns, frames_library
from gradbed.hosts.agents.kernel.context import RealContext
from gradbed.hosts.agents.kernel.namespace import enter_network_namespace, forbid_unreachable
from gradbed.hosts.agents.kernel.nic import QueuePairNic
from gradbed.hosts.agents.launching import BEGIN, STOP, ComputeTimes, one_line, prepare_agent, write_event

STOP_TIMEOUT_S = 5.0
SIGN_OF_LIFE_S = 5.0
_REPORTED_ERROR = 2
_STDIN, _STDOUT = 0, 1


class _CommandModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Start(_CommandModel):
    command: Literal["start"]
    agent: str
    name: str
    job: int
    host_pid: int = Field(ge=1)
    interfaces: tuple[str, ...]
    rates_bps: tuple[int | None, ...] = ()
    config: dict[str, Any]
    stop_rank: int = 0
    classes: tuple[tuple[tuple[int, int, int], ...], ...] = ()


class _Begin(_CommandModel):
    command: Literal["begin"]
    job: int | None = None


class _Kill(_CommandModel):
    command: Literal["kill"]
    job: int
    name: str


class _Stop(_CommandModel):
    command: Literal["stop"]
    job: int | None = None


class _Pause(_CommandModel):
    command: Literal["pause", "resume"]
    job: int
    name: str


_Command = Annotated[_Start | _Begin | _Kill | _Pause | _Stop, Field(discriminator="command")]
_commands: TypeAdapter[_Start | _Begin | _Kill | _Pause | _Stop] = TypeAdapter(_Command)


@dataclass
class _AgentProcess:
    """A forked agent."""

    job: int
    name: str
    stop_rank: int
    host_pid: int
    pid: int
    pidfd: int
    control: int
    asked_to_stop: bool = False
    killed: bool = False


class Launcher:
    """The parent of all agents: passes commands on and notices their ends."""

    def __init__(self, sign_of_life_s: float, compute_us: ComputeTimes, nics: str | None) -> None:
        """sign_of_life_s: how often there is an event alive. compute_us: of an agent's computations. nics:
        "module:callable" of an OpenNic, which is loaded when an agent asks for one."""
        self._nics = nics
        self._compute_us = compute_us
        self._sign_of_life_interval_s = sign_of_life_s
        self._selector = selectors.DefaultSelector()
        self._agents: dict[int, _AgentProcess] = {}  # by pidfd
        self._stop_deadline_s: dict[int, float] = {}  # by job that was told to stop
        self._sign_of_life_s = 0.0

    def run(self) -> None:
        """Serve until the end of standard input."""
        self._selector.register(_STDIN, selectors.EVENT_READ)
        pending = b""
        while True:
            for key, _ in self._selector.select(self._timeout_s()):
                if key.fd == _STDIN:
                    data = os.read(_STDIN, 1 << 16)
                    if not data:
                        return
                    *lines, pending = (pending + data).split(b"\n")
                    for line in lines:
                        self._command(line)
                else:
                    self._reap(self._agents[key.fd])
            for job in list(self._stop_deadline_s):
                self._go_on_stopping(job)
            self._give_sign_of_life()

    def _timeout_s(self) -> float | None:
        deadlines_s = [*self._stop_deadline_s.values(), *([self._sign_of_life_s] if self._agents else [])]
        return max(0.0, min(deadlines_s) - time.monotonic()) if deadlines_s else None

    def _give_sign_of_life(self) -> None:
        if self._agents and time.monotonic() >= self._sign_of_life_s:
            write_event(_STDOUT, "alive", name="launcher", agents=len(self._agents))
            self._sign_of_life_s = time.monotonic() + self._sign_of_life_interval_s

    def _command(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            command = _commands.validate_json(line)
            if isinstance(command, _Start):
                self._start(command)
            elif isinstance(command, _Begin):
                for agent in self._agents.values():
                    if command.job in (None, agent.job):
                        _tell(agent, BEGIN)
            elif isinstance(command, _Kill):
                self._kill(command)
            elif isinstance(command, _Pause):
                self._pause(command)
            else:
                self._stop(command.job)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "line"
            write_event(_STDOUT, "error", name="launcher", message=f"bad command, {where}: {first['msg']}")
        except UserError as error:
            write_event(_STDOUT, "error", name="launcher", message=str(error))

    def _of(self, job: int) -> list[_AgentProcess]:
        return [agent for agent in self._agents.values() if agent.job == job]

    def _stop(self, job: int | None) -> None:
        jobs = sorted({agent.job for agent in self._agents.values() if job in (None, agent.job)})
        for each in jobs:
            self._stop_deadline_s.setdefault(each, time.monotonic() + STOP_TIMEOUT_S)
        if not jobs:
            write_event(_STDOUT, "stopped", name="launcher", **({} if job is None else {"job": job}))

    def _go_on_stopping(self, job: int) -> None:
        agents = self._of(job)
        if not agents:
            del self._stop_deadline_s[job]
            write_event(_STDOUT, "stopped", job=job, name="launcher")
            return
        rank = min(agent.stop_rank for agent in agents)
        for agent in agents:
            if agent.stop_rank == rank and not agent.asked_to_stop:
                agent.asked_to_stop = True
                os.kill(agent.pid, signal.SIGCONT)  # it may be paused
                _tell(agent, STOP)
        if time.monotonic() >= self._stop_deadline_s[job]:
            for agent in agents:
                os.kill(agent.pid, signal.SIGKILL)
            self._stop_deadline_s[job] = time.monotonic() + STOP_TIMEOUT_S

    def _kill(self, kill: _Kill) -> None:
        agent = self._find(kill.job, kill.name)
        if agent is None:
            raise UserError(f"there is no agent {kill.name} of job {kill.job} to be killed")
        agent.killed = True
        forbid_unreachable(agent.host_pid)
        os.kill(agent.pid, signal.SIGKILL)

    def _pause(self, command: _Pause) -> None:
        agent = self._find(command.job, command.name)
        if agent is not None:
            os.kill(agent.pid, signal.SIGSTOP if command.command == "pause" else signal.SIGCONT)
        elif command.command == "pause":
            raise UserError(f"there is no agent {command.name} of job {command.job} to be paused")

    def _find(self, job: int, name: str) -> _AgentProcess | None:
        return next((agent for agent in self._of(job) if agent.name == name), None)

    def _start(self, start: _Start) -> None:
        if start.job in self._stop_deadline_s:
            raise UserError(
                f"{start.name} of job {start.job} must not start before the agents before it have stopped"
            )
        if self._find(start.job, start.name) is not None:
            raise UserError(f"job {start.job} has an agent {start.name} already")
        main, config = prepare_agent(start.agent, start.config)
        frames_library()  # agents share it
        if not self._agents:
            self._sign_of_life_s = time.monotonic() + self._sign_of_life_interval_s
        control_read, control_write = os.pipe()
        parent_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            # Never back into the launcher's code, whatever happens.
            status = 1
            try:
                die_with_parent(parent_pid)
                os.close(control_write)
                for other in self._agents.values():
                    os.close(other.control)
                status = self._run_agent(start, main, config, control_read)
            finally:
                os._exit(status)
        os.close(control_read)
        pidfd = os.pidfd_open(pid)
        agent = _AgentProcess(start.job, start.name, start.stop_rank, start.host_pid, pid, pidfd, control_write)
        self._agents[agent.pidfd] = agent
        self._selector.register(agent.pidfd, selectors.EVENT_READ)

    def _reap(self, agent: _AgentProcess) -> None:
        _, wait_status = os.waitpid(agent.pid, 0)
        status = os.waitstatus_to_exitcode(wait_status)
        self._selector.unregister(agent.pidfd)
        os.close(agent.pidfd)
        os.close(agent.control)
        del self._agents[agent.pidfd]
        if agent.killed:
            write_event(_STDOUT, "killed", job=agent.job, name=agent.name)
        elif status not in (0, _REPORTED_ERROR):
            reason = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            write_event(_STDOUT, "error", job=agent.job, name=agent.name, message=f"ended unexpectedly ({reason})")

    def _run_agent(self, start: _Start, main: Any, config: BaseModel, control: int) -> int:
        """The life of a forked agent; returns its exit status."""

        def compute_us() -> int:
            return self._compute_us(start.job, start.name)

        # An agent may print to descriptor 1.
        context = RealContext(
            start.job,
            start.name,
            start.interfaces,
            control,
            os.dup(_STDOUT),
            compute_us,
            start.classes,
            start.rates_bps,
            None if self._nics is None else partial(_open_nic, self._nics),
        )
        try:
            enter_network_namespace(start.host_pid)
            main(context, config)
            context.emit_interfaces()
        except UserError as error:
            context.emit("error", message=str(error))
            return _REPORTED_ERROR
        except BrokenPipeError:  # nobody listens any more
            return _REPORTED_ERROR
        except Exception as error:
            context.emit("error", message=one_line(error))
            return _REPORTED_ERROR
        return 0


def _tell(agent: _AgentProcess, command: bytes) -> None:
    # An agent that has just ended is reaped through its pidfd.
    with contextlib.suppress(BrokenPipeError):
        os.write(agent.control, command)


def _open_nic(place: str, interface: str, rate_bps: int | None, classes: Patterns) -> QueuePairNic:
    nic: QueuePairNic = attribute(place)(interface, rate_bps, classes)
    return nic


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sign-of-life", type=float, default=SIGN_OF_LIFE_S, metavar="SECONDS")
    parser.add_argument(
        "--compute", type=ComputeTimes.of_argument, default=ComputeTimes(), metavar="US,DISTRIBUTION,SEED"
    )
    parser.add_argument("--nics", metavar="MODULE:CALLABLE")
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args(arguments)
    # The default actions end the process at once; its agents go with it (die_with_parent).
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    for module in options.modules:
        importlib.import_module(module)
    try:
        Launcher(options.sign_of_life, options.compute, options.nics).run()
    except BrokenPipeError:  # nobody reads the events
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
