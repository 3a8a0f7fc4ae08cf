"""What a message costs on an idle network: packets, links in a row, store and forward.

The packets are RoCEv2's as hosts' cards make them (InfiniBand Architecture Specification, volume 1, sections 5 and 9,
and annex A17): Ethernet 14 bytes, IPv4 20, UDP 8, BTH 12, payload, ICRC 4; a message's first packet has a RETH of 16
bytes, its last 4 bytes of immediate data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import networkx

from gradbed.topo.graph import Topology

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


class Packets(NamedTuple):
    """How a message is cut. acknowledgement_bytes: 78 with selective repeat or dctcp, which tell more."""

    mtu_bytes: int = 4096
    acknowledge_every: int = 4
    acknowledgement_bytes: int = ACKNOWLEDGEMENT_BYTES

    def count(self, size_bytes: int) -> int:
        """Of a message's packets: one at least."""
        return max(1, -(-size_bytes // self.mtu_bytes))

    def frames(self, size_bytes: int) -> tuple[int, int, int]:
        """Bytes of the first frame, of each in the middle, and of the last one. Of one frame: the first alone."""
        rest = size_bytes - (self.count(size_bytes) - 1) * self.mtu_bytes
        last = HEADER_BYTES + rest + -rest % 4 + IMMEDIATE_BYTES
        whole = HEADER_BYTES + self.mtu_bytes + -self.mtu_bytes % 4
        return (last + RETH_BYTES if self.count(size_bytes) == 1 else whole + RETH_BYTES), whole, last

    def wire_bytes(self, size_bytes: int) -> int:
        """Of all its frames."""
        count = self.count(size_bytes)
        first, whole, last = self.frames(size_bytes)
        return first if count == 1 else first + (count - 2) * whole + last

    def acknowledgements_bytes(self, size_bytes: int) -> int:
        """Of the frames that come back for it."""
        return -(-self.count(size_bytes) // self.acknowledge_every) * self.acknowledgement_bytes


USUAL_PACKETS = Packets()


@dataclass(frozen=True)
class Network:
    """An idle network as the ranks of a group see it. path: of the places of sender and receiver in the group."""

    path: Callable[[int, int], Path]
    packets: Packets = USUAL_PACKETS

    def message_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """From the first bit sent to the last one received, while the sender's link carries as many acknowledgements
        for others."""
        times = _times(self.path(sender, receiver), self.packets, size_bytes)
        return times.message_ns + times.acknowledging_ns

    def sending_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """So long a message and as many acknowledgements for others keep the slowest link of its path busy."""
        times = _times(self.path(sender, receiver), self.packets, size_bytes)
        return times.data_ns + times.acknowledging_ns

    def latency_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """What message_ns is more than sending_ns: delays, and a packet's way through switches."""
        times = _times(self.path(sender, receiver), self.packets, size_bytes)
        return times.message_ns - times.data_ns

    def data_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """So long the message alone keeps the slowest link of its path busy."""
        return _times(self.path(sender, receiver), self.packets, size_bytes).data_ns

    def acknowledging_ns(self, sender: int, receiver: int, size_bytes: int) -> float:
        """So long acknowledgements of a message keep the slowest link of the path busy."""
        return _times(self.path(sender, receiver), self.packets, size_bytes).acknowledging_ns


class _Times(NamedTuple):
    message_ns: float
    data_ns: float
    acknowledging_ns: float


@lru_cache(65536)
def _times(path: Path, packets: Packets, size_bytes: int) -> _Times:
    data, acknowledgements = packets.wire_bytes(size_bytes), packets.acknowledgements_bytes(size_bytes)
    return _Times(
        message_ns(path, packets, size_bytes),
        max(hop.sending_ns(data) for hop in path),
        max(hop.sending_ns(acknowledgements) for hop in path),
    )


def message_ns(path: Path, packets: Packets, size_bytes: int) -> float:
    """From the first bit sent to the last one received, of a message that is alone.

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


def star(rate_bps: int, delay_ns: float = 0.0, packets: Packets = USUAL_PACKETS) -> Network:
    """All ranks on one switch. delay_ns: of each link."""
    path = (Hop(rate_bps, delay_ns), Hop(rate_bps, delay_ns))
    return Network(lambda sender, receiver: path, packets)


def of_topology(topology: Topology, hosts: Sequence[str], packets: Packets = USUAL_PACKETS) -> Network:
    """The ranks' hosts in a network, over shortest paths (any of several: those of a fat-tree are alike)."""

    @lru_cache(65536)
    def hops(start: str, end: str) -> Path:
        nodes = networkx.shortest_path(topology.graph, start, end)
        models = [topology.link(a, b).model for a, b in pairwise(nodes)]
        return tuple(Hop(model.rate_bps, model.delay_us * 1e3) for model in models)

    switches = [tuple(topology.neighbours(host)) for host in hosts]

    def path(sender: int, receiver: int) -> Path:
        """Of hosts with one link each the ways between their switches are looked for once."""
        start, end = hosts[sender], hosts[receiver]
        if len(switches[sender]) > 1 or len(switches[receiver]) > 1:
            return hops(start, end)
        (near,), (far,) = switches[sender], switches[receiver]
        return hops(start, near) + (hops(near, far) if near != far else ()) + hops(far, end)

    return Network(path, packets)
