"""Forks agents from one warmed-up process into the namespaces of their hosts.

    python -m hosts.agents.launcher

reads JSON lines from standard input:

    {"command": "start", "role": "worker", "index": 0, "host_pid": 123, "interface": "h2-eth0", "job": {...}}
    {"command": "start", "role": "server", "host_pid": 130, "interface": "h1-eth0", "job": {...}}
    {"command": "start", "role": "worker", ..., "script": {"path": "/x/train.py", "output": "/x/log"}}
    {"command": "begin"}     to the workers that wait, once all agents have reported ready
    {"command": "stop"}      to all agents, a job's server first, so that workers count its last ACKs

Several jobs may run at once, on different hosts; with "job": 7, begin and stop are for the agents of job 7 alone.
The events of all agents come out as JSON lines with "job" and "name": ready, round, done (an agent's rounds are
complete), final (after stop: the statistics at the very end), error, and stopped (all agents of a job have ended
after a stop, so that more may be started; without any agent to stop there is no job in it). The end of standard
input ends the launcher with status 0; agents never outlive it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hosts.agents.channel import BEGIN, STOP, Channel, write_event
from hosts.agents.host_names import name_hosts
from hosts.agents.namespace import enter_network_namespace
from hosts.collectives.worker import Worker
from hosts.learning.dataset import SHAPES, load
from hosts.systems.aggregation.description import JobDescription
from hosts.systems.aggregation.exchanges import open_exchange
from hosts.systems.aggregation.server import Server
from hosts.torch_hook.script import Script, run_script
from hosts.torch_hook.torch_extra import load_torch
from hosts.transport.raw_socket import RawSocket
from switch.errors import UserError
from switch.parent_death import die_with_parent

STOP_PATIENCE_S = 5.0
_REPORTED_ERROR = 2
_STDIN, _STDOUT = 0, 1


class _Start(BaseModel):
    model_config = ConfigDict(extra="forbid")
    command: Literal["start"]
    role: Literal["worker", "server"]
    index: int | None = None
    host_pid: int = Field(ge=1)
    interface: str
    job: dict[str, Any]
    script: Script | None = None
    """For a worker whose gradients are a script's."""

    @property
    def name(self) -> str:
        return "server" if self.role == "server" else f"worker {self.index}"


class _Begin(BaseModel):
    command: Literal["begin"]
    job: int | None = None


class _Stop(BaseModel):
    command: Literal["stop"]
    job: int | None = None


_Command = Annotated[_Start | _Begin | _Stop, Field(discriminator="command")]
_commands: TypeAdapter[_Start | _Begin | _Stop] = TypeAdapter(_Command)


@dataclass
class _Agent:
    """A forked agent."""

    job: int
    name: str
    role: Literal["worker", "server"]
    pid: int
    pidfd: int
    control: int


@dataclass
class _Stopping:
    """A job that was told to stop."""

    deadline_s: float
    workers_told: bool = False


