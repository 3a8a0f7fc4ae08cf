"""What physics forbids, and hosts and links that tell different things of the measured time: the run has failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradbed.experiments.configuration.faults import Fault, LinkChange
from gradbed.experiments.systems.interconnect.links import Load
from gradbed.experiments.systems.interconnect.metrics import arrived_bytes, host_direction
from gradbed.experiments.systems.interconnect.window import Window
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import WAVELENGTH_BYTES

BITS_OF_A_SUM = 1e-9
"""Of rounding, in sums and linear programs; a share."""


def impossible(
    values: Mapping[str, Any], loads: Sequence[Load], topology: Topology, window: Window, frame_bytes: int
) -> Iterator[str]:
    """Loads above what a link can carry and the end of a packet that was being sent, and more than can arrive."""
    for row in loads:
        most = (row.capacity_bytes or 0.0) + frame_bytes + WAVELENGTH_BYTES
        if row.capacity_bytes is not None and (row.measured_bytes or 0) > most * (1 + BITS_OF_A_SUM):
            yield f"{row.link_class} {row.name} carried {row.measured_bytes} bytes where it can carry {most:.0f}"
    for link in topology.host_links:
        for direction in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
            capacity, carried = window.capacity_bytes(link.model, frame_bytes), window.carried_bytes(direction)
            if capacity is not None and carried > (capacity + frame_bytes) * (1 + BITS_OF_A_SUM):
                yield f"{' '.join(direction)} carried {carried} bytes where it can carry {capacity + frame_bytes:.0f}"
    accepted, bound = values["accepted_load"], values["accepted_bound"]
    if accepted is not None and bound is not None and accepted > bound * (1 + BITS_OF_A_SUM):
        yield f"{accepted:.4f} of the hosts' rate was accepted, where {bound:.4f} is the most that could be"


def differences(
    found: TrafficResults, topology: Topology, window: Window, frame_bytes: int, sends_packets: bool
) -> Iterator[str]:
    """Between hosts and their links, in bytes of the measured time; on a clock that both have. What comes or goes at
    its very first or last nanosecond may be in it for one of them alone. sends_packets: not flows of many."""
    sent: dict[str, int] = defaultdict(int)
    for (sender, _), size in sent_by_pair(found).items():
        sent[sender] += size
    for host, report in found.reports.items():
        pairs = [
            (
                "received",
                report["measured_bytes"] + report["measured_copy_bytes"],
                arrived_bytes(topology, window, host),
            )
        ]
        if sends_packets:
            pairs.append(("sent", sent[host], window.entered_bytes(host_direction(topology, host))))
        for word, by_host, by_link in pairs:
            if abs(by_host - by_link) > 4 * frame_bytes:
                yield f"{host} {word} {by_host} bytes in the measured time, its link knows of {by_link}"


def sent_by_pair(found: TrafficResults) -> dict[tuple[str, str], int]:
    """Bytes by sender and receiver."""
    total: dict[tuple[str, str], int] = defaultdict(int)
    flows = (found.flows[name].tolist() for name in ("sender", "receiver", "bytes"))
    for sender, receiver, size in zip(*flows, strict=True):
        total[sender, receiver] += size
    return total


def changes_rates(faults: Sequence[Fault]) -> bool:
    """Whether links have other rates, delays or queues after a while, so that the topology does not tell."""
    return any(isinstance(fault, LinkChange) for fault in faults)
