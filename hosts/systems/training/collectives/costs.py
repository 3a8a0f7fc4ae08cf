"""How long a collective takes on an idle network of full bisection, with all that its packets cost there.

The packets are RoCEv2's as hosts' NICs make them (InfiniBand Architecture Specification, volume 1, sections 5 and 9,
and annex A17): Ethernet 14 bytes, IPv4 20, UDP 8, BTH 12, payload, ICRC 4; a message's first packet has a RETH of 16
bytes, its last 4 bytes of immediate data.

Algorithms in which all ranks send and receive alike have a formula; the others are followed message by message.
Either stays within 2 % of packets on a star, and of a fat-tree whose paths do not collide. Nothing is counted for
adding.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import networkx

from gradbed.hosts.collectives.schedule import Operation, Schedule
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, AnyAlgorithm, algorithms, schedule
from gradbed.hosts.systems.training.collectives.progress import Progress, Send
from gradbed.topo.graph import Topology

# ---- One message: packets, links in a row, store and forward ----


HEADER_BYTES = 14 + 20 + 8 + 12 + 4
RETH_BYTES = 16
IMMEDIATE_BYTES = 4
ACKNOWLEDGEMENT_BYTES = HEADER_BYTES + 4
"""With its AETH."""


class Hop(NamedTuple):
    """A link in one direction. rate_bps None: it takes no time to send."""

    rate_bps: int | None
    delay_ns: float = 0.0

    def sending_ns(self, wire_bytes: float) -> float:
        return 0.0 if self.rate_bps is None else wire_bytes * 8e9 / self.rate_bps


Path = tuple[Hop, ...]
"""The links from one host to another. Between two there is a switch, which has all of a packet before it sends it."""


class Packetisation(NamedTuple):
    """The way in which a message is cut into packets."""

    mtu_bytes: int = 4096
    acknowledge_every: int = 4
    acknowledgement_bytes: int = ACKNOWLEDGEMENT_BYTES
    """Size of an acknowledgement; 16 bytes more where it has a SELECTIVE header (formats/roce.py)."""

    def count(self, size_bytes: int) -> int:
        """Return the number of a message's packets: one at least."""
        return max(1, -(-size_bytes // self.mtu_bytes))

    def frames(self, size_bytes: int) -> tuple[int, int, int]:
        """Bytes of the first frame, of each in the middle, and of the last one. Of one frame: the first alone."""
        rest = size_bytes - (self.count(size_bytes) - 1) * self.mtu_bytes
        last = HEADER_BYTES + rest + -rest % 4 + IMMEDIATE_BYTES
        whole = HEADER_BYTES + self.mtu_bytes + -self.mtu_bytes % 4
        return (last + RETH_BYTES if self.count(size_bytes) == 1 else whole + RETH_BYTES), whole, last

    def wire_bytes(self, size_bytes: int) -> int:
        """Return the bytes of all its frames."""
        count = self.count(size_bytes)
        first, whole, last = self.frames(size_bytes)
        return first if count == 1 else first + (count - 2) * whole + last

    def acknowledgements_bytes(self, size_bytes: int) -> int:
        """Return the bytes of the frames that come back for it."""
        return -(-self.count(size_bytes) // self.acknowledge_every) * self.acknowledgement_bytes


USUAL_PACKETS = Packetisation()


@dataclass(frozen=True)
class NetworkModel:
    """An idle network as the ranks of a group see it."""

    path: Callable[[int, int], Path]
    """Path between the places of sender and receiver in the group."""
    packets: Packetisation = USUAL_PACKETS

    def message_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """Return the time from the first bit sent to the last one received, while the sender's link carries as many
        acknowledgements for others.
        """
        times = _times(self.path(sender, receiver), self.packets, size_bytes)
        return times.message_ns + times.acknowledging_ns

    def sending_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """Return how long a message, with as many acknowledgements for others, keeps the slowest link of its path
        busy.
        """
        times = _times(self.path(sender, receiver), self.packets, size_bytes)
        return times.data_ns + times.acknowledging_ns

    def latency_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """Return what message_ns is more than sending_ns: delays, and a packet's way through switches."""
        times = _times(self.path(sender, receiver), self.packets, size_bytes)
        return times.message_ns - times.data_ns

    def data_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """Return how long the message alone keeps the slowest link of its path busy."""
        return _times(self.path(sender, receiver), self.packets, size_bytes).data_ns

    def acknowledging_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """Return how long acknowledgements of a message keep the slowest link of the path busy."""
        return _times(self.path(sender, receiver), self.packets, size_bytes).acknowledging_ns


class _Times(NamedTuple):
    message_ns: float
    data_ns: float
    acknowledging_ns: float


@lru_cache(65536)
def _times(path: Path, packets: Packetisation, size_bytes: int) -> _Times:
    data, acknowledgements = packets.wire_bytes(size_bytes), packets.acknowledgements_bytes(size_bytes)
    return _Times(
        message_ns(path, packets, size_bytes),
        max(hop.sending_ns(data) for hop in path),
        max(hop.sending_ns(acknowledgements) for hop in path),
    )


def message_ns(path: Path, packets: Packetisation, size_bytes: int) -> float:
    """Return the time from the first bit sent to the last one received, of a message that is alone.

    Packets go through links as jobs through machines in a row. The time is that of the longest way from the first
    packet on the first link to the last one on the last link, where each step is to the next packet or the next link:
    a flow shop. Of equal packets the longest way turns at the first or the last.
    """
    count = packets.count(size_bytes)
    first, whole, last = packets.frames(size_bytes)
    # Classes of packets: the first, the next, those between, the last whole one, the last.
    sizes = [first, *[whole] * min(count - 2, 2), last] if count > 1 else [first]
    between = count - len(sizes)
    longest: list[float] = []
    for number, hop in enumerate(path):
        ends: list[float] = []
        for place, size in enumerate(sizes):
            # What is skipped after the second packet is sent on the same link.
            skipped = hop.sending_ns(whole * between) if place == 2 and between else 0.0
            before = ends[place - 1] + skipped if place else 0.0
            came = longest[place] if number else 0.0
            ends.append(max(before, came) + hop.sending_ns(size))
        longest = ends
    return longest[-1] + sum(hop.delay_ns for hop in path)


def star(rate_bps: int, delay_ns: float = 0.0, packets: Packetisation = USUAL_PACKETS) -> NetworkModel:
    """Return the model of a network with all ranks on one switch. delay_ns: of each link."""
    path = (Hop(rate_bps, delay_ns), Hop(rate_bps, delay_ns))
    return NetworkModel(lambda sender, receiver: path, packets)


def of_topology(topology: Topology, hosts: Sequence[str], packets: Packetisation = USUAL_PACKETS) -> NetworkModel:
    """The ranks' hosts in a network, over shortest paths (any of several: those of a fat-tree are alike)."""

    @lru_cache(65536)
    def hops(start: str, end: str) -> Path:
        nodes = networkx.shortest_path(topology.graph, start, end)
        models = [topology.link(a, b).model for a, b in pairwise(nodes)]
        return tuple(Hop(model.rate_bps, model.delay_us * 1e3) for model in models)

    switches = [tuple(topology.neighbours(host)) for host in hosts]

    def path(sender: int, receiver: int) -> Path:
        """Return the path between two ranks.

        Of hosts with one link each the ways between their switches are looked for once.
        """
        start, end = hosts[sender], hosts[receiver]
        if len(switches[sender]) > 1 or len(switches[receiver]) > 1:
            return hops(start, end)
        (near,), (far,) = switches[sender], switches[receiver]
        return hops(start, near) + (hops(near, far) if near != far else ()) + hops(far, end)

    return NetworkModel(path, packets)


# ---- A schedule, by what its messages cost ----


@dataclass
class _Nic:
    """A rank's: messages by peer, in turn. free_ns: of receiving."""

    waiting: dict[int, deque[tuple[Send, int]]] = field(default_factory=dict)
    turns: deque[int] = field(default_factory=deque)
    busy: bool = False
    receives_until_ns: float = 0.0


def schedule_ns(
    schedules: Sequence[Schedule], network: NetworkModel, *, element_bytes: int = 1, pieces: int = 1
) -> float:
    """Return the time until the last rank has its result.

    schedules: of all ranks, in order.

    A rank sends a piece of the next message to each of its peers in turn, as NICs do with packets, and receives one
    piece after the other, as they come. Links between switches never wait: an idle network of full bisection. pieces:
    of each message; one is enough where no rank sends to, or receives from, several at once.
    """
    return _ScheduleSimulation(schedules, network, element_bytes, pieces).ended_ns


class _ScheduleSimulation:
    def __init__(self, schedules: Sequence[Schedule], network: NetworkModel, element_bytes: int, pieces: int) -> None:
        self.network, self.element_bytes, self.pieces = network, element_bytes, pieces
        self.ranks = [Progress(schedule) for schedule in schedules]
        self.nics = [_Nic() for _ in schedules]
        self.ended_ns = 0.0
        self.events: list[tuple[float, int, str, int, Send | None, bool]] = []
        self.order = 0
        for rank in range(len(schedules)):
            self._begin(rank, 0.0)
        while self.events:
            now, _, kind, rank, send, last = heapq.heappop(self.events)
            if send is None:
                self._send(rank, now)
            elif kind == "come":
                self._receive(rank, send, last, now)
            else:
                self.ranks[send.peer].received(rank, send.turn)
                if self.ranks[send.peer].has_result:
                    self.ended_ns = now
                self.ranks[rank].sent(send.step)
                self._begin(send.peer, now)
                self._begin(rank, now)

    def _at(self, time_ns: float, kind: str, rank: int, send: Send | None = None, last: bool = False) -> None:
        self.order += 1
        heapq.heappush(self.events, (time_ns, self.order, kind, rank, send, last))

    def _size(self, send: Send) -> int:
        return (send.stop - send.start) * self.element_bytes

    def _begin(self, rank: int, now: float) -> None:
        nic = self.nics[rank]
        for send in self.ranks[rank].ready():
            queue = nic.waiting.setdefault(send.peer, deque())
            if not queue:
                nic.turns.append(send.peer)
            queue.append((send, self.pieces))
        if nic.turns and not nic.busy:
            nic.busy = True
            self._send(rank, now)

    def _send(self, rank: int, now: float) -> None:
        nic = self.nics[rank]
        nic.busy = bool(nic.turns)
        if not nic.busy:
            return
        peer = nic.turns.popleft()
        queue = nic.waiting[peer]
        send, left = queue.popleft()
        if left > 1:
            queue.appendleft((send, left - 1))
        if queue:
            nic.turns.append(peer)
        sent = now + self.network.sending_ns(rank, peer, self._size(send)) / self.pieces
        self._at(sent, "free", rank)
        self._at(sent + self.network.latency_ns(rank, peer, self._size(send)), "come", rank, send, left == 1)

    def _receive(self, rank: int, send: Send, last: bool, now: float) -> None:
        nic = self.nics[send.peer]
        taken = self.network.sending_ns(rank, send.peer, self._size(send)) / self.pieces
        nic.receives_until_ns = max(now, nic.receives_until_ns + taken)
        if last:
            self._at(nic.receives_until_ns, "complete", rank, send)


# ---- A collective ----


MOST_PIECES = 64
"""Of a message between ranks that exchange with several at once; of all its chunks together."""


def cost_ns(
    algorithm: AnyAlgorithm,
    operation: Operation,
    group_size: int,
    size_bytes: int,
    network: NetworkModel,
    *,
    chunks: int = 1,
    root: int = 0,
    racks: tuple[int, ...] | None = None,
    inside: AnyAlgorithm = Algorithm.RING,
    between: AnyAlgorithm = Algorithm.RING,
) -> float:
    """Return the time until the last rank has its result (Progress.has_result), when all begin at once.

    size_bytes: of a rank's input (Operation); the rest as for schedule(). UserError as there.

    What is followed message by message takes some 10 us of the processor for each message.
    """
    # Refuses what schedule() refuses.
    schedule(
        *(algorithm, operation, group_size, 0, size_bytes),
        chunks=chunks,
        root=root,
        racks=racks,
        inside=inside,
        between=between,
    )
    if group_size == 1:
        return 0.0
    vector = size_bytes * group_size if operation is Operation.ALL_GATHER else size_bytes
    part = -(-vector // group_size)
    if algorithm is Algorithm.RING:
        phases = 2 if operation is Operation.ALL_REDUCE else 1
        return _ring_ns(group_size, phases * (group_size - 1), part, chunks, network)
    if algorithm is Algorithm.PAIRWISE:
        return _pairwise_ns(group_size, part, network)
    if algorithm is Algorithm.SHARDED_PARAMETER_SERVER:
        return 2 * _at_once_ns(group_size, part, network)
    if operation is Operation.GATHER:
        return _one_link_ns([(peer, root) for peer in range(group_size) if peer != root], size_bytes, network)
    if operation is Operation.SCATTER:
        return _one_link_ns([(root, peer) for peer in range(group_size) if peer != root], part, network)
    if algorithm is Algorithm.DIRECT:
        return _at_once_ns(group_size, part, network)
    schedules = [
        schedule(
            *(algorithm, operation, group_size, rank, size_bytes),
            chunks=chunks,
            root=root,
            racks=racks,
            inside=inside,
            between=between,
        )
        for rank in range(group_size)
    ]
    return schedule_ns(schedules, network, pieces=_pieces(algorithm, size_bytes, chunks, network))


def _pieces(algorithm: AnyAlgorithm, size_bytes: int, chunks: int, network: NetworkModel) -> int:
    if algorithm is Algorithm.RECURSIVE_DOUBLING:
        # In folded groups ranks that need not wait send to those that still receive in the round before.
        return min(MOST_PIECES, network.packets.count(size_bytes))
    if algorithm not in (Algorithm.BINARY_TREE, Algorithm.DOUBLE_BINARY_TREE):
        return 1
    return max(1, min(MOST_PIECES // chunks, network.packets.count(size_bytes // (2 * chunks))))


def _ring_ns(size: int, rounds: int, part: int, chunks: int, network: NetworkModel) -> float:
    """A message's way: in each round to the next rank, or to wait for a rank's link until all chunks of the round are
    gone. The longest one counts: hops follow each other, so they are those of an arc of the ring."""
    chunk = -(-part // chunks)
    hops = [network.message_ns(rank, (rank + 1) % size, chunk) for rank in range(size)]
    sending = max(network.sending_ns(rank, (rank + 1) % size, chunk) for rank in range(size))
    until = list(accumulate(hops * (rounds // size + 2), initial=0.0))

    def longest(count: int) -> float:
        return max(until[start + count] - until[start] for start in range(size))

    if chunks == 1:
        return longest(rounds)
    counts = (1, rounds) if len(set(hops)) == 1 else range(1, rounds + 1)
    return max(longest(count) + ((rounds - count) * chunks + chunks - 1) * sending for count in counts)


def _pairwise_ns(size: int, part: int, network: NetworkModel) -> float:
    """Return the time of rounds in which a rank waits for what it receives, and for its link."""
    begun = [0.0] * size
    for away in range(1, size):
        come = [begun[rank - away] + network.message_ns((rank - away) % size, rank, part) for rank in range(size)]
        free = [begun[rank] + network.sending_ns(rank, (rank + away) % size, part) for rank in range(size)]
        ended, begun = come, [max(one, other) for one, other in zip(come, free, strict=True)]
    return max(ended)


def _at_once_ns(size: int, part: int, network: NetworkModel) -> float:
    """Return the time if all send to all, a packet to each in turn, so that each link is busy from the first to the
    last.

    What comes is acknowledged in between, from the first one's arrival on.
    """

    def rank_ns(rank: int) -> float:
        peers = [peer for peer in range(size) if peer != rank]
        data = sum(network.data_ns(rank, peer, part) for peer in peers)
        latency = max(network.latency_ns(rank, peer, part) for peer in peers)
        acknowledging = sum(network.acknowledging_ns(rank, peer, part) for peer in peers)
        return data + latency + acknowledging * max(0.0, 1 - latency / data)

    return max(rank_ns(rank) for rank in range(size))


def _one_link_ns(messages: Sequence[tuple[int, int]], size_bytes: int, network: NetworkModel) -> float:
    """Return the time of messages of which sender or receiver is always the same: its link carries them all, and
    acknowledgements the other way.
    """
    sending = sum(network.data_ns(sender, receiver, size_bytes) for sender, receiver in messages)
    return sending + max(network.latency_ns(sender, receiver, size_bytes) for sender, receiver in messages)


def cheapest(
    operation: Operation,
    group_size: int,
    size_bytes: int,
    network: NetworkModel,
    *,
    chunks: int = 1,
    root: int = 0,
    racks: tuple[int, ...] | None = None,
) -> Algorithm:
    """The algorithm that costs the least."""
    able = [each for each in algorithms(operation) if each is not Algorithm.HIERARCHICAL or racks is not None]
    costs = {
        each: cost_ns(each, operation, group_size, size_bytes, network, chunks=chunks, root=root, racks=racks)
        for each in able
    }
    return min(able, key=lambda each: costs[each])
