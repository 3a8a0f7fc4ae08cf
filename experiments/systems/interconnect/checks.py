"""Check switches of the interconnect by their counters and by what links delivered, and traffic against
capacities.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

from gradbed.experiments.configuration.faults import Fault, LinkChange, LinkFault, restarted_switches
from gradbed.experiments.conservation.counts import Counts, Tally
from gradbed.experiments.systems.interconnect.links import (
    CHANNELS_OF_A_PORT,
    LinkLoad,
    MeasurementWindow,
    loss_by_cause,
)
from gradbed.experiments.systems.interconnect.metrics import arrived_bytes, host_direction
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import (
    HYBRID,
    PLANES,
    WAVELENGTH_BYTES,
    hybrid_name,
    mesh_port,
    place_of,
    size_of,
    uplink_port,
)

# ---- Switches ----


WORDS: Mapping[str, str] = {
    "malformed": "malformed",
    "stray": "stray: not for the switch that they came to",
    "ttl": "time to live over",
    "no_route": "no route",
    "no_way": "no link up",
    "dark": "no light at an optical switch",
    "unknown_wavelength": "a wavelength that the optical switch does not have",
    "unswitched": "not passed on by an optical switch",
}
"""Description of each cause of gradbed.experiments.systems.interconnect.links.loss_by_cause."""


def unexplained_drops(topology: Topology, counts: Counts, faults: Sequence[Fault]) -> list[str]:
    """Return a line for each cause for which switches dropped packets although no fault explains it.

    Light that leaves an optical switch by the wrong fibre, or has the wrong wavelength, comes to a hybrid switch that
    it is not for (stray). Links that go down may leave packets without a path; a restarted switch has no entries for
    a while, and then takes no packet as its own.
    """
    explained = {"queues", "links"}
    if any(isinstance(fault, LinkFault) for fault in faults):
        explained |= {"ttl", "no_route", "no_way", "unswitched"}
    if restarted_switches(faults):
        explained |= {"stray", "ttl", "no_route", "no_way", "unswitched"}
    return [
        f"switches dropped {packets} packets ({WORDS[cause]}), and no fault explains it"
        for cause, packets in loss_by_cause(topology, counts).items()
        if packets and cause not in explained
    ]


def unexplained_ends(topology: Topology, counts: Counts) -> list[str]:
    """Return a line for each P4 switch that received more or fewer packets than it sent and dropped."""
    lines = []
    for switch in topology.switches:
        counters = counts.counters.get(switch.name, {})
        if "port_out" in counters:
            continue  # Open vSwitch: what it does not pass on is a cause of its own
        names = ("sent", "dropped") if switch.tier == HYBRID else ("light", "dark", "unknown_wavelength")
        neighbours = topology.neighbours(switch.name)
        came = sum(counts.delivered.get((other, switch.name), Tally()).packets for other in neighbours)
        ended = sum(tally.packets for name in names for tally in counters.get(name, {}).values())
        if came != ended:
            lines.append(f"{switch.name} got {came} packets, and sent or dropped {ended}")
    return lines


BY_CHANCE = frozenset({"least-loaded", "random-plane", "mesh-first"})
"""Policies under which both planes are equally likely: by a coin, or by loads, which are alike."""

DEVIATIONS = 6.0
"""Standard deviations of a fair coin's binomial distribution: exceeded once in 500 million times."""


def wrong_ways(
    topology: Topology, counts: Counts, results: TrafficResults, policy: str, flowlet_us: int
) -> Iterator[str]:
    """Yield a line for each path that hybrid switches cannot have taken under their policy, while no link is down.

    Whatever the policy, a packet takes light once if it leaves its unit, and a mesh link once if its sub-unit
    changes. Losses take packets away, and duplicates add some; of the warm-up only the number of packets is known.
    """
    n, sent = size_of(topology), _Sent(topology, counts)
    place = {host.name: place_of(topology.attachment(host.name).name) for host in topology.hosts}
    light: Counter[int] = Counter()
    mesh: Counter[tuple[int, int, int]] = Counter()
    flows = results.flows
    for sender, receiver, packets in zip(
        *(flows[name].tolist() for name in ("sender", "receiver", "packets")), strict=True
    ):
        (x, y), (to_x, to_y) = place[sender], place[receiver]
        light[x] += packets * (x != to_x)
        mesh[x, y, to_y] += packets * (y != to_y)
    warm_up = sum(report["warm_up_sent"] for report in results.reports.values())
    lossy = any(effect.lost_packets for effect in counts.effects.values())
    copied = any(effect.duplicates.packets for effect in counts.effects.values())

    def line(what: str, found: int, measured: int) -> Iterator[str]:
        if (found < measured and not lossy) or (found > measured + warm_up and not copied):
            yield f"{what} took {found} packets, of {measured} after the warm-up and {warm_up} in it"

    for x in range(n):
        found = sum(sent.light(x, y, plane) for y, plane in product(range(n), range(PLANES)))
        yield from line(f"light from unit {x}", found, light[x])
    of_mesh = {(x, y, other): sent.mesh(x, y, other) for x in range(n) for y, other in permutations(range(n), 2)}
    yield from line("mesh links", sum(of_mesh.values()), sum(mesh.values()))
    if policy == "mesh-first":
        for (x, y, other), found in of_mesh.items():
            yield from line(
                f"the mesh link from {hybrid_name(x, y)} to {hybrid_name(x, other)}", found, mesh[x, y, other]
            )
    for x, y, channel in product(range(n), range(n), range(CHANNELS_OF_A_PORT)):
        first, second = (sent.channel(x, y, plane, channel) for plane in range(PLANES))
        if policy == "fixed-plane" and second:
            yield f"{hybrid_name(x, y)} sent {second} packets by its second plane, though its plane is fixed"
        allowed = DEVIATIONS * math.sqrt(first + second) + DEVIATIONS
        if policy in BY_CHANCE and not flowlet_us and abs(first - second) > allowed:
            yield f"{hybrid_name(x, y)} sent {first} and {second} packets by its planes, no work of chance"
    if policy == "ecmp" and results.reordered and not any(link.model.reorder for link in topology.links):
        yield f"{results.reordered} packets overtook others of their flow, though each flow has one way"


