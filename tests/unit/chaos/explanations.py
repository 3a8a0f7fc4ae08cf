"""What a schedule of faults explains, said by nothing but the schedule and the graph of the network."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import networkx

from gradbed.experiments.configuration.faults import AgentFault, Fault, LinkFault
from gradbed.topo.graph import Topology

Cause = Literal["killed", "anew", "apart"]
"""An agent was ended and stays so; one was ended and began anew, without what it knew; at the end some host that has
an agent has no way to another."""


def causes(faults: Sequence[Fault], topology: Topology, hosts: Collection[str]) -> set[Cause]:
    """hosts: that have agents."""
    last: dict[str, str] = {}
    graph = networkx.Graph((link.a.node, link.b.node) for link in topology.links)
    found: set[Cause] = set()
    for fault in sorted(faults, key=lambda each: each.at_ms):
        if isinstance(fault, AgentFault):
            last[fault.agent] = fault.fault
        elif isinstance(fault, LinkFault) and fault.fault == "link-down":
            graph.remove_edges_from([fault.link])
        elif isinstance(fault, LinkFault):
            graph.add_edge(*fault.link)
    if "agent-stop" in last.values():
        found.add("killed")
    if "agent-start" in last.values():
        found.add("anew")
    reached = networkx.node_connected_component(graph, min(hosts))
    return found if set(hosts) <= reached else {*found, "apart"}
