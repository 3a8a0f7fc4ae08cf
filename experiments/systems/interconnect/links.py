"""The links between switches by class, and how evenly each class is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.accounting import Tally
from experiments.counts import Counts
from topo.graph import Topology
from topo.shapes.optical_electrical import HYBRID, OPTICAL, light_links, size_of

LinkClass = Literal["mesh", "uplink", "light-path"]
"""mesh: a direction between hybrid switches. uplink: from a hybrid switch to an optical one, all wavelengths.
light-path: one wavelength of that, and what it becomes behind the optical switch."""

CLASSES: tuple[LinkClass, ...] = ("mesh", "uplink", "light-path")

CHANNELS_OF_A_PORT = 8
"""p4src/include/interconnect/load.p4."""


@dataclass(frozen=True)
class Load:
    """What one member of a class carried, in packets and bytes, drops at its queue not included."""

    link_class: LinkClass
    name: str
    packets: int
    bytes: int


def loads(topology: Topology, counts: Counts) -> Iterator[Load]:
    """Of every member of every class. Light paths are known where each wavelength is a channel."""
    n = size_of(topology)
    for link in topology.switch_links:
        for a, b in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
            if topology.switch(a).tier == OPTICAL:
                continue
            carried = counts.delivered.get((a, b), Tally())
            link_class: LinkClass = "mesh" if topology.switch(b).tier == HYBRID else "uplink"
            yield Load(link_class, f"{a} {b}", carried.packets, carried.bytes)
    for switch in topology.switches:
        if switch.tier == OPTICAL:
            # Fibres out count from 1 (p4src/optical.p4).
            for fibre in range(1, n + 1):
                for wavelength in range(1, n):
                    cell = counts.cell(switch.name, "light", fibre * n + wavelength)
                    yield Load("light-path", f"{switch.name} {fibre} {wavelength}", cell.packets, cell.bytes)


def light_share(topology: Topology) -> float | None:
    """What a light path can carry, of the link rate: all, or of circuits its part of the time. None: light paths have
    no rate of their own, since a fibre is one channel."""
    model = topology.link(*next(iter(light_links(topology)))).model
    if model.channels == 1:
        return None
    return (1 - model.guard_us / model.turn_us) / (model.channels - 1) if model.turn_us else 1.0


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
            known = (delivered + effect.losses + effect.queue_drops).packets
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
