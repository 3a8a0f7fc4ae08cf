"""What a switch holds to route by p4src/training.p4: its hosts, and sets of next hops for prefixes of all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from gradbed.common.errors import UserError
from gradbed.controller.planning.equal_cost import NextHops, equal_cost_next_hops
from gradbed.controller.planning.plan import Lpm, TableEntry
from gradbed.controller.planning.prefixes import summarised
from gradbed.controller.planning.routing import prefixes_behind
from gradbed.controller.systems.training.policies import NextHop, Policy
from gradbed.formats.addresses import mac_number
from gradbed.topo.graph import Host, Topology

MOST_SETS = 4096
"""NEXT_HOP_SETS of p4src/training.p4, and the size of its table `candidates` (least_loaded.p4)."""


class Paths:
    """All shortest paths of one network."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._behind = prefixes_behind(topology)
        self._next_hops = equal_cost_next_hops(topology, self._behind)
        self._hosts: dict[str, list[Host]] = {}
        for host in topology.hosts:
            self._hosts.setdefault(topology.attachment(host.name).name, []).append(host)

    def entries(self, switch: str, policy: Policy) -> Iterator[TableEntry]:
        """UserError if the switch's tables would be too small."""
        for host in self._hosts.get(switch, ()):
            port = self.topology.port(switch, host.name)
            params = {"port": port, "dst_mac": mac_number(host.mac)}
            yield _destination(IPv4Network(IPv4Address(host.ip)), "forward", params)
        numbers: dict[NextHops, int] = {}
        for prefix, names in summarised(self._ways(switch)).items():
            if len(names) == 1:
                next_hop = self._next_hop(switch, names[0])
                yield _destination(prefix, "forward", {"port": next_hop.port, "dst_mac": next_hop.mac})
                continue
            number = numbers.setdefault(names, len(numbers))
            yield _destination(prefix, *policy.choice(number, len(names)))
        if len(numbers) > MOST_SETS:
            raise UserError(f"{switch} has {len(numbers)} sets of next hops, there is room for {MOST_SETS}")
        for names, number in numbers.items():
            yield from policy.set_entries(switch, number, [self._next_hop(switch, name) for name in names])

    def _ways(self, switch: str) -> Mapping[IPv4Network, NextHops]:
        return {
            prefix: self._next_hops[switch][destination]
            for destination, prefixes in self._behind.items()
            if destination != switch
            for prefix in prefixes
        }

    def _next_hop(self, switch: str, neighbour: str) -> NextHop:
        return NextHop(self.topology.port(switch, neighbour), mac_number(self.topology.switch(neighbour).mac))


def _destination(prefix: IPv4Network, action: str, params: dict[str, int]) -> TableEntry:
    match = {"hdr.ipv4.dst_addr": Lpm(value=int(prefix.network_address), prefix_bits=prefix.prefixlen)}
    return TableEntry(table="destinations", match=match, action=action, params=params)
