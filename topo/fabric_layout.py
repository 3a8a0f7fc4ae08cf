"""Which links of a network are interfaces and which stay in the fabric process, and what its statistics mean."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from switch.link import LinkModel
from topo.graph import Endpoint, Link, Topology

LinkKind = Literal["memory", "veth"]


@dataclass(frozen=True)
class DirectionStatistics:
    """What one direction of a link did to packets since the start.

    `packets` and `bytes` reached `to_node`, duplicates included, so packets - duplicates + losses + queue_drops
    were offered by `from_node`. `queue_drop_bytes` is None where nobody counted them (BMv2).
    """

    from_node: str
    to_node: str
    packets: int
    bytes: int
    queue_drops: int
    queue_drop_bytes: int | None
    losses: int
    lost_bytes: int
    duplicates: int
    duplicate_bytes: int


def interface_name(end: Endpoint) -> str:
    """Mininet's name for the interface at a link end, for instance e1-eth1."""
    return f"{end.node}-eth{end.port}"


def link_seed(seed: int, link: Link) -> int:
    """The seed of a link's random generators: 63 bits that depend on the network's seed and the link's place."""
    text = f"{seed} {link.a.node}:{link.a.port} {link.b.node}:{link.b.port}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def fabric_config(topology: Topology, kind: LinkKind, seed: int, grpc_addresses: Iterable[str]) -> dict[str, Any]:
    """The configuration of the fabric process, as its command line reads it (JSON)."""
    interfaces = []
    memory_links = []

    def interface(end: Endpoint, model: LinkModel, link: Link) -> dict[str, Any]:
        return {
            "device_id": topology.switch(end.node).number,
            "port": end.port,
            "interface": interface_name(end),
            "link": model.to_json(),
            "seed": link_seed(seed, link),
        }

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
                {
                    "a": [topology.switch(link.a.node).number, link.a.port],
                    "b": [topology.switch(link.b.node).number, link.b.port],
                    "link": link.model.to_json(),
                    "seed": link_seed(seed, link),
                }
            )
    return {
        "grpc_addresses": list(grpc_addresses),
        "switches": [{"device_id": switch.number, "name": switch.name} for switch in topology.switches],
        "interfaces": interfaces,
        "links": memory_links,
    }


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
