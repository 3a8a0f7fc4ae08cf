"""Is every packet accounted for that went into a switch? For any program, on switches that tell what they did."""

from __future__ import annotations

from gradbed.experiments.accounts.counts import Counts
from gradbed.topo.graph import Topology

ENDS = (
    "no_program_drops",
    "swap_drops",
    "ingress_drops",
    "egress_drops",
    "no_port_drops",
    "no_group_drops",
    "priority_drops",
    "buffer_drops",
    "packet_ins",
)
"""Of gradbed.switch.engine.DeviceStatistics: where packets end that do not leave by a link."""


def switch_disagreements(topology: Topology, counts: Counts) -> list[str]:
    """One line for each switch at which this does not hold, once nothing is on its way (packets):

    from its links + from the controller + cloned + copied = offered to its links + dropped + to the controller
    """
    lines = []
    for switch, device in counts.devices.items():
        neighbours = topology.neighbours(switch)
        entered = sum(counts.delivered[other, switch].packets for other in neighbours)
        entered += device["packet_outs"]
        made = device["cloned"] + device["copied"]
        offered = sum(_offered(counts, switch, other) for other in neighbours)
        ended = sum(device[name] for name in ENDS)
        if entered + made != offered + ended:
            lines.append(
                f"{switch}: {entered} packets came and {made} copies were made, but {offered} left and {ended} ended "
                "in it"
            )
    return lines


def pause_disagreements(counts: Counts) -> list[str]:
    """One line for each direction of a link whose ends have not counted the same pauses, by priority."""
    return [
        f"{sender} to {receiver}: {receiver} sent {list(pauses.sent)} pauses, {sender} took {list(pauses.received)}"
        for (sender, receiver), effect in counts.effects.items()
        if (pauses := effect.pauses).sent != pauses.received
    ]


def _offered(counts: Counts, switch: str, other: str) -> int:
    effect = counts.effect(switch, other)
    delivered = counts.delivered[switch, other].packets - effect.duplicates.packets
    return delivered + effect.lost_packets
