"""Packets of messages through switches, event by event: formulas are held to it, and share no code.

NICs send a packet of each waiting message, by peers in turn, acknowledgements first. Switches have all of a packet
before they send it on, and a queue without end for each port. Times are integers of picoseconds.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradbed.hosts.collectives.schedule import Schedule
from gradbed.hosts.systems.training.collectives.progress import Progress, Send

Route = Callable[[int, int], Sequence[str]]
"""The nodes between two hosts; hosts themselves are left out."""


@dataclass
class Port:
    """A sender onto a link: control first, then the flows in turn."""

    control: deque[Any] = field(default_factory=deque)
    flows: deque[deque[Any]] = field(default_factory=deque)
    by_flow: dict[Any, deque[Any]] = field(default_factory=dict)
    busy: bool = False

    def put(self, packet: Any, flow: Any) -> None:
        if flow is None:
            self.control.append(packet)
            return
        queue = self.by_flow.setdefault(flow, deque())
        if not queue:
            self.flows.append(queue)
        queue.append(packet)

    def take(self) -> Any:
        if self.control:
            return self.control.popleft()
        if not self.flows:
            return None
        queue = self.flows.popleft()
        packet = queue.popleft()
        if queue:
            self.flows.append(queue)
        return packet


class PacketNetwork:
    """Carries out schedules whose elements are bytes."""

    def __init__(self, route: Route, rate_bps: int, delay_ns: int, mtu_bytes: int = 4096) -> None:
        self.route, self.byte_ps, self.delay_ps, self.mtu_bytes = (
            route,
            8 * 10**12 // rate_bps,
            delay_ns * 1000,
            mtu_bytes,
        )
        self.now = 0
        self.events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.order = 0
        self.ports: dict[tuple[Any, Any], Port] = {}

    def at(self, time: int, action: Callable[..., None], *arguments: Any) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, action, arguments))

    def run(self, schedules: Sequence[Schedule]) -> float:
        """When the last rank has its result, in nanoseconds."""
        self.ranks = [Progress(schedule) for schedule in schedules]
        ended = 0
        for rank in range(len(schedules)):
            self.begin(rank)
        while self.events:
            self.now, _, action, arguments = heapq.heappop(self.events)
            open_before = [rank.has_result for rank in self.ranks]
            action(*arguments)
            if [rank.has_result for rank in self.ranks] != open_before:
                ended = self.now
        assert all(rank.done for rank in self.ranks)
        return ended / 1000

    def begin(self, rank: int) -> None:
        for send in self.ranks[rank].ready():
            size = send.stop - send.start
            count = max(1, -(-size // self.mtu_bytes))
            for number in range(count):
                payload = min(self.mtu_bytes, size - number * self.mtu_bytes)
                payload += (4 - payload % 4) % 4
                first, last = number == 0, number == count - 1
                length = 14 + 20 + 8 + 12 + 16 * first + 4 * last + payload + 4
                acknowledged = last or number % 4 == 3
                self.offer(
                    [rank, *self.route(rank, send.peer), send.peer], 0, length, (send, rank, last, acknowledged)
                )

    def offer(self, nodes: list[Any], place: int, length: int, what: Any) -> None:
        here, there = nodes[place], nodes[place + 1]
        port = self.ports.setdefault((here, there), Port())
        flow: Any = "all"
        if place == 0:
            flow = None if what[0] is None else nodes[-1]
        port.put((nodes, place, length, what), flow)
        if not port.busy:
            port.busy = True
            # After all that happens now: a NIC takes acknowledgements first.
            self.at(self.now, self.transmit, port)

    def transmit(self, port: Port) -> None:
        packet = port.take()
        port.busy = packet is not None
        if packet is None:
            return
        nodes, place, length, what = packet
        sent = self.now + length * self.byte_ps
        self.at(sent, self.transmit, port)
        self.at(sent + self.delay_ps, self.arrive, nodes, place + 1, length, what)

    def arrive(self, nodes: list[Any], place: int, length: int, what: Any) -> None:
        if place < len(nodes) - 1:
            self.offer(nodes, place, length, what)
            return
        send, sender, last, acknowledged = what
        here = nodes[-1]
        if send is None:
            done: Send | None = sender
            if done is not None:
                self.ranks[here].sent(done.step)
                self.begin(here)
            return
        if acknowledged:
            self.offer(nodes[::-1], 0, 14 + 20 + 8 + 12 + 4 + 4, (None, send if last else None, False, False))
        if last:
            self.ranks[here].received(sender, send.turn)
            self.begin(here)
