"""A star of hosts on simulated time: cards, links that lose, copy and delay frames, and a switch of the test's."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.testbeds.agents import Agents
from formats.datagram import PLAIN
from hosts.agents.virtual.clock import VirtualClock
from hosts.agents.virtual.launcher import VirtualLauncher
from hosts.protocols.datagram_frames import frame_type

Forward = Callable[[bytes], Iterable[tuple[str, bytes]]]
"""What a switch makes of a frame: hosts, and what they get."""

_HEADERS = frame_type(PLAIN)
CAPACITY_BYTES = 2048


@dataclass(eq=False)
class SimulatedCard:
    """hosts.agents.virtual.clock.Card."""

    name: str
    network: SimulatedNetwork
    sent: int = 0
    received: int = 0
    times_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    quiet: bool = False
    _told: list[bytes] = field(default_factory=list)
    _times_ns: list[int] = field(default_factory=list)

    def send(self, frames: np.ndarray, lengths: np.ndarray | None = None, times_ns: np.ndarray | None = None) -> int:
        for place, row in enumerate(frames):
            frame = row.tobytes()[: None if lengths is None else lengths[place]]
            self.network.at(self.network.now_ns if times_ns is None else int(times_ns[place]), self._leave, frame)
        return len(frames)

    def _leave(self, frame: bytes) -> None:
        self.sent += 1
        self.network.from_host(frame)

    def set_quiet(self, quiet: bool) -> None:
        self.quiet = quiet

    def receive(self) -> tuple[np.ndarray, np.ndarray]:
        told, self._told = self._told, []
        buffer = np.zeros((len(told), CAPACITY_BYTES), np.uint8)
        for row, frame in zip(buffer, told, strict=True):
            row[: len(frame)] = np.frombuffer(frame, np.uint8)
        self.times_ns, self._times_ns = np.array(self._times_ns, np.int64), []
        return buffer, np.array([len(frame) for frame in told], np.uint32)

    def arrive(self, frame: bytes) -> None:
        self.received += 1
        self._told.append(frame)
        self._times_ns.append(self.network.now_ns)


@dataclass(frozen=True)
class SimulatedStop:
    interfaces: tuple[SimulatedCard, ...] = ()
    messages: tuple[Any, ...] = ()
    idle: bool = False


class SimulatedNetwork:
    """hosts.agents.virtual.clock.Network. Each host has a card "NAME-eth0"; delay_us is that of each link."""

    def __init__(
        self,
        hosts: Iterable[str],
        forward: Forward,
        *,
        delay_us: int = 100,
        jitter_us: int = 0,
        loss: float = 0.0,
        duplicate: float = 0.0,
        seed: int = 1,
    ) -> None:
        self.now_ns = 0
        self.cards = {f"{host}-eth0": SimulatedCard(f"{host}-eth0", self) for host in hosts}
        self.trace: list[tuple[int, str, bytes]] = []
        """What has arrived, where, and when."""
        self._forward = forward
        self._delay_us, self._jitter_us, self._loss, self._duplicate = delay_us, jitter_us, loss, duplicate
        self._random = random.Random(seed)
        self._events: list[tuple[int, int, Callable[[], SimulatedCard | None]]] = []
        self._numbers = itertools.count()

    def run_until(self, time_ns: int | None) -> SimulatedStop:
        if time_ns is not None and time_ns < self.now_ns:
            raise ValueError(f"{time_ns} ns is over")
        while self._events and (time_ns is None or self._events[0][0] <= time_ns):
            self.now_ns = self._events[0][0]
            told: dict[SimulatedCard, None] = {}
            while self._events and self._events[0][0] == self.now_ns:
                card = heapq.heappop(self._events)[2]()
                if card is not None and not card.quiet:
                    told[card] = None
            if told:
                return SimulatedStop(tuple(told))
        self.now_ns = self.now_ns if time_ns is None else max(time_ns, self.now_ns)
        return SimulatedStop(idle=not self._events)

    def at(self, time_ns: int, action: Callable[[bytes], None], frame: bytes) -> None:
        """At once if the time is not to come."""
        if time_ns <= self.now_ns:
            action(frame)
        else:
            heapq.heappush(self._events, (time_ns, next(self._numbers), lambda: action(frame)))

    def from_host(self, frame: bytes) -> None:
        self._cross(lambda: self._switch(frame))

    def _switch(self, frame: bytes) -> None:
        for host, out in self._forward(frame):
            card = self.cards[f"{host}-eth0"]

            def arrive(card: SimulatedCard = card, out: bytes = out) -> SimulatedCard:
                self.trace.append((self.now_ns, card.name, out))
                card.arrive(out)
                return card

            self._cross(arrive)

    def _cross(self, action: Callable[[], SimulatedCard | None]) -> None:
        copies = (self._random.random() >= self._loss) + (self._random.random() < self._duplicate)
        for _ in range(copies):
            delay_us = self._delay_us + self._random.randrange(self._jitter_us + 1)
            heapq.heappush(self._events, (self.now_ns + 1000 * delay_us, next(self._numbers), action))


class Places:
    """experiments.testbeds.agents.Hosts of hosts with one interface each."""

    def host_pid(self, host: str) -> int:
        return 0

    def host_interfaces(self, host: str) -> tuple[str, ...]:
        return (f"{host}-eth0",)


def by_destination(hosts: dict[str, str]) -> Forward:
    """A router: frames go to the host with their destination's IP address. hosts: by IP address."""

    def forward(frame: bytes) -> Iterable[tuple[str, bytes]]:
        header = np.frombuffer(frame[: _HEADERS.itemsize], _HEADERS)[0]
        ip = ".".join(str(byte) for byte in int(header["dst_ip"]).to_bytes(4, "big"))
        return [(hosts[ip], frame)] if ip in hosts else []

    return forward


def virtual_agents(network: SimulatedNetwork, **options: Any) -> tuple[Agents, VirtualClock]:
    """Agents in the network's hosts, and their clock. options: of VirtualLauncher."""
    from pathlib import Path

    clock = VirtualClock(network)
    return Agents(Path(), Places(), launcher=VirtualLauncher(clock, network.cards, **options)), clock
