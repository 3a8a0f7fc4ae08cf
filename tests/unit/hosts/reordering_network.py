"""Workers - designated switch - server, where every arrow loses, duplicates and reorders without a plan."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.unit.hosts.simulation import JOB, Clock
from tests.unit.hosts.slot_model import Packet, SwitchModel


@dataclass(frozen=True)
class Hop:
    """What every hop does to every packet."""

    loss: float
    duplicate: float
    delay_us: int
    jitter_us: int


class ReorderingNetwork:
    """Fragments are dealt to `switches` switches side by side; with none, hops lead to the server at once."""

    at_server: Callable[[Packet], None]
    at_worker: Callable[[int, Packet], None]

    def __init__(self, *, workers: int, switches: int, slots: int, hop: Hop, seed: int) -> None:
        self.clock = Clock()
        self._workers = workers
        self._hop = hop
        self._random = random.Random(seed)
        self.switches = [
            SwitchModel(number=index + 1, slot_count=slots, jobs=frozenset({JOB})) for index in range(switches)
        ]

    def switch_number(self, packet_number: int) -> int:
        return packet_number % len(self.switches) + 1 if self.switches else 0

    def send_to_server(self, packet: Packet) -> None:
        self._over_hop(packet, self._at_switch_towards_server)

    def send_to_workers(self, packet: Packet) -> None:
        self._over_hop(packet, self._at_switch_towards_workers)

    def _over_hop(self, packet: Packet, arrive: Callable[[Packet], None]) -> None:
        hop = self._hop
        copies = 0 if self._random.random() < hop.loss else 1
        if self._random.random() < hop.duplicate:
            copies += 1
        for _ in range(copies):
            delay_us = hop.delay_us + (self._random.randrange(hop.jitter_us) if hop.jitter_us else 0)
            self.clock.at(delay_us, lambda: arrive(packet))

    def _at_switch_towards_server(self, packet: Packet) -> None:
        if packet.switch_number:
            passed_on = self.switches[packet.switch_number - 1].process(packet)
            if passed_on is None:
                return
            packet = passed_on
        self._over_hop(packet, self.at_server)

    def _at_switch_towards_workers(self, packet: Packet) -> None:
        if packet.switch_number:
            self.switches[packet.switch_number - 1].process(packet)
        everyone = range(self._workers) if packet.worker is None else [packet.worker]
        for worker in everyone:
            self._over_hop(packet, lambda copy, worker=worker: self.at_worker(worker, copy))
