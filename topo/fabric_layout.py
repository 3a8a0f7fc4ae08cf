"""Which links of a network are interfaces and which stay in the fabric process, and what its statistics mean."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from switch.fabric_config import FabricConfig, InterfaceConfig, LinkConfig, SwitchConfig
from switch.link import LinkModel
from topo.graph import Endpoint, Link, Topology
from topo.link_statistics import DirectionStatistics

LinkKind = Literal["memory", "veth"]


def interface_name(end: Endpoint) -> str:
    """Mininet's name for the interface at a link end, for instance e1-eth1."""
    return f"{end.node}-eth{end.port}"


def link_seed(seed: int, link: Link) -> int:
    """The seed of a link's random generators: 63 bits that depend on the network's seed and the link's place."""
    text = f"{seed} {link.a.node}:{link.a.port} {link.b.node}:{link.b.port}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def fabric_config(topology: Topology, kind: LinkKind, seed: int, grpc_addresses: Sequence[str]) -> FabricConfig:
    """The configuration of the fabric process."""
    interfaces: list[InterfaceConfig] = []
    memory_links: list[LinkConfig] = []

    def number(end: Endpoint) -> int:
        return topology.switch(end.node).number

    def interface(end: Endpoint, model: LinkModel, link: Link) -> InterfaceConfig:
        return InterfaceConfig(
            device_id=number(end),
            port=end.port,
            interface=interface_name(end),
            link=model,
            seed=link_seed(seed, link),
        )

    for link in topology.host_links:
        (end,) = (end for end in (link.a, link.b) if not topology.is_host(end.node))
        interfaces.append(interface(end, link.model, link))
    for link in topology.switch_links:
        if kind == "veth":
            # Port a models both directions; port b hands on what it gets, or every packet would pass two models.
            interfaces.append(interface(link.a, link.model, link))
            interfaces.append(interface(link.b, LinkModel(), link))
        else:
            memory_links.append(
                LinkConfig(
                    a=(number(link.a), link.a.port),
                    b=(number(link.b), link.b.port),
                    link=link.model,
                    seed=link_seed(seed, link),
                )
            )
    return FabricConfig(
        grpc_addresses=tuple(grpc_addresses),
        switches=tuple(SwitchConfig(device_id=switch.number, name=switch.name) for switch in topology.switches),
        interfaces=tuple(interfaces),
        links=tuple(memory_links),
    )


def name_statistics(
    topology: Topology, kind: LinkKind, rows: Iterable[Mapping[str, Any]]
) -> Iterator[DirectionStatistics]:
    """The fabric's rows with the names of the nodes at both ends, one per direction of every link.

    The far port of a veth link between two switches models nothing (see fabric_config); its rows repeat those of
    the near port and are left out.
    """
    ends = {}
    for link in topology.links:
        for end, other in ((link.a, link.b), (link.b, link.a)):
            repeats = kind == "veth" and end == link.b and not topology.is_host(link.a.node)
            if not topology.is_host(end.node) and not repeats:
                ends[topology.switch(end.node).number, end.port] = (end.node, other.node)
    for row in rows:
        nodes = ends.get((row["device_id"], row["port"]))
        if nodes is None:
            continue
        here, there = nodes
        yield DirectionStatistics(
            from_node=here if row["direction"] == "out" else there,
            to_node=there if row["direction"] == "out" else here,
            packets=row["packets"],
            bytes=row["bytes"],
            queue_drops=row["queue_drops"],
            queue_drop_bytes=row["queue_drop_bytes"],
            losses=row["losses"],
            lost_bytes=row["lost_bytes"],
            duplicates=row["duplicates"],
            duplicate_bytes=row["duplicate_bytes"],
        )
