"""A vectorised queueing model for networks too large for packets: each link sends one packet in a slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.interconnect.entries import POLICIES, PolicyName, Rule
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import PLANES

# ---- Queues in slots ----


Integers = NDArray[np.int64]

DELIVERED = -1


class QueueNetwork(Protocol):
    """A network as numbered queues; those of hosts' own links come first, in the hosts' order."""

    @property
    def hosts(self) -> int: ...

    @property
    def queues(self) -> int: ...

    @property
    def turns(self) -> int:
        """Number of groups in which the packets of a slot choose, one after the other.

        Switches that look at queues then see what others have just chosen.
        """

    def route(self, packets: PacketTable, ids: Integers, queues: Integers, waiting: Integers) -> Integers:
        """Return where packets go that these queues sent: the next queue, or DELIVERED."""


class Destinations(Protocol):
    """Traffic matrix: rate of each host, and random receivers."""

    @property
    def rates(self) -> NDArray[np.float64]:
        """Packets per slot of each host."""

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers: ...


@dataclass
class PacketTable:
    """Packets of a run by number, as columns."""

    source: Integers
    destination: Integers
    born: Integers
    salt: Integers
    """Random number of the packet, 0 to 2^32 - 1."""
    flow: Integers
    """Hash of the pair, 0 to 2^32 - 1; the same for all packets of a pair."""
    links: NDArray[np.int8]
    """Number of links crossed so far."""


@dataclass(frozen=True)
class ModelResult:
    """Results of the packets that were generated after the warm-up."""

    offered_load: float
    accepted_load: float
    """Arrivals of all packets after the warm-up, per host and slot."""
    loss: float
    latency_slots: NDArray[np.float64]
    """Latency of each packet that arrived."""
    links: NDArray[np.int64]
    """Number of links crossed by each packet that arrived."""
    carried: Integers
    """Packets sent by each queue after the warm-up."""
    slots: int
    """Number of slots after the warm-up."""

    def latency_s(self, packet_s: float, delay_s: float, percent: float | None = None) -> float | None:
        """Return the mean latency, or a percentile of it, in seconds.

        Args:
            packet_s: length of a slot.
            delay_s: propagation delay of a link.
            percent: percentile; None: the mean.
        """
        if not len(self.latency_slots):
            return None
        times = self.latency_slots * packet_s + self.links * delay_s
        return float(times.mean() if percent is None else np.percentile(times, percent))


def simulate(
    fabric: QueueNetwork,
    traffic: Destinations,
    *,
    slots: int,
    warm_up_slots: int,
    queue_packets: int,
    seed: int,
) -> ModelResult:
    """Simulate Poisson arrivals for `slots`, then until the network is empty."""
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
    return ModelResult(
        offered_load=float(measured.sum()) / span,
        accepted_load=float(in_time.sum()) / span,
        loss=1 - float(there.sum()) / max(1, int(measured.sum())),
        latency_slots=(arrived[there] - packets.born[there]).astype(np.float64),
        links=packets.links[there].astype(np.int64),
        carried=carried,
        slots=slots - warm_up_slots,
    )


def _packets(traffic: Destinations, slots: int, random: np.random.Generator) -> tuple[PacketTable, Integers]:
    """Return all packets in the order of their generation, and the first packet of each slot."""
    hosts = len(traffic.rates)
    counts = random.poisson(traffic.rates, (slots, hosts))
    made = np.concatenate(([0], np.cumsum(counts.sum(axis=1))))
    source = np.repeat(np.tile(np.arange(hosts), slots), counts.ravel())
    destination = traffic.draw(source, random)
    count = len(source)
    mixed = (source * 2_654_435_761 + destination * 40_503 + 12_345) * 0x9E37_79B9
    packets = PacketTable(
        source=source,
        destination=destination,
        born=np.repeat(np.arange(slots), counts.sum(axis=1)),
        salt=random.integers(0, 2**32, count),
        flow=(mixed >> 16) & 0xFFFF_FFFF,
        links=np.zeros(count, np.int8),
    )
    return packets, made


class _Queues:
    """FIFO queues of limited length."""

    def __init__(self, count: int, room: int) -> None:
        self._room = room
        self._ring = np.zeros((count, room), np.int64)
        self._head = np.zeros(count, np.int64)
        self.length = np.zeros(count, np.int64)

    def append(self, queues: Integers, ids: Integers) -> None:
        """Append packets to queues; those that find their queue full are lost."""
        order = np.argsort(queues, kind="stable")
        queues, ids = queues[order], ids[order]
        place = self.length[queues] + _ranks(queues)
        fits = place < self._room
        queues, ids, place = queues[fits], ids[fits], place[fits]
        self._ring[queues, (self._head[queues] + place) % self._room] = ids
        np.add.at(self.length, queues, 1)

    def pop(self) -> tuple[Integers, Integers]:
        """Remove the heads of all queues that are not empty and return (queues, packets)."""
        queues = np.flatnonzero(self.length)
        ids = self._ring[queues, self._head[queues]]
        self._head[queues] = (self._head[queues] + 1) % self._room
        self.length[queues] -= 1
        return queues, ids


def _ranks(values: NDArray[Any]) -> Integers:
    """Return the rank of each value among its equals; values are sorted."""
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1]))) if len(values) else np.zeros(0, int)
    ranks: Integers = np.arange(len(values)) - np.repeat(starts, np.diff(np.concatenate((starts, [len(values)]))))
    return ranks


# ---- Traffic ----


PATTERNS = ("all-to-all", "permutation", "hotspot")


@dataclass(frozen=True)
class UniformTraffic:
    """Traffic of every host to all others, evenly."""

    rates: NDArray[np.float64]

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers:
        hosts = len(self.rates)
        found: Integers = (sources + random.integers(1, hosts, len(sources))) % hosts
        return found


@dataclass(frozen=True)
class PermutationTraffic:
    """Traffic of every host to one other host."""

    rates: NDArray[np.float64]
    receiver: Integers

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers:
        return self.receiver[sources]


@dataclass(frozen=True)
class HotspotTraffic:
    """A fixed share of what each host sends goes to the first host, the rest to all others alike."""

    rates: NDArray[np.float64]
    share: float

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers:
        hosts = len(self.rates)
        # One of the hosts but the first and the sender.
        others = 1 + random.integers(0, hosts - 2, len(sources))
        others += (others >= sources) & (sources > 0)
        others = np.where(sources == 0, 1 + random.integers(0, hosts - 1, len(sources)), others)
        hot = (random.random(len(sources)) < self.share) & (sources != 0)
        return np.where(hot, 0, others)


@dataclass(frozen=True)
class WeightedTraffic:
    """Receivers are drawn by the share of each pair; for networks of some hundred hosts."""

    rates: NDArray[np.float64]
    cumulated: NDArray[np.float64]

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers:
        place = random.random(len(sources))[:, None]
        found: Integers = (self.cumulated[sources] <= place).sum(axis=1).astype(np.int64)
        return found


def of_rates(hosts: Sequence[str], rates_bps: Mapping[tuple[str, str], float], link_bps: float) -> WeightedTraffic:
    """Return the traffic of gradbed.experiments.traffic.agents.pair_rates, for links of one rate."""
    place = {name: number for number, name in enumerate(hosts)}
    weights = np.zeros((len(hosts), len(hosts)))
    for (sender, receiver), rate_bps in rates_bps.items():
        weights[place[sender], place[receiver]] = rate_bps / link_bps
    rates = weights.sum(axis=1)
    shares = weights / np.where(rates > 0, rates, 1)[:, None]
    cumulated = np.cumsum(shares, axis=1)
    cumulated[:, -1] = 1.0
    return WeightedTraffic(rates, cumulated)


def of_pattern(
    pattern: str, hosts: int, load: float, seed: int
) -> UniformTraffic | PermutationTraffic | HotspotTraffic:
    """Return the traffic of a named pattern.

    Args:
        load: of the busiest direction of a host's link, as in experiments/traffic.

    Raises:
        UserError: the pattern is not known.
    """
    kind, _, argument = pattern.partition(":")
    if kind == "all-to-all":
        return UniformTraffic(np.full(hosts, load))
    if kind == "permutation":
        # A cycle through all hosts in random order, so that no host sends to itself.
        order = np.random.default_rng(seed).permutation(hosts)
        receiver = np.empty(hosts, np.int64)
        receiver[order] = np.roll(order, -1)
        return PermutationTraffic(np.full(hosts, load), receiver)
    if kind == "hotspot":
        share = float(argument) if argument else 0.5
        into_first = share * (hosts - 1)
        return HotspotTraffic(np.full(hosts, load / max(1.0, into_first)), share)
    raise UserError(f"the model has no traffic {pattern!r}: take one of {', '.join(PATTERNS)}")


# ---- Any topology, on shortest paths ----


TURNS = 8


class ShortestPaths:
    """Any topology on shortest paths, as gradbed.experiments.systems.interconnect.model.QueueNetwork.

    Queues are hosts' links, the links to hosts, then the ports of each switch to others.
    """

    def __init__(self, topology: Topology, choice: Literal["random", "least-loaded", "routes"] = "random") -> None:
        self._least_loaded = choice == "least-loaded"
        self.hosts = len(topology.hosts)
        self.turns = TURNS if self._least_loaded else 1
        number = {switch.name: place for place, switch in enumerate(topology.switches)}
        count = len(number)
        self._edge = np.array([number[topology.attachment(host.name).name] for host in topology.hosts])
        neighbours: list[list[int]] = [[] for _ in range(count)]
        for link in topology.switch_links:
            a, b = number[link.a.node], number[link.b.node]
            neighbours[a].append(b)
            neighbours[b].append(a)
        self._ports = max(map(len, neighbours), default=1) or 1
        self._neighbour = np.full((count, self._ports), -1)
        for place, others in enumerate(neighbours):
            self._neighbour[place, : len(others)] = others
        self.queues = 2 * self.hosts + count * self._ports
        places, ports = np.nonzero(self._neighbour >= 0)
        ends = self._neighbour[places, ports]
        graph = coo_array((np.ones(len(places)), (places, ends)), shape=(count, count)).tocsr()
        distance = shortest_path(graph, method="D", unweighted=True).astype(np.int16)
        # By switch and destination's switch: a bit for each port on a shortest path.
        self._nearer = np.zeros((count, count), np.int64)
        for port in range(self._ports):
            there = self._neighbour[:, port] >= 0
            nearer = distance[self._neighbour[there, port]] == distance[there] - 1
            self._nearer[there] |= nearer.astype(np.int64) << port
        if choice == "routes":
            for destination, hops in shortest_routes(topology).next_hops.items():
                for switch, hop in hops.items():
                    port = neighbours[number[switch]].index(number[hop])
                    self._nearer[number[switch], number[destination]] = 1 << port

    def route(self, packets: PacketTable, ids: Integers, queues: Integers, waiting: Integers) -> Integers:
        to = np.full(len(ids), DELIVERED, np.int64)
        destination = packets.destination[ids]
        first_port = 2 * self.hosts
        at = queues - first_port
        away = np.flatnonzero((queues < self.hosts) | (queues >= first_port))
        switch = np.where(
            queues[away] < self.hosts,
            self._edge[np.minimum(queues[away], self.hosts - 1)],
            self._neighbour[at[away] // self._ports, at[away] % self._ports],
        )
        home = switch == self._edge[destination[away]]
        to[away[home]] = self.hosts + destination[away[home]]
        rest, switch = away[~home], switch[~home]
        if len(rest):
            ports = np.arange(self._ports)
            usable = self._nearer[switch, self._edge[destination[rest]]][:, None] >> ports & 1 == 1
            # Of the ports on shortest paths the one with the least: a random order, behind the queue's length.
            order = (
                packets.salt[ids[rest], None] * (2 * ports + 1) * 0x9E37_79B9 + packets.links[ids[rest], None]
            ) >> 8
            order &= 0xFFFF
            if self._least_loaded:
                order += waiting[first_port + switch[:, None] * self._ports + ports] << 16
            chosen = np.where(usable, order, np.iinfo(np.int64).max).argmin(axis=1)
            to[rest] = first_port + switch * self._ports + chosen
        return to


# ---- The optical and electrical interconnect ----


UNSEEN = 1
"""Packets assumed in the queue at the peer when light is first (choose_path.p4)."""


@dataclass(frozen=True)
class OpticalElectrical:
    """The interconnect, as gradbed.experiments.systems.interconnect.model.QueueNetwork."""

    n: int
    policy: PolicyName = "least-loaded"
    per_wavelength: bool = True

    @property
    def hosts(self) -> int:
        return self.n**3

    @property
    def turns(self) -> int:
        return TURNS if Rule.LEAST_LOADED in (POLICIES[self.policy].plane, POLICIES[self.policy].order) else 1

    @property
    def _mesh(self) -> int:
        return 2 * self.hosts

    @property
    def _up(self) -> int:
        return self._mesh + self.n**3

    @property
    def _down(self) -> int:
        return self._up + PLANES * self.n**3

    @property
    def queues(self) -> int:
        return self._down + PLANES * self.n**3

    def classes(self) -> dict[str, slice]:
        """Return the queues between switches by class of link."""
        return {"mesh": slice(self._mesh, self._up), "light-path": slice(self._up, self._down)}

    def route(self, packets: PacketTable, ids: Integers, queues: Integers, waiting: Integers) -> Integers:
        n = self.n
        to = np.full(len(ids), DELIVERED, np.int64)
        destination = packets.destination[ids]
        there_x, there_y = destination // n**2, destination // n % n
        unit, sub_unit = self._places(queues)

        at_optical = (queues >= self._up) & (queues < self._down)
        plane, _ = self._planes(queues)
        to[at_optical] = self._light_down(plane, sub_unit, unit, there_x)[at_optical]

        at_hybrid = (queues < self.hosts) | ((queues >= self._mesh) & ~at_optical)
        own = at_hybrid & (unit == there_x) & (sub_unit == there_y)
        to[own] = self.hosts + destination[own]
        same_unit = at_hybrid & ~own & (unit == there_x)
        mesh = self._mesh + (unit * n + sub_unit) * n + there_y
        to[same_unit] = mesh[same_unit]

        away = np.flatnonzero(at_hybrid & (unit != there_x))
        if len(away):
            to[away] = self._choose(
                packets, ids[away], unit[away], sub_unit[away], there_x[away], there_y[away], mesh[away], waiting
            )
        return to

    def _choose(
        self,
        packets: PacketTable,
        ids: Integers,
        unit: Integers,
        sub_unit: Integers,
        there_x: Integers,
        there_y: Integers,
        mesh: Integers,
        waiting: Integers,
    ) -> Integers:
        """Return the first queue towards another unit, as p4src/include/interconnect/choose_path.p4 chooses it."""
        policy, salt = POLICIES[self.policy], packets.salt[ids] >> packets.links[ids]
        flow = _mixed(packets.flow[ids], unit * self.n + sub_unit)
        first, second = (self._light_up(plane, sub_unit, unit, there_x) for plane in range(PLANES))
        by_second = _second(policy.plane, waiting[first], waiting[second], salt & 1, flow & 1)
        light = np.where(by_second, second, first)
        # A tie goes to the mesh.
        light_first = _second(
            policy.order, waiting[mesh], waiting[light] + UNSEEN, np.zeros_like(salt), flow >> 1 & 1
        )
        return np.where((sub_unit == there_y) | light_first, light, mesh)

    def _places(self, queues: Integers) -> tuple[Integers, Integers]:
        """Return (unit, sub-unit) of the switch to which each queue sends; of light up, from which."""
        n = self.n
        host = queues < self.hosts
        mesh = (queues >= self._mesh) & (queues < self._up)
        at_mesh = queues - self._mesh
        # From here on by (plane, y, x, channel).
        light = np.where(queues >= self._down, queues - self._down, queues - self._up)
        unit = np.where(host, queues // n**2, np.where(mesh, at_mesh // n**2, light // n % n))
        sub_unit = np.where(host, queues // n % n, np.where(mesh, at_mesh % n, light // n**2 % n))
        return unit, sub_unit

    def _planes(self, queues: Integers) -> tuple[Integers, Integers]:
        light = queues - self._up
        return light // self.n**3, light % self.n

    def _channel(self, from_x: Integers, to_x: Integers) -> Integers:
        return (to_x - from_x) % self.n if self.per_wavelength else np.zeros_like(from_x)

    def _light_up(self, plane: int, y: Integers, from_x: Integers, to_x: Integers) -> Integers:
        return self._up + ((plane * self.n + y) * self.n + from_x) * self.n + self._channel(from_x, to_x)

    def _light_down(self, plane: Integers, y: Integers, from_x: Integers, to_x: Integers) -> Integers:
        return self._down + ((plane * self.n + y) * self.n + to_x) * self.n + self._channel(from_x, to_x)


def _mixed(flow: Integers, switch: Integers) -> Integers:
    """Hash flows with a seed of the switch (MixHash in mix_hash.p4)."""
    mixed = (flow ^ (switch + 1) * 0x9E37_79B1) & 0xFFFF_FFFF
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        mixed = ((mixed ^ mixed >> shift) * factor) & 0xFFFF_FFFF
    return mixed ^ mixed >> 16


def _second(rule: Rule, first: Integers, second: Integers, coin: Integers, hashed: Integers) -> NDArray[np.bool_]:
    """Return whether the second of two paths is taken."""
    taken: NDArray[np.bool_] = (coin if rule is Rule.RANDOM else hashed) == 1
    if rule is Rule.LEAST_LOADED:
        taken = (second < first) | ((second == first) & (coin == 1))
    elif rule is Rule.FIRST:
        taken = np.zeros(len(first), np.bool_)
    return taken
