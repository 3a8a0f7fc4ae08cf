"""What links carried in the measured time, links between switches by class, and how evenly each class is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from gradbed.experiments.conservation.counts import Counts, LinkBytes, LinkRows, Tally
from gradbed.topo.graph import Direction, Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.optical_electrical import (
    HYBRID,
    OPTICAL,
    PLANES,
    WAVELENGTH_BYTES,
    hybrid_name,
    optical_name,
    size_of,
)

# ---- The time in which traffic is measured ----


@dataclass(frozen=True)
class MeasurementWindow:
    """The time in which traffic is measured, with the link counts at both ends."""

    begin_ns: int
    """Begin on the engine's clock."""
    end_ns: int
    """End on the engine's clock."""
    before: LinkRows
    """Counts of every link direction at the begin."""
    after: LinkRows
    """Counts of every link direction at the end."""

    @classmethod
    def of(cls, carried: LinkBytes) -> MeasurementWindow | None:
        """Return the window of the counts; None where the times are not known (BMv2)."""
        begin_ns, end_ns = (
            next((row.time_ns for row in rows.values()), None) for rows in (carried.before, carried.after)
        )
        if begin_ns is None or end_ns is None or begin_ns == end_ns:
            return None
        return cls(begin_ns, end_ns, carried.before, carried.after)

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9

    def carried_bytes(self, direction: Direction, channel: int | None = None) -> int:
        """Return the bytes that came to the peer, by one of the link's channels or by all.

        What a link duplicates counts once.
        """
        first, last = self.before[direction], self.after[direction]
        if channel is not None:
            return last.channel_bytes[channel] - first.channel_bytes[channel]
        return last.bytes - last.duplicate_bytes - first.bytes + first.duplicate_bytes

    def copied_bytes(self, direction: Direction) -> int:
        """Return the bytes of duplicates that the link made."""
        return self.after[direction].duplicate_bytes - self.before[direction].duplicate_bytes

    def entered_bytes(self, direction: Direction) -> int:
        """Return the bytes that were handed to the link."""
        return self.after[direction].entered_bytes - self.before[direction].entered_bytes

    def under_way(self, direction: Direction) -> int:
        """Return the packets that were queued, being sent or in flight when the window began."""
        row = self.before[direction]
        return (row.queued or 0) + row.in_flight

    def capacity_bytes(self, model: LinkModel, longest_bytes: int, channel: int = 0) -> float | None:
        """Return what a link, or a time-multiplexed channel, can deliver in the window.

        The end of a packet whose beginning was sent before is not included.

        Args:
            longest_bytes: longest packet on the link.

        Returns:
            None if the link has no rate.
        """
        if not model.rate_bps:
            return None
        delay_ns = 1000 * model.delay_us
        sending_ns = open_ns(
            model, channel, self.begin_ns - delay_ns, self.end_ns - delay_ns, 8e9 * longest_bytes / model.rate_bps
        )
        return (sending_ns + 2000 * model.jitter_us) * model.rate_bps / 8e9


