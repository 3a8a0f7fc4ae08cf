"""Workers - switches, on one or two levels - server: every arrow loses, duplicates and reorders without a plan."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.unit.hosts.aggregation.simulation import JOB, Clock
from tests.unit.hosts.aggregation.slot_model import Label, Packet, SwitchModel


@dataclass(frozen=True)
class Hop:
    """What every hop does to every packet. mark: part of the packets that meet a long queue."""

    loss: float
    duplicate: float
    delay_us: int
    jitter_us: int
    mark: float = 0.0


class ReorderingNetwork:
    """A hop leads from each worker to each switch, from each switch to the second level, and from all to the server.

    labels: by worker and turn; switches have the numbers 1, 2, ... ACKs pass the second-level switch, if there is
    one, then all others, behind which the workers are dealt out.
    """

    at_server: Callable[[Packet], None]
    at_worker: Callable[[int, Packet], None]

    def __init__(
        self,
        *,
        labels: Sequence[Sequence[Label]],
        switches: int,
        slots: int,
        hop: Hop,
        seed: int,
        second: int = 0,
        static: bool = False,
    ) -> None:
        self.clock = Clock()
        self._labels = labels
        self._second = second
        self._hop = hop
        self._random = random.Random(seed)
        self.switches = {
            number: SwitchModel(number, slots, frozenset({JOB}), static) for number in range(1, switches + 1)
        }
        self._first_level = [number for number in self.switches if number != second] or [0]

    def labels(self, worker: int) -> Sequence[Label]:
        return self._labels[worker]

    def send_to_server(self, packet: Packet) -> None:
        self._over_hop(packet, self._towards_server)

    def send_to_workers(self, packet: Packet) -> None:
        self._over_hop(packet, self._at_second_level)

    def _over_hop(self, packet: Packet, arrive: Callable[[Packet], None]) -> None:
        hop = self._hop
        copies = 0 if self._random.random() < hop.loss else 1
        if self._random.random() < hop.duplicate:
            copies += 1
        marked = replace(packet, congested=True) if self._random.random() < hop.mark else packet
        for _ in range(copies):
            delay_us = hop.delay_us + (self._random.randrange(hop.jitter_us) if hop.jitter_us else 0)
            self.clock.at(delay_us, lambda: arrive(marked))

    def _towards_server(self, packet: Packet) -> None:
        """At the switch that the packet names, or at the server."""
        if not packet.label.switch_number:
            self.at_server(packet)
            return
        passed_on = self.switches[packet.label.switch_number].process(packet)
        if passed_on is not None:
            self._over_hop(passed_on, self._towards_server)

    def _at_second_level(self, packet: Packet) -> None:
        if self._second:
            self.switches[self._second].process(packet)
        for number in self._first_level:
            if packet.worker is None or number == self._home(packet.worker):
                self._over_hop(packet, lambda copy, number=number: self._at_first_level(number, copy))

    def _at_first_level(self, number: int, packet: Packet) -> None:
        if number:
            self.switches[number].process(packet)
        everyone = range(len(self._labels)) if packet.worker is None else [packet.worker]
        for worker in everyone:
            if self._home(worker) == number:
                self._over_hop(packet, lambda copy, worker=worker: self.at_worker(worker, copy))

    def _home(self, worker: int) -> int:
        return self._first_level[worker % len(self._first_level)]
