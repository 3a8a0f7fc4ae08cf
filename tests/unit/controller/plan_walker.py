"""Follows packets through a plan, with the decisions of p4src/aggregation.p4 and its forwarding."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from gradbed.controller.planning.plan import Lpm, Plan, TableEntry
from gradbed.formats.aggregation import DIRECT, Designation
from gradbed.topo.graph import Topology

IPV4_DST = "hdr.ipv4.dst_addr"
SWITCH_NUMBER = "hdr.gradient.switch_number"
MAX_HOPS = 32


@dataclass(frozen=True)
class Arrival:
    """Where a packet came to rest: a host, or a switch that dropped it (port 0), with the way there and the switches
    that summed it."""

    node: str
    path: tuple[str, ...]
    dst_mac: str
    summed_at: tuple[str, ...] = ()


class PlanWalker:
    def __init__(self, topology: Topology, plan: Plan) -> None:
        self.topology = topology
        self.tables: dict[str, dict[str, list[TableEntry]]] = {}
        self.groups = {
            name: {group.id: group.ports for group in switch.groups} for name, switch in plan.switches.items()
        }
        for name, switch in plan.switches.items():
            tables = self.tables.setdefault(name, {})
            for entry in switch.entries:
                tables.setdefault(entry.table, []).append(entry)
        self.node_at = {
            (end.node, end.port): link.other(end.node).node for link in topology.links for end in (link.a, link.b)
        }

    def exact(self, switch: str, table: str, **key: int) -> TableEntry | None:
        wanted = {field.replace("__", "."): value for field, value in key.items()}
        found = [e for e in self.tables[switch].get(table, ()) if dict(e.match) == wanted]
        assert len(found) <= 1
        return found[0] if found else None

    def longest_prefix(self, switch: str, address: int) -> TableEntry | None:
        best: TableEntry | None = None
        for entry in self.tables[switch].get("ipv4_routes", ()):
            prefix: Any = entry.match[IPV4_DST]
            assert isinstance(prefix, Lpm)
            shift = 32 - prefix.prefix_bits
            longer = best is None or prefix.prefix_bits > best.match[IPV4_DST].prefix_bits  # type: ignore[union-attr]
            if address >> shift == prefix.value >> shift and longer:
                best = entry
        return best

    def send(
        self,
        source: str,
        destination: str,
        job: int | None = None,
        label: Designation = DIRECT,
        acknowledgement: bool = False,
    ) -> Arrival:
        """A packet from host to host; with a job it is a gradient packet with this label."""
        node, path = self.topology.attachment(source).name, [source]
        dst_mac = self.topology.host(source).gateway_mac
        address = int(IPv4Address(self.topology.host(destination).ip))
        summed_at: tuple[str, ...] = ()
        levels = [number for number in (label.switch_number, label.next_switch) if number]
        while len(path) < MAX_HOPS:
            path.append(node)
            entry = None
            if job is not None and not acknowledgement:
                role = self.exact(node, "roles", hdr__gradient__job=job)
                if role is not None and levels and role.params["switch_number"] == levels[0]:
                    summed_at = (*summed_at, node)
                    del levels[0]
                if levels:
                    entry = self.exact(node, "designated_routes", hdr__gradient__switch_number=levels[0])
            if entry is None:
                entry = self.longest_prefix(node, address)
                if entry is None:
                    return Arrival(node, tuple(path), dst_mac, summed_at)
                # `forward` makes the MAC that brought it here the source: it must be this switch's own, unless
                # the packet came along designated routes, which leave MACs alone.
                if not summed_at:
                    assert dst_mac == self.topology.switch(node).mac
                dst_mac = entry.params["dst_mac"].to_bytes(6, "big").hex(":")
            node = self.node_at[node, entry.params["port"]]
            if self.topology.is_host(node):
                return Arrival(node, (*path, node), dst_mac, summed_at)
        raise AssertionError(f"a loop: {path}")

    def multicast(self, server: str, ip: str) -> list[Arrival]:
        """All copies of a packet from the server to a multicast address, where they came to rest."""
        arrivals = []
        waiting = [(self.topology.attachment(server).name, (server,))]
        while waiting:
            node, path = waiting.pop()
            assert len(path) < MAX_HOPS
            if self.topology.is_host(node):
                arrivals.append(Arrival(node, (*path, node), ""))
                continue
            entry = self.exact(node, "multicast_routes", hdr__ipv4__dst_addr=int(IPv4Address(ip)))
            if entry is None:
                assert self.longest_prefix(node, int(IPv4Address(ip))) is None
                arrivals.append(Arrival(node, (*path, node), ""))
                continue
            ports = self.groups[node][entry.params["group"]]
            assert ports
            waiting += [(self.node_at[node, port], (*path, node)) for port in ports]
        return arrivals