def open_ns(model: LinkModel, channel: int, begin_ns: int, end_ns: int, longest_ns: float) -> float:
    """Return the part of a time in which a channel may be sending (LinkModel.turn_us).

    What began to be sent just before the guard time takes as long as the longest packet.
    """
    if not model.turn_us or not channel:
        return end_ns - begin_ns
    turn_ns, others = 1000 * model.turn_us, model.channels - 1
    open_for_ns = min(turn_ns, turn_ns - 1000 * model.guard_us + longest_ns)
    turns = range(begin_ns // turn_ns, end_ns // turn_ns + 1)
    own = [turn * turn_ns for turn in turns if (turn + model.first_turn) % others == channel - 1]
    return sum(max(0.0, min(end_ns, start + open_for_ns) - max(begin_ns, start)) for start in own)


def turn_share(model: LinkModel, longest_ns: float) -> float:
    """Return the long-run fraction of the time in which a channel may be sending.

    In each turn whole packets of one length begin before the guard time.
    """
    if not model.turn_us:
        return 1.0
    turn_ns, open_for_ns = 1000 * model.turn_us, 1000 * (model.turn_us - model.guard_us)
    return min(turn_ns, -(-open_for_ns // longest_ns) * longest_ns) / turn_ns / (model.channels - 1)


# ---- Links between switches ----


LinkClass = Literal["mesh", "uplink", "downlink", "light-path"]
"""Class of a link direction between switches.

mesh: between hybrid switches. uplink, downlink: from a hybrid switch to an optical one and back, all wavelengths.
light-path: one wavelength of that, and what it becomes behind the optical switch.
"""

CLASSES: tuple[LinkClass, ...] = ("mesh", "uplink", "light-path")
"""Classes whose balance is reported."""

CHANNELS_OF_A_PORT = 8
"""Number of channels of a port in p4src/include/interconnect/load.p4."""


@dataclass(frozen=True)
class LinkLoad:
    """Load of one member of a link class, from the first packet to the last, without drops at its queue."""

    link_class: LinkClass
    name: str
    """Nodes of the direction; of a light path the optical switch, its fibre and the wavelength."""
    packets: int
    bytes: int
    measured_bytes: int | None = None
    """Bytes in the measured time; None: there is no such time."""
    capacity_bytes: float | None = None
    """Bytes that could have been carried in the measured time.

    None: the member has no rate of its own, or capacities are not known.
    """

    @property
    def load(self) -> float | None:
        """Carried bytes in the measured time as a fraction of the capacity."""
        if self.measured_bytes is None or not self.capacity_bytes:
            return None
        return self.measured_bytes / self.capacity_bytes


def link_loads(
    topology: Topology, counts: Counts, window: MeasurementWindow | None, frame_bytes: int
) -> Iterator[LinkLoad]:
    """Yield the load of every member of every class.

    Light paths have loads where each wavelength is a channel, fibres where they are a single one.

    Args:
        frame_bytes: longest frame of hosts.
    """
    n = size_of(topology)
    for link in topology.switch_links:
        for a, b in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
            link_class: LinkClass = "mesh"
            if OPTICAL in (topology.switch(a).tier, topology.switch(b).tier):
                link_class = "uplink" if topology.switch(b).tier == OPTICAL else "downlink"
            carried = counts.delivered.get((a, b), Tally())
            load = LinkLoad(link_class, f"{a} {b}", carried.packets, carried.bytes)
            if window is not None:
                length = frame_bytes + WAVELENGTH_BYTES * (link_class != "mesh")
                capacity = window.capacity_bytes(link.model, length) if link.model.channels == 1 else None
                load = replace(load, measured_bytes=window.carried_bytes((a, b)), capacity_bytes=capacity)
            yield load
    for x, y, plane, wavelength in product(range(n), range(n), range(PLANES), range(1, n)):
        # Out by fibre x + wavelength; fibres count from 1 (p4src/optical.p4).
        optical, fibre = optical_name(y + n * plane), 1 + (x + wavelength) % n
        cell = counts.cell(optical, "light", fibre * n + wavelength)
        load = LinkLoad("light-path", f"{optical} {fibre} {wavelength}", cell.packets, cell.bytes)
        direction = hybrid_name(x, y), optical
        model = topology.link(*direction).model
        if window is not None and model.channels > 1:
            load = replace(
                load,
                measured_bytes=window.carried_bytes(direction, wavelength),
                capacity_bytes=window.capacity_bytes(model, frame_bytes + WAVELENGTH_BYTES, wavelength),
            )
        yield load


def balance(values: Sequence[float]) -> tuple[float, float] | None:
    """Return (largest load over the mean, Jain's index); None if nothing was carried.

    Jain, Chiu and Hawe, DEC-TR-301, 1984.
    """
    total = sum(values)
    if not total:
        return None
    return max(values) * len(values) / total, total**2 / (len(values) * sum(value**2 for value in values))


def sent_disagreements(topology: Topology, counts: Counts) -> list[str]:
    """Return a line where a switch's count of packets to a neighbour differs from the link's count."""
    n = size_of(topology)
    lines = []
    for switch in topology.switches:
        counter, cells = ("sent", CHANNELS_OF_A_PORT) if switch.tier == HYBRID else ("light", n)
        if counts.has(switch.name, "port_out"):
            counter, cells = "port_out", 1
        for neighbour, port in topology.neighbours(switch.name).items():
            sent = sum(counts.cell(switch.name, counter, port * cells + cell).packets for cell in range(cells))
            effect = counts.effect(switch.name, neighbour)
            delivered = counts.delivered.get((switch.name, neighbour), Tally()) - effect.duplicates
            known = delivered.packets + effect.lost_packets
            if sent != known:
                lines.append(f"{switch.name} sent {sent} packets to {neighbour}, the link knows of {known}")
    return lines


def loss_by_cause(topology: Topology, counts: Counts) -> Mapping[str, int]:
    """Return the lost packets of the whole network by cause: queues, links, and what hybrid and optical switches
    dropped.

    "unswitched" is what came to a crossbar of Open vSwitch and did not leave it.
    """
    found = {
        "queues": sum(effect.queue_drops.packets for effect in counts.effects.values()),
        "links": sum(effect.losses.packets for effect in counts.effects.values()),
    }
    for switch in topology.switches:
        for name in ("dropped", "dark", "unknown_wavelength"):
            for index, tally in counts.counters.get(switch.name, {}).get(name, {}).items():
                cause = CAUSES[index] if name == "dropped" else name
                found[cause] = found.get(cause, 0) + tally.packets
        if counts.has(switch.name, "port_out"):
            came, left = (
                sum(tally.packets for tally in counts.counters[switch.name][name].values())
                for name in ("port_in", "port_out")
            )
            found["unswitched"] = found.get("unswitched", 0) + came - left
    return found


CAUSES = ("malformed", "stray", "ttl", "no_route", "no_way")
"""Causes of drops in hybrid switches, by number: Cause in p4src/interconnect.p4."""
