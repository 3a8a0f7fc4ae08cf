"""What agents' own counts say of each host's link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradbed.emulation.switches.fabric_layout import interface_name
from gradbed.topo.graph import Endpoint, Topology


def opened_interfaces(
    topology: Topology, final: Mapping[tuple[int, str], Mapping[str, Any]]
) -> Iterator[tuple[Endpoint, Endpoint, Sequence[Mapping[str, Any]]]]:
    """For each link of a host that agents opened: the host's end, the switch's, and what it carried for each of them.

    final: the last statistics of every agent."""
    opened: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for statistics in final.values():
        for name, carried in statistics.get("interfaces", {}).items():
            opened[name].append(carried)
    for link in topology.host_links:
        host, switch = (link.a, link.b) if topology.is_host(link.a.node) else (link.b, link.a)
        if found := opened.get(interface_name(host)):
            yield host, switch, found
