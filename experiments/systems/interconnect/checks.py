"""What switches of the interconnect may have done to packets, by their counters and by what links brought them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.accounts.accounting import Tally
from experiments.accounts.counts import Counts
from experiments.configuration.faults import Fault, LinkFault, restarted_switches
from experiments.systems.interconnect.links import loss_by_cause
from topo.graph import Topology
from topo.shapes.optical_electrical import HYBRID

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
"""By cause of experiments.systems.interconnect.links.loss_by_cause."""


def unexplained_drops(topology: Topology, counts: Counts, faults: Sequence[Fault]) -> list[str]:
    """One line for each cause for which switches dropped packets though no fault explains it.

    Light that leaves an optical switch by the wrong fibre, or has the wrong wavelength, comes to a hybrid switch that
    it is not for (stray). Links that go down may leave packets without a way; a restarted switch has no entries for a
    while, and then takes no packet as its own.
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
    """One line for each P4 switch to which links brought more or fewer packets than it says it sent and dropped."""
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