class Launcher:
    """The parent of all agents: passes commands on and notices their ends."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._agents: dict[int, _Agent] = {}  # by pidfd
        self._stopping: dict[int, _Stopping] = {}  # by job

    def run(self) -> None:
        """Until the end of standard input."""
        self._selector.register(_STDIN, selectors.EVENT_READ)
        pending = b""
        while True:
            for key, _ in self._selector.select(self._patience_s()):
                if key.fd == _STDIN:
                    data = os.read(_STDIN, 1 << 16)
                    if not data:
                        return
                    *lines, pending = (pending + data).split(b"\n")
                    for line in lines:
                        self._command(line)
                else:
                    self._reap(self._agents[key.fd])
            for job in list(self._stopping):
                self._finish_stop(job)

    def _patience_s(self) -> float | None:
        deadlines_s = [stopping.deadline_s for stopping in self._stopping.values()]
        return max(0.0, min(deadlines_s) - time.monotonic()) if deadlines_s else None

    def _command(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            command = _commands.validate_json(line)
            if isinstance(command, _Start):
                self._start(command)
            elif isinstance(command, _Begin):
                for job in self._jobs(command.job):
                    self._tell(job, "worker", BEGIN)
            else:
                self._stop(command.job)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "line"
            write_event(_STDOUT, "error", name="launcher", message=f"bad command, {where}: {first['msg']}")
        except UserError as error:
            write_event(_STDOUT, "error", name="launcher", message=str(error))

    def _jobs(self, job: int | None) -> list[int]:
        """The jobs with agents that a command is for."""
        return sorted({agent.job for agent in self._agents.values() if job in (None, agent.job)})

    def _of(self, job: int) -> list[_Agent]:
        return [agent for agent in self._agents.values() if agent.job == job]

    def _tell(self, job: int, role: Literal["worker", "server"], command: bytes) -> None:
        for agent in self._of(job):
            if agent.role == role:
                # An agent that has just ended is reaped through its pidfd.
                with contextlib.suppress(BrokenPipeError):
                    os.write(agent.control, command)

    def _stop(self, job: int | None) -> None:
        jobs = self._jobs(job)
        for each in jobs:
            if each not in self._stopping:
                self._tell(each, "server", STOP)
                self._stopping[each] = _Stopping(time.monotonic() + STOP_PATIENCE_S)
        if not jobs:
            write_event(_STDOUT, "stopped", name="launcher")

    def _start(self, start: _Start) -> None:
        job = JobDescription.parse(start.job)
        if job.job in self._stopping:
            raise UserError(f"{start.name} of job {job.job} must not start before the agents before it have stopped")
        if start.role == "worker" and (start.index is None or not 0 <= start.index < len(job.workers)):
            raise UserError(f"the job has workers 0 to {len(job.workers) - 1}, not {start.index}")
        if (start.script is not None) != (start.role == "worker" and job.workload.kind == "external"):
            raise UserError("a script is for the workers of a job with an external workload, and they need one")
        if start.role == "server" and job.exchange != "server":
            raise UserError(f"job {job.job} has no server: its workers sum ({job.exchange})")
        if _needs_torch(start, job):
            load_torch("a worker with a script" if start.script else "all-reduce by Gloo")
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
                status = _run_agent(start, job, control_read)
            finally:
                os._exit(status)
        os.close(control_read)
        agent = _Agent(job.job, start.name, start.role, pid, os.pidfd_open(pid), control_write)
        self._agents[agent.pidfd] = agent
        self._selector.register(agent.pidfd, selectors.EVENT_READ)

    def _reap(self, agent: _Agent) -> None:
        _, wait_status = os.waitpid(agent.pid, 0)
        status = os.waitstatus_to_exitcode(wait_status)
        if status not in (0, _REPORTED_ERROR):
            reason = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            write_event(_STDOUT, "error", job=agent.job, name=agent.name, message=f"ended unexpectedly ({reason})")
        self._selector.unregister(agent.pidfd)
        os.close(agent.pidfd)
        os.close(agent.control)
        del self._agents[agent.pidfd]

    def _finish_stop(self, job: int) -> None:
        stopping, agents = self._stopping[job], self._of(job)
        if not stopping.workers_told and all(agent.role == "worker" for agent in agents):
            self._tell(job, "worker", STOP)
            stopping.workers_told = True
        if time.monotonic() >= stopping.deadline_s:
            for agent in agents:
                os.kill(agent.pid, signal.SIGKILL)
            stopping.deadline_s = time.monotonic() + STOP_PATIENCE_S
        if not agents:
            del self._stopping[job]
            write_event(_STDOUT, "stopped", job=job, name="launcher")


def _needs_torch(start: _Start, job: JobDescription) -> bool:
    return start.role == "worker" and (start.script is not None or job.exchange == "gloo")


def _run_agent(start: _Start, job: JobDescription, control: int) -> int:
    """The life of a forked agent; returns its exit status."""
    # A script prints to descriptor 1.
    channel = Channel(job.job, start.name, control, os.dup(_STDOUT))
    try:
        enter_network_namespace(start.host_pid)
        if _needs_torch(start, job):
            name_hosts(job)
        if start.script is not None:
            assert start.index is not None
            run_script(start.script, job, start.index, start.interface, channel)
        elif start.role == "worker":
            assert start.index is not None
            with open_exchange(job, start.index, start.interface, channel) as exchange:
                Worker(job, start.index, exchange, channel).run()
        else:
            with RawSocket(start.interface) as raw_socket:
                Server(job, raw_socket, channel).run()
    except UserError as error:
        channel.emit("error", message=str(error))
        return _REPORTED_ERROR
    except BrokenPipeError:  # nobody listens any more
        return _REPORTED_ERROR
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"
        channel.emit("error", message=" ".join(message.split()))
        return _REPORTED_ERROR
    return 0


def main() -> int:
    # The default actions end the process at once; its agents go with it (die_with_parent).
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    for name in SHAPES:
        load(name)  # once, before the forks
    try:
        Launcher().run()
    except BrokenPipeError:  # nobody reads the events
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
