"""The way of a packet through a network, as the plan in force has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Lpm, Match, Output, Plan, SwitchPlan
from gradbed.controller.planning.text import entry_text, flow_text
from gradbed.topo.graph import Topology

ROUTES = "ipv4_routes"


@dataclass(frozen=True)
class Hop:
    """A switch on the way, the entry or flow that decides there, and where it leads."""

    switch: str
    entry: str
    next_node: str
    is_p4: bool


def path_of(topology: Topology, plan: Plan, source: str, destination: str) -> list[Hop]:
    """For plain IPv4 packets from one host to another. UserError where a switch has no route, or they go round."""
    address = int(IPv4Address(topology.host(destination).ip))
    hops: list[Hop] = []
    node = topology.attachment(source).name
    while not topology.is_host(node):
        if node in {hop.switch for hop in hops}:
            raise UserError(f"packets go round in circles: {' -> '.join(hop.switch for hop in hops)} -> {node}")
        routes = [each for each in _routes(plan[node]) if _covers(each[0], address)]
        if not routes:
            raise UserError(f"{node} has no route to {destination}")
        _, port, text = max(routes, key=lambda route: route[0].prefix_bits)
        neighbours = {topology.port(node, other): other for other in topology.graph[node]}
        hops.append(Hop(node, text, neighbours[port], plan[node].kind == "p4"))
        node = neighbours[port]
    return hops


def _routes(switch: SwitchPlan) -> Iterator[tuple[Lpm, int, str]]:
    """Prefix, port and text of each."""
    for entry in switch.entries:
        if entry.table == ROUTES and "port" in entry.params:
            yield _prefix(entry.match["hdr.ipv4.dst_addr"]), entry.params["port"], entry_text(entry)
    for flow in switch.flows:
        ports = [action.output for action in flow.actions if isinstance(action, Output)]
        if ports and "ipv4_dst" in flow.match and "ip_proto" not in flow.match:
            yield _prefix(flow.match["ipv4_dst"]), ports[0], flow_text(flow)


def _prefix(match: Match) -> Lpm:
    """An exact address is a prefix of all its bits."""
    if isinstance(match, int):
        return Lpm(value=match, prefix_bits=32)
    assert isinstance(match, Lpm)
    return match


def _covers(prefix: Lpm, address: int) -> bool:
    return prefix.value >> (32 - prefix.prefix_bits) == address >> (32 - prefix.prefix_bits)
