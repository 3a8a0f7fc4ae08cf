"""Which links of a network are interfaces and which stay in the switch process, and what its statistics mean."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from gradbed.common.errors import UserError
from gradbed.emulation.statistics import DirectionClasses, DirectionStatistics
from gradbed.switch.engine_network import (
    ForeignEnd,
    ForeignSwitchConfig,
    HostEnd,
    InterfaceConfig,
    LinkConfig,
    NetworkConfig,
    SwitchConfig,
    WireConfig,
)
from gradbed.topo.graph import Direction, Endpoint, Link, Topology
from gradbed.topo.link import LinkModel

LinkKind = Literal["memory", "veth"]


def interface_name(end: Endpoint) -> str:
    """Mininet's name for the interface at a link end, for instance e1-eth1."""
    return f"{end.node}-eth{end.port}"


def wire_interface_name(end: Endpoint) -> str:
    """Return the switch process's end of the veth pair whose other end is the interface at a link end."""
    return f"{end.node}-w{end.port}"


def is_wire(topology: Topology, link: Link, foreign: Collection[str]) -> bool:
    """Return whether neither end is a port of the switch process: it then sits in the middle, as the link's model."""
    return all(topology.is_host(end.node) or end.node in foreign for end in (link.a, link.b))


def link_seed(seed: int, link: Link) -> int:
    """Return the seed of a link's random generators: 63 bits of the network's seed and the link's place."""
    return _seed(f"{seed} {link.a.node}:{link.a.port} {link.b.node}:{link.b.port}")


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def network_config(
    topology: Topology,
    kind: LinkKind,
    seed: int,
    grpc_addresses: Sequence[str],
    foreign: Collection[str] = (),
) -> NetworkConfig:
    """Return the configuration of the switch process.

    seed: of what links and programs draw. foreign: switches that other programs run.

    Raises:
        UserError: Some link cannot be as it should.
    """
    _check_pfc(topology, kind, foreign)
    interfaces: list[InterfaceConfig] = []
    memory_links: list[LinkConfig] = []
    wires: list[WireConfig] = []

    def interface(end: Endpoint, model: LinkModel, link: Link) -> InterfaceConfig:
        return InterfaceConfig(
            device_id=topology.switch(end.node).number,
            port=end.port,
            interface=interface_name(end),
            link=model,
            seed=link_seed(seed, link),
        )

    for link in (*topology.host_links, *topology.switch_links):
        own = [end for end in (link.a, link.b) if not topology.is_host(end.node) and end.node not in foreign]
        if not own:
            wires.append(_wire(topology, link, link_seed(seed, link)))
        elif len(own) == 1:
            interfaces.append(interface(own[0], link.model, link))
        elif kind == "veth":
            # Port a models both directions; port b hands on what it gets, or every packet would pass two models.
            interfaces.append(interface(link.a, link.model, link))
            interfaces.append(interface(link.b, LinkModel(), link))
        else:
            a, b = ((topology.switch(end.node).number, end.port) for end in (link.a, link.b))
            memory_links.append(LinkConfig(a=a, b=b, link=link.model, seed=link_seed(seed, link)))
    return NetworkConfig(
        grpc_addresses=tuple(grpc_addresses),
        switches=tuple(
            SwitchConfig(device_id=switch.number, name=switch.name, seed=_seed(f"{seed} {switch.name}"))
            for switch in topology.switches
            if switch.name not in foreign
        ),
        interfaces=tuple(interfaces),
        links=tuple(memory_links),
        foreign_switches=tuple(
            ForeignSwitchConfig(device_id=switch.number, name=switch.name)
            for switch in topology.switches
            if switch.name in foreign
        ),
        wires=tuple(wires),
    )


def _check_pfc(topology: Topology, kind: LinkKind, foreign: Collection[str]) -> None:
    """Check that who pauses and who is paused are in the switch process, next to each other."""
    for link in topology.links:
        between = not any(topology.is_host(end.node) for end in (link.a, link.b))
        others = [end.node for end in (link.a, link.b) if end.node in foreign]
        if link.model.pfc_xoff_bytes and (others or (between and kind == "veth")):
            why = f"{others[0]} is run by another program" if others else "it runs through the kernel (--links veth)"
            raise UserError(f"the link between {link.a.node} and {link.b.node} cannot have PFC: {why}")


def _wire(topology: Topology, link: Link, seed: int) -> WireConfig:
    def foreign_end(end: Endpoint) -> ForeignEnd:
        return ForeignEnd(
            interface=wire_interface_name(end), device_id=topology.switch(end.node).number, port=end.port
        )

    # A host comes second.
    a, b = (link.b, link.a) if topology.is_host(link.a.node) else (link.a, link.b)
    far = HostEnd(interface=wire_interface_name(b)) if topology.is_host(b.node) else foreign_end(b)
    return WireConfig(a=foreign_end(a), b=far, link=link.model, seed=seed)


