"""A session with a network of the kernel, inside its sandbox."""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from gradbed.common.errors import UserError
from gradbed.common.namespaces import in_network_namespace
from gradbed.controller.southbound.interface import Target
from gradbed.controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound
from gradbed.experiments.custom_program import CustomProgramSystem
from gradbed.experiments.runtimes.real import RealRuntime
from gradbed.experiments.runtimes.switch_programs import pipelines_of
from gradbed.experiments.sessions.session import NetworkSession, ReceivedFrame, plan_of
from gradbed.experiments.setup import NetworkSetup, TrialTask

READY_TIMEOUT_S = 60.0
BUFFER_BYTES = 8 << 20
LONGEST_FRAME_BYTES = 65536

_ETH_P_ALL = 0x0003
_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35


class RealSession(NetworkSession):
    """A session on the real clock, made by `open_session`. The hosts' kernels see, and answer, what comes, too."""

    def __init__(
        self, runtime: RealRuntime, setup: NetworkSetup, southbound: P4RuntimeSouthbound, stack: ExitStack
    ) -> None:
        pipelines = pipelines_of(setup, runtime.by)
        super().__init__(setup.topology, runtime.backend, southbound, pipelines, plan_of(setup))
        southbound.start(self._plan)
        southbound.wait_ready(READY_TIMEOUT_S)
        self._runtime = runtime
        self._started_ns = time.time_ns()
        self._sockets = {
            host.name: [stack.enter_context(self._open(host.name, name)) for name in self._names(host.name)]
            for host in setup.topology.hosts
        }

    def _names(self, host: str) -> tuple[str, ...]:
        return self._runtime.network.host_interfaces(host)

    def _open(self, host: str, interface: str) -> socket.socket:
        def opened() -> socket.socket:
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            made.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
            made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
            made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            made.bind((interface, _ETH_P_ALL))
            made.setblocking(False)
            return made

        return in_network_namespace(self._runtime.network.host_pid(host), opened)

    def send(self, host: str, frames: Sequence[bytes]) -> None:
        for frame in frames:
            try:
                select.select([], [self._sockets[host][0]], [])
                self._sockets[host][0].send(frame)
            except OSError as error:
                raise UserError(f"{host} cannot send {len(frame)} bytes: {error.strerror}") from None

    def received(self, host: str) -> list[ReceivedFrame]:
        found: list[ReceivedFrame] = []
        for each in self._sockets[host]:
            while (frame := self._next(each)) is not None:
                found.append(frame)
        return sorted(found, key=lambda frame: frame[0])

    def _next(self, source: socket.socket) -> ReceivedFrame | None:
        try:
            frame, more, _, _ = source.recvmsg(LONGEST_FRAME_BYTES, socket.CMSG_SPACE(16))
        except BlockingIOError:
            return None
        seconds, nanoseconds = struct.unpack("qq", more[0][2][:16])
        return (seconds * 10**9 + nanoseconds - self._started_ns) // 1000, frame

    def wait_for_frame(self, host: str, timeout_us: int) -> None:
        select.select(self._sockets[host], [], [], timeout_us / 1e6)

    def wait(self, duration_us: int) -> None:
        time.sleep(duration_us / 1e6)

    def now_us(self) -> int:
        return (time.time_ns() - self._started_ns) // 1000

    def run(self, host: str, command: Sequence[str], timeout_s: float) -> tuple[int, str, str]:
        pid = self._runtime.network.host_pid(host)
        try:
            ended = subprocess.run(
                ["mnexec", "-a", str(pid), *command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UserError(f"{host}: {' '.join(command)} did not end within {timeout_s:g} s") from None
        return ended.returncode, ended.stdout, ended.stderr


@contextmanager
def open_session(system: CustomProgramSystem, task: TrialTask[Any]) -> Iterator[RealSession]:
    """Yield a session, for use in a sandbox. UserError as on the virtual clock."""
    setup = replace(system.network(task), hand_over=True)
    with ExitStack() as stack:
        runtime = stack.enter_context(RealRuntime(system, setup, task))
        thrift = runtime.backend.thrift_ports()
        targets = {
            name: Target(target["address"], target["device_id"], thrift.get(name))
            for name, target in runtime.targets().items()
        }
        southbound = P4RuntimeSouthbound(targets, pipelines_of(setup, runtime.by), keep_pipelines=True)
        stack.callback(southbound.stop)
        yield RealSession(runtime, setup, southbound, stack)
