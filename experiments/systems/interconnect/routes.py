"""The controller's IPv4 routes as entries of p4src/forward.p4 (docs/entries.md)."""

from __future__ import annotations

from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import routing_plan, shortest_routes
from gradbed.topo.graph import Topology


def entries(topology: Topology, p4info: object) -> Plan:
    return routing_plan(topology, shortest_routes(topology), {switch.name: "forward" for switch in topology.switches})
