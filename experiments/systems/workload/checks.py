"""Checks that hold for every program: packet marks, hosts, links and switches count the same packets.

Marks identify each packet (hosts/traffic/frames.py); interfaces count frames beneath the agents; links and switches
count what they did. None of them knows of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.conservation.host_links import HostAccount, disagreements, first_lines
from gradbed.experiments.traffic.consistency import mark_disagreements
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.topo.graph import Topology


def packet_failures(
    topology: Topology, counts: Counts, accounts: Sequence[HostAccount], results: TrafficResults
) -> list[str]:
    """Return a line for each disagreement, the first of them; for a network in which no packet is in flight any
    more.

    Args:
        accounts: of the hosts whose agents have reported their counts.
    """
    return first_lines(
        [
            *disagreements(accounts),
            *mark_disagreements(results),
            *_copies(counts, results),
        ]
    )


def _copies(counts: Counts, results: TrafficResults) -> list[str]:
    """Report packets that arrived more often than they were sent or copied."""
    flows = results.flows
    lines = [
        f"{sender}: of a flow with {sent} packets {received} arrived at {receiver}"
        for sender, receiver, sent, received in zip(
            *(flows[name].tolist() for name in ("sender", "receiver", "packets", "received_packets")), strict=True
        )
        if received > sent
    ]
    if counts.devices:
        made = sum(_copies_of(device) for device in counts.devices.values())
        made += sum(effect.duplicates.packets for effect in counts.effects.values())
        if results.duplicates > made:
            lines.append(f"{results.duplicates} packets arrived again, but switches and links made {made} copies")
    return lines


def _copies_of(device: Mapping[str, Any]) -> int:
    return int(device["cloned"] + device["copied"])
