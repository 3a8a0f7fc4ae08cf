"""The links between switches by class, and how evenly each class is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from gradbed.experiments.accounts.accounting import Tally
from gradbed.experiments.accounts.counts import Counts
from gradbed.experiments.systems.interconnect.window import Window
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import (
    HYBRID,
    OPTICAL,
    PLANES,
    WAVELENGTH_BYTES,
    hybrid_name,
    optical_name,
    size_of,
)

LinkClass = Literal["mesh", "uplink", "downlink", "light-path"]
"""mesh: a direction between hybrid switches. uplink, downlink: from a hybrid switch to an optical one and back, all
wavelengths. light-path: one wavelength of that, and what it becomes behind the optical switch."""

CLASSES: tuple[LinkClass, ...] = ("mesh", "uplink", "light-path")
"""Of which it is told how evenly they are loaded."""

CHANNELS_OF_A_PORT = 8
"""p4src/include/interconnect/load.p4."""


@dataclass(frozen=True)
class Load:
    """What one member of a class carried from the first packet to the last, drops at its queue not included.

    measured_bytes: in the measured time (None: there is no such time), of capacity_bytes that it could have carried
    (None: it has no rate of its own, or capacities are not known).
    """

    link_class: LinkClass
    name: str
    packets: int
    bytes: int
    measured_bytes: int | None = None
    capacity_bytes: float | None = None

    @property
    def load(self) -> float | None:
        """In the measured time, of what can be carried in it."""
        if self.measured_bytes is None or not self.capacity_bytes:
            return None
        return self.measured_bytes / self.capacity_bytes


def loads(topology: Topology, counts: Counts, window: Window | None, frame_bytes: int) -> Iterator[Load]:
    """Of every member of every class. Light paths have loads where each wavelength is a channel, fibres where they
    are one. frame_bytes: the longest frame of hosts."""
    n = size_of(topology)
    for link in topology.switch_links:
        for a, b in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
            link_class: LinkClass = "mesh"
            if OPTICAL in (topology.switch(a).tier, topology.switch(b).tier):
                link_class = "uplink" if topology.switch(b).tier == OPTICAL else "downlink"
            carried = counts.delivered.get((a, b), Tally())
            load = Load(link_class, f"{a} {b}", carried.packets, carried.bytes)
            if window is not None:
                length = frame_bytes + WAVELENGTH_BYTES * (link_class != "mesh")
                capacity = window.capacity_bytes(link.model, length) if link.model.channels == 1 else None
                load = replace(load, measured_bytes=window.carried_bytes((a, b)), capacity_bytes=capacity)
            yield load
    for x, y, plane, wavelength in product(range(n), range(n), range(PLANES), range(1, n)):
        # Out by fibre x + wavelength; fibres count from 1 (p4src/optical.p4).
        optical, fibre = optical_name(y + n * plane), 1 + (x + wavelength) % n
        cell = counts.cell(optical, "light", fibre * n + wavelength)
        load = Load("light-path", f"{optical} {fibre} {wavelength}", cell.packets, cell.bytes)
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
    """(largest over mean, Jain's index); None if nothing was carried."""
    total = sum(values)
    if not total:
        return None
    return max(values) * len(values) / total, total**2 / (len(values) * sum(value**2 for value in values))


def disagreements(topology: Topology, counts: Counts) -> list[str]:
    """What hybrid and optical switches say that they sent to each neighbour, against what the links made of it."""
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
    """Packets, all over the network: queues, links, and what hybrid and optical switches dropped. unswitched: what
    came to a crossbar of Open vSwitch and did not leave it."""
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
"""p4src/interconnect.p4, Cause."""
