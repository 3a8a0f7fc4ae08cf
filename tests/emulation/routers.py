"""Make every switch of a running network an IPv4 router (p4src/router.p4), through P4Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

import networkx
from finsy.proto import p4r

from gradbed.emulation.network import EmulatedNetwork
from gradbed.topo.graph import Switch, Topology
from tests.emulation.sandboxed import ROOT
from tests.unit.p4runtime.client import INSERT, Client, action, entry, exact, ids, lpm, pipeline_of
from tools.recordings.random_inputs import canonical


def route_everything(network: EmulatedNetwork) -> None:
    """Push the program to all switches, with a route to every host along one shortest path."""
    config = pipeline_of(ROOT / "p4src" / "router.p4")
    for switch in network.topology.switches:
        client = Client(network.backend.control_address(switch.name), switch.number)
        stream = client.become_primary()
        client.push(pipeline=config)
        client.write(*((INSERT, each) for each in _entries(network.topology, switch, ids(config.p4info))))
        stream.close()
        client.close()


def _entries(topology: Topology, switch: Switch, of: dict[str, int]) -> Iterator[p4r.TableEntry]:
    distances = dict(networkx.all_pairs_shortest_path_length(topology.graph))
    for neighbour, port in topology.neighbours(switch.name).items():
        node = topology.host(neighbour) if topology.is_host(neighbour) else topology.switch(neighbour)
        forward = action(of["forward"], canonical(port), _mac(switch.mac), _mac(node.mac))
        yield entry(of["next_hops"], exact(1, canonical(port)), action=forward)
    for host in topology.hosts:
        towards = min(topology.neighbours(switch.name), key=lambda name: distances[name][host.name])
        set_next_hop = action(of["set_next_hop"], canonical(topology.port(switch.name, towards)))
        yield entry(of["routes"], lpm(1, IPv4Address(host.ip).packed, 32), action=set_next_hop)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
