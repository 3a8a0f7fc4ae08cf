"""Which links are hops: all but those inside a server, between a host and the small switch that relays for it."""

from __future__ import annotations

from gradbed.topo.graph import Link, Topology

RELAY = "relay"
"""Tier of a switch that is the forwarding part of a server (gradbed.topo.shapes.bcube)."""


def is_hop(topology: Topology, link: Link) -> bool:
    """Whether crossing the link costs a hop."""
    ends = (link.a.node, link.b.node)
    hosts = [end for end in ends if topology.is_host(end)]
    return not hosts or all(topology.switch(end).tier != RELAY for end in ends if end not in hosts)
