"""A tree of links with rates, queues, delays, loss and duplication, and switches that sum where links meet."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from switch.link import LinkModel
from tests.unit.hosts.simulation import JOB, Clock
from tests.unit.hosts.slot_model import Packet, SwitchModel

FRAME_BITS = 8 * (62 + 4 * 256)
SLOTS = 4096

Arrive = Callable[[Packet], None]


@dataclass
class Direction:
    """One direction of a link: a queue, then the wire."""

    clock: Clock
    model: LinkModel
    random: random.Random
    arrive: Arrive
    free_us: int = 0
    packets: int = 0
    queue_drops: int = 0

    def __post_init__(self) -> None:
        self._queue: deque[int] = deque()

    def send(self, packet: Packet) -> None:
        now_us = self.clock.now_us
        if self.random.random() < self.model.loss:
            return
        copies = 2 if self.random.random() < self.model.duplicate else 1
        for _ in range(copies):
            while self._queue and self._queue[0] <= now_us:
                self._queue.popleft()
            if len(self._queue) > self.model.queue_packets:
                self.queue_drops += 1
                continue
            wire_us = round(1e6 * FRAME_BITS / self.model.rate_bps) if self.model.rate_bps else 0
            self.free_us = max(self.free_us, now_us) + wire_us
            self._queue.append(self.free_us)
            self.packets += 1
            self.clock.at(self.free_us + self.model.delay_us - now_us, lambda: self.arrive(packet))


class QueueingNetwork:
    """The server hangs on the tree's root; workers are leaves.

    parents: of each node that is not the root, its parent's name; the workers are named w0, w1, ...
    designated: the switches that sum, each on every worker's way to the server.
    """

    at_server: Arrive
    at_worker: Callable[[int, Packet], None]

    def __init__(self, parents: Mapping[str, str], designated: tuple[str, ...], model: LinkModel, seed: int) -> None:
        self.clock = Clock()
        self._parents = dict(parents)
        self._children: dict[str, list[str]] = {}
        self._switches = {
            name: SwitchModel(number=number, slot_count=SLOTS, jobs=frozenset({JOB}))
            for number, name in enumerate(designated, 1)
        }
        self._designated_count = len(designated)
        seeds = random.Random(seed)

        def direction(arrive: Arrive) -> Direction:
            return Direction(self.clock, model, random.Random(seeds.random()), arrive)

        self._up: dict[str, Direction] = {}
        self._down: dict[str, Direction] = {}
        for child, parent in self._parents.items():
            self._children.setdefault(parent, []).append(child)
            self._up[child] = direction(lambda packet, parent=parent: self._towards_server(parent, packet))
            self._down[child] = direction(lambda packet, child=child: self._towards_workers(child, packet))
        (self._root,) = set(self._parents.values()) - set(self._parents)
        self._up[self._root] = direction(lambda packet: self.at_server(packet))
        self.from_server = direction(lambda packet: self._towards_workers(self._root, packet))
        self.to_server = self._up[self._root]

    def switch_number(self, packet_number: int) -> int:
        return packet_number % self._designated_count + 1 if self._designated_count else 0

    def send_to_server(self, packet: Packet) -> None:
        self._up[f"w{packet.worker}"].send(packet)

    def send_to_workers(self, packet: Packet) -> None:
        self.from_server.send(packet)

    def _towards_server(self, node: str, packet: Packet) -> None:
        passed_on: Packet | None = packet
        if node in self._switches:
            passed_on = self._switches[node].process(packet)
        if passed_on is not None:
            self._up[node].send(passed_on)

    def _towards_workers(self, node: str, packet: Packet) -> None:
        if node not in self._children:
            self.at_worker(int(node[1:]), packet)
            return
        if node in self._switches:
            self._switches[node].process(packet)
        for child in self._children[node]:
            if packet.worker is None or self._is_above(child, f"w{packet.worker}"):
                self._down[child].send(packet)

    def _is_above(self, node: str, other: str) -> bool:
        while node != other and other in self._parents:
            other = self._parents[other]
        return node == other


def fat_tree_of_eight() -> dict[str, str]:
    """The tree that eight workers and a server make of a k = 4 fat-tree: two, four and six links to the server."""
    parents = {"w0": "tor", "aggregation": "tor", "w1": "edge", "edge": "aggregation", "core": "aggregation"}
    for pod in range(3):
        parents[f"aggregation{pod}"] = "core"
        for side in range(2):
            parents[f"edge{pod}{side}"] = f"aggregation{pod}"
            parents[f"w{2 + 2 * pod + side}"] = f"edge{pod}{side}"
    return parents


def star(workers: int) -> dict[str, str]:
    """All workers hang on the server's switch."""
    return {f"w{worker}": "tor" for worker in range(workers)}
