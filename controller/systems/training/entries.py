"""Entries of p4src/training.p4: a switch's own hosts, sets of next hops for the prefixes of all others, and the rule
by which it chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Lpm, TableEntry
from gradbed.controller.planning.routing import NextHops, equal_cost_next_hops, prefixes_behind, summarised
from gradbed.formats.addresses import mac_number
from gradbed.topo.graph import Host, Topology

# ---- How a switch chooses among next hops (p4src/include/training/balance.p4) ----


PolicyName = Literal["ecmp", "random-spraying", "round-robin-spraying", "least-loaded", "flowlets"]

MOST_CANDIDATES = 16
"""Of an entry in `candidates` (least_loaded.p4)."""

MOST_NEXT_HOPS = 255
"""A flowlet's choice has 8 bits (flowlets.p4); every policy keeps to it."""

_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    *("twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
)


@dataclass(frozen=True)
class NextHop:
    """The port that leads to a neighbour, and the neighbour's MAC address."""

    port: int
    mac: int


@dataclass(frozen=True)
class LoadBalancing:
    """The rule by which a switch chooses among equally near next hops."""

    name: PolicyName
    """Name of the rule."""
    seed: int
    """Seed of this switch's hashes."""
    flowlet_us: int
    """Pause after which a flow chooses anew."""

    def choice(self, number: int, next_hops: int) -> tuple[str, dict[str, int]]:
        """Return the action of a destination, and its parameters, that takes one of the set `number`."""
        params = {"next_hop_set": number, "next_hops": next_hops}
        match self.name:
            case "ecmp":
                return "ecmp", params | {"seed": self.seed}
            case "random-spraying":
                return "random_spraying", params
            case "round-robin-spraying":
                return "round_robin_spraying", params
            case "least-loaded":
                return "least_loaded", {"next_hop_set": number, "blocks": _blocks(next_hops)}
            case "flowlets":
                return "flowlets", params | {"seed": self.seed, "pause_us": self.flowlet_us}

    def set_entries(self, switch: str, number: int, next_hops: Sequence[NextHop]) -> Iterator[TableEntry]:
        """Return the entries of the set `number`."""
        if len(next_hops) > MOST_NEXT_HOPS:
            raise UserError(f"{switch} has {len(next_hops)} equally short ways, it can choose among {MOST_NEXT_HOPS}")
        if self.name != "least-loaded":
            for place, next_hop in enumerate(next_hops):
                yield _next_hop(number, place, next_hop)
            return
        blocks = _blocks(len(next_hops))
        for block in range(blocks):
            members = next_hops[block::blocks]
            for place, next_hop in enumerate(members):
                yield _next_hop(number, block * MOST_CANDIDATES + place, next_hop)
            ports = [member.port for member in members] + [0] * (MOST_CANDIDATES - len(members))
            yield TableEntry(
                table="candidates",
                match={"next_hop_set": number, "block": block},
                action="among",
                params=dict(zip(_ORDINALS, ports, strict=True)),
            )


def _blocks(next_hops: int) -> int:
    """Return how many candidates there have to be for so many, as good as equally large."""
    return -(-next_hops // MOST_CANDIDATES)


def _next_hop(number: int, place: int, next_hop: NextHop) -> TableEntry:
    return TableEntry(
        table="next_hops_of_sets",
        match={"next_hop_set": number, "next_hop": place},
        action="forward",
        params={"port": next_hop.port, "dst_mac": next_hop.mac},
    )


# ---- Where packets go ----


MOST_SETS = 4096
"""NEXT_HOP_SETS of p4src/training.p4, and the size of its table `candidates` (least_loaded.p4)."""


class Paths:
    """The shortest paths of one network."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._behind = prefixes_behind(topology)
        self._next_hops = equal_cost_next_hops(topology, self._behind)
        self._hosts: dict[str, list[Host]] = {}
        for host in topology.hosts:
            self._hosts.setdefault(topology.attachment(host.name).name, []).append(host)

    def entries(self, switch: str, policy: LoadBalancing) -> Iterator[TableEntry]:
        """Return the entries of a switch.

        Raises:
            UserError: Its tables would be too small.
        """
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
