"""A session on the virtual clock: time advances only during calls that let it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gradbed.common.errors import UserError
from gradbed.emulation.layout import interface_name
from gradbed.experiments.custom_program import CustomProgramSystem
from gradbed.experiments.runtimes.virtual import VirtualRuntime
from gradbed.experiments.sessions.session import NetworkSession, ReceivedFrame, plan_of, task_of
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.switch.virtual import HostInterface
from gradbed.topo.graph import Topology


class VirtualSession(NetworkSession):
    """A session on the virtual clock, made by `open_session`."""

    def __init__(self, runtime: VirtualRuntime, setup: NetworkSetup) -> None:
        super().__init__(setup.topology, runtime.backend, runtime.southbound, runtime.pipelines, plan_of(setup))
        self._clock = runtime.clock
        self._interfaces = _by_host(setup.topology, runtime.interfaces)
        self._received: dict[str, list[ReceivedFrame]] = {host: [] for host in self._interfaces}
        for host, interfaces in self._interfaces.items():
            for interface in interfaces:
                self._clock.listen(interface, partial(self._take, host, interface))

    def _take(self, host: str, interface: HostInterface) -> None:
        frames, lengths = interface.receive()
        self._received[host] += [
            (int(time_ns) // 1000, frame[:length].tobytes())
            for time_ns, frame, length in zip(interface.times_ns, frames, lengths, strict=True)
        ]

    def send(self, host: str, frames: Sequence[bytes]) -> None:
        interface = self._interfaces[host][0]
        for frame in frames:
            interface.send(np.frombuffer(frame, np.uint8)[None, :])

    def received(self, host: str) -> list[ReceivedFrame]:
        found, self._received[host] = self._received[host], []
        return found

    def wait_for_frame(self, host: str, timeout_us: int) -> None:
        end_ns = self._clock.now_ns + 1000 * timeout_us
        end = self._clock.at(end_ns, lambda: None)
        while not self._received[host] and self._clock.now_ns < end_ns:
            self._clock.step()
        end.cancel()

    def wait(self, duration_us: int) -> None:
        end_ns = self._clock.now_ns + 1000 * duration_us
        self._clock.at(end_ns, lambda: None)
        while self._clock.now_ns < end_ns:
            self._clock.step()

    def now_us(self) -> int:
        return self._clock.now_ns // 1000

    def run(self, host: str, command: Sequence[str], timeout_s: float) -> tuple[int, str, str]:
        raise UserError("hosts on the virtual clock run no programs: take a network on the real clock")


def _by_host(topology: Topology, interfaces: Mapping[str, HostInterface]) -> dict[str, list[HostInterface]]:
    """Return the interfaces of each host, in the order of their ports."""
    found: dict[str, list[HostInterface]] = {host.name: [] for host in topology.hosts}
    ends = [end for link in topology.host_links for end in (link.a, link.b) if end.node in found]
    for end in sorted(ends, key=lambda end: end.port):
        found[end.node].append(interfaces[interface_name(end)])
    return found


@contextmanager
def open_session_of(order: Mapping[str, Any], folder: Path) -> Iterator[VirtualSession]:
    """Yield a session, as gradbed.experiments.sessions.remote.open_session does."""
    with open_session(*task_of(order, folder)) as session:
        yield session


@contextmanager
def open_session(system: CustomProgramSystem, task: TrialTask[Any]) -> Iterator[VirtualSession]:
    """Yield a session. UserError, as a rule with FILE:LINE:COLUMN, for what is wrong with program and entries."""
    setup = system.network(task)
    with VirtualRuntime(system, setup, task) as runtime:
        yield VirtualSession(runtime, setup)
