"""Queues in slots: the time that a link takes to send a packet, all packets being equally long, is one slot.

In every slot each queue that holds something sends the packet at its head, which comes to the next queue when the
slot ends. All queues of a network are worked on at once, as arrays. Against the virtual clock this leaves out where
in a slot a packet comes; queues, their limits, and the rules by which switches choose are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

DELIVERED = -1


class Fabric(Protocol):
    """Queues by number; those of hosts' own links come first, in the hosts' order."""

    @property
    def hosts(self) -> int: ...

    @property
    def queues(self) -> int: ...

    @property
    def turns(self) -> int:
        """In so many groups, one after the other, the packets of a slot choose: switches that look at queues see what
        others have just chosen."""

    def route(self, packets: Packets, ids: Integers, queues: Integers, waiting: Integers) -> Integers:
        """Where packets go that were sent by these queues: the next queue, or DELIVERED."""


class Destinations(Protocol):
    """Who sends how much to whom."""

    @property
    def rates(self) -> NDArray[np.float64]:
        """Packets a slot, by host."""

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers: ...


@dataclass
class Packets:
    """All packets of a run, by number: columns. salt: 0 to 2^32 - 1, for random choices. flow: likewise, but the same
    for all packets of a pair."""

    source: Integers
    destination: Integers
    born: Integers
    salt: Integers
    flow: Integers
    links: NDArray[np.int8]


@dataclass(frozen=True)
class Found:
    """Of packets that were made after the warm-up. accepted_load: of all that arrived in that time. latency_slots,
    links: of those that arrived. carried: packets by queue, of all; slots: in which."""

    offered_load: float
    accepted_load: float
    loss: float
    latency_slots: NDArray[np.float64]
    links: NDArray[np.int64]
    carried: Integers
    slots: int

    def latency_s(self, packet_s: float, delay_s: float, percent: float | None = None) -> float | None:
        """Mean, or a percentile; delay_s: of a link."""
        if not len(self.latency_slots):
            return None
        times = self.latency_slots * packet_s + self.links * delay_s
        return float(times.mean() if percent is None else np.percentile(times, percent))


def simulate(
    fabric: Fabric,
    traffic: Destinations,
    *,
    slots: int,
    warm_up_slots: int,
    queue_packets: int,
    seed: int,
) -> Found:
    """Poisson arrivals for `slots`, then until the network is empty."""
    random = np.random.default_rng(seed)
    packets, made = _packets(traffic, slots, random)
    queues = _Queues(fabric.queues, queue_packets)
    arrived = np.full(len(packets.source), -1, np.int64)
    carried = np.zeros(fabric.queues, np.int64)
    ids = queues_from = np.zeros(0, np.int64)
    slot = 0
    while slot < slots or queues.length.any() or len(ids):
        if len(ids):
            order = random.permutation(len(ids))
            for part in np.array_split(order, fabric.turns):
                if len(part):
                    to = fabric.route(packets, ids[part], queues_from[part], queues.length)
                    home = to == DELIVERED
                    arrived[ids[part][home]] = slot
                    queues.append(to[~home], ids[part][~home])
        if slot < slots:
            new = np.arange(made[slot], made[slot + 1])
            queues.append(packets.source[new], new)
        queues_from, ids = queues.pop()
        packets.links[ids] += 1
        if warm_up_slots <= slot < slots:
            carried[queues_from] += 1
        slot += 1
    measured = packets.born >= warm_up_slots
    there = measured & (arrived >= 0)
    in_time = (arrived >= warm_up_slots) & (arrived < slots)
    span = fabric.hosts * (slots - warm_up_slots)
    return Found(
        offered_load=float(measured.sum()) / span,
        accepted_load=float(in_time.sum()) / span,
        loss=1 - float(there.sum()) / max(1, int(measured.sum())),
        latency_slots=(arrived[there] - packets.born[there]).astype(np.float64),
        links=packets.links[there].astype(np.int64),
        carried=carried,
        slots=slots - warm_up_slots,
    )


def _packets(traffic: Destinations, slots: int, random: np.random.Generator) -> tuple[Packets, Integers]:
    """All packets in the order of their making, and where each slot's begin."""
    hosts = len(traffic.rates)
    counts = random.poisson(traffic.rates, (slots, hosts))
    made = np.concatenate(([0], np.cumsum(counts.sum(axis=1))))
    source = np.repeat(np.tile(np.arange(hosts), slots), counts.ravel())
    destination = traffic.draw(source, random)
    count = len(source)
    mixed = (source * 2_654_435_761 + destination * 40_503 + 12_345) * 0x9E37_79B9
    packets = Packets(
        source=source,
        destination=destination,
        born=np.repeat(np.arange(slots), counts.sum(axis=1)),
        salt=random.integers(0, 2**32, count),
        flow=(mixed >> 16) & 0xFFFF_FFFF,
        links=np.zeros(count, np.int8),
    )
    return packets, made


class _Queues:
    """First in, first out, each with room for so many."""

    def __init__(self, count: int, room: int) -> None:
        self._room = room
        self._ring = np.zeros((count, room), np.int64)
        self._head = np.zeros(count, np.int64)
        self.length = np.zeros(count, np.int64)

    def append(self, queues: Integers, ids: Integers) -> None:
        """What finds its queue full is lost."""
        order = np.argsort(queues, kind="stable")
        queues, ids = queues[order], ids[order]
        place = self.length[queues] + _ranks(queues)
        fits = place < self._room
        queues, ids, place = queues[fits], ids[fits], place[fits]
        self._ring[queues, (self._head[queues] + place) % self._room] = ids
        np.add.at(self.length, queues, 1)

    def pop(self) -> tuple[Integers, Integers]:
        """The heads of all queues that hold something: (queues, packets)."""
        queues = np.flatnonzero(self.length)
        ids = self._ring[queues, self._head[queues]]
        self._head[queues] = (self._head[queues] + 1) % self._room
        self.length[queues] -= 1
        return queues, ids


def _ranks(values: NDArray[Any]) -> Integers:
    """Of sorted values: the place of each among its equals."""
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1]))) if len(values) else np.zeros(0, int)
    ranks: Integers = np.arange(len(values)) - np.repeat(starts, np.diff(np.concatenate((starts, [len(values)]))))
    return ranks
