"""A tree of links with rates, queues, delays, loss and duplication, and switches that sum where links meet."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gradbed.formats.lanes import frame_bytes
from gradbed.topo.link import LinkModel
from tests.unit.hosts.aggregation.simulation import JOB, Clock
from tests.unit.hosts.aggregation.slot_model import Label, Packet, SwitchModel

LANES = 256
SLOTS = 4096

Arrive = Callable[[Packet], None]


@dataclass
class Direction:
    """One direction of a link: a queue, then the wire. mark_from: packets in the queue from which on it marks
    (switches do; hosts do not)."""

    clock: Clock
    model: LinkModel
    mark_from: int | None
    random: random.Random
    arrive: Arrive
    free_us: int = 0
    packets: int = 0
    queue_drops: int = 0
    longest_queue: int = 0

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
            self.longest_queue = max(self.longest_queue, len(self._queue))
            if self.mark_from is not None and len(self._queue) >= self.mark_from:
                packet = replace(packet, congested=True)
            frame_bits = 8 * frame_bytes(LANES if packet.lanes else 0)
            wire_us = round(1e6 * frame_bits / self.model.rate_bps) if self.model.rate_bps else 0
            self.free_us = max(self.free_us, now_us) + wire_us
            self._queue.append(self.free_us)
            self.packets += 1
            self.clock.at(self.free_us + self.model.delay_us - now_us, lambda packet=packet: self.arrive(packet))


class QueueingNetwork:
    """The server hangs on the tree's root, "tor"; workers are leaves.

    parents: of each node that is not the root, its parent's name; the workers are named w0, w1, ... sums: whether the
    root sums the gradients of all.
    """

    at_server: Arrive
    at_worker: Callable[[int, Packet], None]

    def __init__(
        self,
        parents: Mapping[str, str],
        workers: int,
        model: LinkModel,
        seed: int,
        *,
        sums: bool,
        mark_from: int | None = None,
    ) -> None:
        self.clock = Clock()
        self._parents = dict(parents)
        self._children: dict[str, list[str]] = {}
        self._label = Label(1, workers) if sums else Label()
        self._root = "tor"
        self.switches = {self._root: SwitchModel(1, SLOTS, frozenset({JOB}))} if sums else {}
        seeds = random.Random(seed)

        def direction(arrive: Arrive, marks: bool = True) -> Direction:
            return Direction(self.clock, model, mark_from if marks else None, random.Random(seeds.random()), arrive)

        self._up: dict[str, Direction] = {}
        self._down: dict[str, Direction] = {}
        for child, parent in self._parents.items():
            self._children.setdefault(parent, []).append(child)
            self._up[child] = direction(
                lambda packet, parent=parent: self._towards_server(parent, packet), marks=child in parents.values()
            )
            self._down[child] = direction(lambda packet, child=child: self._towards_workers(child, packet))
        self._up[self._root] = direction(lambda packet: self.at_server(packet))
        self.from_server = direction(lambda packet: self._towards_workers(self._root, packet), marks=False)
        self.to_server = self._up[self._root]

    def labels(self, worker: int) -> Sequence[Label]:
        return [self._label]

    def send_to_server(self, packet: Packet) -> None:
        self._up[f"w{packet.worker}"].send(packet)

    def send_to_workers(self, packet: Packet) -> None:
        self.from_server.send(packet)

    def _towards_server(self, node: str, packet: Packet) -> None:
        passed_on: Packet | None = packet
        if node in self.switches:
            passed_on = self.switches[node].process(packet)
        if passed_on is not None:
            self._up[node].send(passed_on)

    def _towards_workers(self, node: str, packet: Packet) -> None:
        if node not in self._children:
            self.at_worker(int(node[1:]), packet)
            return
        if node in self.switches:
            self.switches[node].process(packet)
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