def name_statistics(
    topology: Topology, kind: LinkKind, rows: Iterable[Mapping[str, Any]], foreign: Collection[str] = ()
) -> Iterator[DirectionStatistics]:
    """Return the engine's rows with the names of the nodes at both ends, one per direction of every link.

    The far port of a veth link between two of its switches models nothing (see network_config): its rows repeat those
    of the near port, but for what it lost itself while the link was cut, or had no room for.
    """
    ends, far_ends = _nodes_at_ports(topology, kind, foreign)

    rows = list(rows)
    nothing = {"losses": 0, "lost_bytes": 0, "socket_drops": 0, "direction": "out"}
    at_far_end = {
        _direction(row, *far_ends[place]): row
        for row in rows
        if (place := (row["device_id"], row["port"])) in far_ends
    }
    for row in rows:
        nodes = ends.get((row["device_id"], row["port"]))
        if nodes is None:
            continue
        from_node, to_node = _direction(row, *nodes)
        far = at_far_end.get((from_node, to_node), nothing)
        behind = far if far["direction"] == "in" else nothing
        yield DirectionStatistics(
            from_node=from_node,
            to_node=to_node,
            packets=row["packets"] - behind["losses"] - behind.get("socket_drops", 0),
            bytes=row["bytes"] - behind["lost_bytes"],
            queue_drops=row["queue_drops"],
            queue_drop_bytes=row["queue_drop_bytes"],
            losses=row["losses"] + far["losses"],
            lost_bytes=row["lost_bytes"] + far["lost_bytes"],
            duplicates=row["duplicates"],
            duplicate_bytes=row["duplicate_bytes"],
            backlogged_bytes=row["backlogged_bytes"],
            backlogged_ns=row["backlogged_ns"],
            queued=row.get("queued"),
            in_flight=row.get("in_flight", 0),
            entered_bytes=row.get("entered_bytes", 0),
            channel_bytes=tuple(row.get("channel_bytes", ())),
            time_ns=row.get("time_ns"),
            pauses_sent=tuple(row.get("pauses_sent", ())),
            pauses_received=tuple(row.get("pauses_received", ())),
            paused_ns=tuple(row.get("paused_ns", ())),
            socket_drops=row.get("socket_drops", 0) + behind.get("socket_drops", 0),
            from_outside=_is_outside(topology, foreign, from_node),
        )


def name_classes(
    topology: Topology, kind: LinkKind, rows: Iterable[Mapping[str, Any]], foreign: Collection[str] = ()
) -> dict[Direction, DirectionClasses]:
    """Return the engine's rows of gradbed.switch.engine.statistics.LinkClasses with the names of nodes.

    A veth link between two of its switches is one after the other: what leaves the sender's port, and what comes in
    at the other.
    """
    ends, far_ends = _nodes_at_ports(topology, kind, foreign)
    found: dict[Direction, list[Mapping[str, Any]]] = {}
    for row in rows:
        place = row["device_id"], row["port"]
        if nodes := ends.get(place) or far_ends.get(place):
            found.setdefault(_direction(row, *nodes), []).append(row)
    return {
        (sender, receiver): DirectionClasses.of(
            sorted(parts, key=lambda row: row["direction"] == "in"),
            from_outside=_is_outside(topology, foreign, sender),
        )
        for (sender, receiver), parts in found.items()
    }


def _is_outside(topology: Topology, foreign: Collection[str], node: str) -> bool:
    return topology.is_host(node) or node in foreign


def _nodes_at_ports(
    topology: Topology, kind: LinkKind, foreign: Collection[str]
) -> tuple[dict[tuple[int, int], Direction], dict[tuple[int, int], Direction]]:
    """Return by device id and port the node there and that at the other end; and likewise of ports that model
    nothing."""
    ends: dict[tuple[int, int], Direction] = {}
    far_ends: dict[tuple[int, int], Direction] = {}
    for link in topology.links:
        own = not any(topology.is_host(end.node) or end.node in foreign for end in (link.a, link.b))
        for end, other in ((link.a, link.b), (link.b, link.a)):
            repeats = kind == "veth" and end == link.b and own
            if not topology.is_host(end.node):
                kept = far_ends if repeats else ends
                kept[topology.switch(end.node).number, end.port] = (end.node, other.node)
    return ends, far_ends


def _direction(row: Mapping[str, Any], here: str, there: str) -> Direction:
    return (here, there) if row["direction"] == "out" else (there, here)
