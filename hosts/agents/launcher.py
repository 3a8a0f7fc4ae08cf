"""Forks agents from one warmed-up process into the namespaces of their hosts.

    python -m hosts.agents.launcher

reads JSON lines from standard input:

    {"command": "start", "role": "worker", "index": 0, "host_pid": 123, "interface": "h2-eth0", "job": {...}}
    {"command": "start", "role": "server", "host_pid": 130, "interface": "h1-eth0", "job": {...}}
    {"command": "begin"}     to the workers that wait, once all agents have reported ready
    {"command": "stop"}      to all agents, the server first, so that workers count its last answers; when they
                             have ended, more may be started

and writes the events of all agents as JSON lines: ready, round, done (an agent's rounds are complete), final
(after stop: the statistics at the very end), error, and stopped (all agents have ended after a stop). The end
of standard input ends it with status 0; agents never outlive it.
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
from hosts.agents.namespace import die_with_parent, enter_network_namespace
from hosts.agents.server import Server
from hosts.agents.worker import Worker
from hosts.job import JobDescription
from hosts.learning.dataset import SHAPES, load
from hosts.transport.raw_socket import RawSocket
from switch.errors import UserError

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

    @property
    def name(self) -> str:
        return "server" if self.role == "server" else f"worker {self.index}"


class _Begin(BaseModel):
    command: Literal["begin"]


class _Stop(BaseModel):
    command: Literal["stop"]


_Command = Annotated[_Start | _Begin | _Stop, Field(discriminator="command")]
_commands: TypeAdapter[_Start | _Begin | _Stop] = TypeAdapter(_Command)


@dataclass
class _Agent:
    """A forked agent."""

    name: str
    role: Literal["worker", "server"]
    pid: int
    pidfd: int
    control: int


class Launcher:
    """The parent of all agents: passes commands on and notices their ends."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._agents: dict[int, _Agent] = {}  # by pidfd
        self._stop_deadline_s: float | None = None
        self._workers_told_to_stop = False

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
            self._finish_stop()

    def _patience_s(self) -> float | None:
        return None if self._stop_deadline_s is None else max(0.0, self._stop_deadline_s - time.monotonic())

    def _command(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            command = _commands.validate_json(line)
            if isinstance(command, _Start):
                self._start(command)
            elif isinstance(command, _Begin):
                self._tell("worker", BEGIN)
            elif self._stop_deadline_s is None:
                self._tell("server", STOP)
                self._workers_told_to_stop = False
                self._stop_deadline_s = time.monotonic() + STOP_PATIENCE_S
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "line"
            write_event(_STDOUT, "error", name="launcher", message=f"bad command, {where}: {first['msg']}")
        except UserError as error:
            write_event(_STDOUT, "error", name="launcher", message=str(error))

    def _tell(self, role: Literal["worker", "server"], command: bytes) -> None:
        for agent in self._agents.values():
            if agent.role == role:
                # An agent that has just ended is reaped through its pidfd.
                with contextlib.suppress(BrokenPipeError):
                    os.write(agent.control, command)

    def _start(self, start: _Start) -> None:
        if self._stop_deadline_s is not None:
            raise UserError(f"{start.name} must not start before the agents of the job before have stopped")
        job = JobDescription.parse(start.job)
        if start.role == "worker" and (start.index is None or not 0 <= start.index < len(job.workers)):
            raise UserError(f"the job has workers 0 to {len(job.workers) - 1}, not {start.index}")
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
        agent = _Agent(start.name, start.role, pid, os.pidfd_open(pid), control_write)
        self._agents[agent.pidfd] = agent
        self._selector.register(agent.pidfd, selectors.EVENT_READ)

    def _reap(self, agent: _Agent) -> None:
        _, wait_status = os.waitpid(agent.pid, 0)
        status = os.waitstatus_to_exitcode(wait_status)
        if status not in (0, _REPORTED_ERROR):
            reason = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            write_event(_STDOUT, "error", name=agent.name, message=f"ended unexpectedly ({reason})")
        self._selector.unregister(agent.pidfd)
        os.close(agent.pidfd)
        os.close(agent.control)
        del self._agents[agent.pidfd]

    def _finish_stop(self) -> None:
        if self._stop_deadline_s is None:
            return
        if not self._workers_told_to_stop and all(agent.role == "worker" for agent in self._agents.values()):
            self._tell("worker", STOP)
            self._workers_told_to_stop = True
        if time.monotonic() >= self._stop_deadline_s:
            for agent in self._agents.values():
                os.kill(agent.pid, signal.SIGKILL)
            self._stop_deadline_s = time.monotonic() + STOP_PATIENCE_S
        if not self._agents:
            self._stop_deadline_s = None
            write_event(_STDOUT, "stopped", name="launcher")


def _run_agent(start: _Start, job: JobDescription, control: int) -> int:
    """The life of a forked agent; returns its exit status."""
    channel = Channel(start.name, control, _STDOUT)
    try:
        enter_network_namespace(start.host_pid)
        with RawSocket(start.interface) as raw_socket:
            agent: Worker | Server
            if start.role == "worker":
                assert start.index is not None
                agent = Worker(job, start.index, raw_socket, channel)
            else:
                agent = Server(job, raw_socket, channel)
            agent.run()
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