class _Sent:
    """Packets that hybrid switches sent by their counters, including those that then found a queue full."""

    def __init__(self, topology: Topology, counts: Counts) -> None:
        self._n, self._counts = size_of(topology), counts

    def channel(self, x: int, y: int, plane: int, channel: int) -> int:
        return self._cell(x, y, uplink_port(self._n, plane), channel)

    def light(self, x: int, y: int, plane: int) -> int:
        return sum(self.channel(x, y, plane, channel) for channel in range(CHANNELS_OF_A_PORT))

    def mesh(self, x: int, y: int, other: int) -> int:
        port = mesh_port(self._n, y, other)
        return sum(self._cell(x, y, port, channel) for channel in range(CHANNELS_OF_A_PORT))

    def _cell(self, x: int, y: int, port: int, channel: int) -> int:
        return self._counts.cell(hybrid_name(x, y), "sent", port * CHANNELS_OF_A_PORT + channel).packets


def contradictions(values: Mapping[str, float | None], loads: Sequence[float]) -> Iterator[str]:
    """Yield a line for each metric that contradicts others.

    Args:
        loads: of the links that have one.
    """
    for name in ("mesh", "uplink", "light_path"):
        most, fairness = values[f"{name}_max_over_mean"], values[f"{name}_fairness"]
        # Jain's index is at least mean / max, since the sum of squares is at most max times the sum.
        if most is not None and fairness is not None and not 1 / most <= fairness * (1 + 1e-9) <= 1 + 1e-6:
            yield f"{name}: {most:g} times the mean at most, which is no fairness of {fairness:g}"
    largest = values["largest_link_load"]
    if loads and (largest is None or abs(largest - max(loads)) > 1e-9):
        yield f"the largest load of a link is {max(loads):g}, not {largest}"
    accepted, bound, offered = values["accepted_load"], values["accepted_bound"], values["offered_load"]
    if accepted is not None and bound is not None and offered is not None and bound > max(1.05, accepted):
        yield f"{bound:g} of the hosts' rate is told to be possible, which is more than their links carry"


# ---- Physics ----


BITS_OF_A_SUM = 1e-9
"""Relative rounding error of sums and linear programs."""


def impossible(
    values: Mapping[str, Any],
    loads: Sequence[LinkLoad],
    topology: Topology,
    window: MeasurementWindow,
    frame_bytes: int,
) -> Iterator[str]:
    """Yield a line for each load above the capacity of its link, and for more traffic than can arrive.

    A link may also carry the end of a packet whose beginning was sent before the window.
    """
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
    found: TrafficResults, topology: Topology, window: MeasurementWindow, frame_bytes: int, sends_packets: bool
) -> Iterator[str]:
    """Yield a line for each host whose bytes of the measured time differ from those of its link.

    Both must have the same clock. What comes or goes at the very first or last nanosecond may be in it for one of
    them alone.

    Args:
        sends_packets: traffic is single packets, not flows of many.
    """
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
    """Return the bytes sent, by sender and receiver."""
    total: dict[tuple[str, str], int] = defaultdict(int)
    flows = (found.flows[name].tolist() for name in ("sender", "receiver", "bytes"))
    for sender, receiver, size in zip(*flows, strict=True):
        total[sender, receiver] += size
    return total


def changes_rates(faults: Sequence[Fault]) -> bool:
    """Return whether faults change rates, delays or queues, so that the topology does not describe the links."""
    return any(isinstance(fault, LinkChange) for fault in faults)
