"""Topologies in GraphML and GML, such as those of the Internet Topology Zoo, and of anything that networkx writes.

Nodes with kind="host" are hosts. Where there are none every node is a switch and has one host of its own. Nodes may
have tier, ip and mac; edges rate_mbps, delay_us, jitter_us, loss, duplicate, bit_error_rate, queue_packets,
pfc_xoff_bytes and pfc_xon_bytes. Of the Topology Zoo's attributes LinkSpeedRaw (bit/s) is the rate, and the way of
light between two places (Latitude, Longitude) the delay of an edge that names none. Parallel edges are one link: of
the sum of the rates that they name, and else of what the first of them says that says it. Nodes' labels are kept:
links can be named by them (topo/selectors.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Annotated, Any
from xml.parsers import expat

import networkx
from pydantic import BaseModel, ConfigDict, Field

from gradbed.common.errors import UserError
from gradbed.topo.files.description import TIER, Described, HostDescription, about
from gradbed.topo.files.own_form import LinkFields
from gradbed.topo.graph import Topology

EARTH_RADIUS_KM = 6371.0
KM_PER_US = 0.2
"""Of light in a fibre: two thirds of its speed in vacuum."""

GML = ".gml"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_FIELDS = tuple(LinkFields.model_fields)
_LABEL = "label"


def describe(path: Path) -> Described:
    """Read a GraphML or GML file.

    Raises:
        UserError: It is none, or no network; also pydantic's ValidationError for attributes of an edge.
    """
    return _described_graph(_read(path))


def describe_node_link(data: Mapping[str, Any]) -> Described:
    """Read node-link JSON as networkx writes it: nodes with their id, links (or edges) with source and target."""
    file = _NodeLink.model_validate(data)
    graph = networkx.MultiDiGraph() if file.directed else networkx.MultiGraph()
    for node in file.nodes:
        graph.add_node(node.id)
        graph.nodes[node.id].update(node.model_extra or {})
    for edge in file.edges if file.links is None else file.links:
        for end in (edge.source, edge.target):
            if end not in graph:
                raise UserError(f"a link of {end!r}, which is no node")
        key = graph.add_edge(edge.source, edge.target)
        graph.edges[edge.source, edge.target, key].update(edge.model_extra or {})
    return _described_graph(graph)


class _GraphNode(BaseModel):
    model_config = ConfigDict(extra="allow")
    id: int | str


class _Edge(BaseModel):
    model_config = ConfigDict(extra="allow")
    source: int | str
    target: int | str


class _NodeLink(BaseModel):
    directed: bool = False
    nodes: Annotated[list[_GraphNode], Field(min_length=1)]
    links: list[_Edge] | None = None
    edges: list[_Edge] = Field(default_factory=list)


def _described_graph(graph: Any) -> Described:
    hosts = [node for node, data in graph.nodes(data=True) if data.get("kind") == "host"]
    switches = [node for node in graph if node not in set(hosts)]
    names = {**_named("s", switches), **_named("h", hosts)}
    links = []
    for (a, b), fields in _edges(graph).items():
        if a != b:
            with about(f"the link of {names[a]} and {names[b]}"):
                links.append(LinkFields.model_validate(fields).described(names[a], names[b]))
    described = [
        HostDescription(names[node], data.get("ip"), data.get("mac"), on_link=False)
        for node, data in ((node, graph.nodes[node]) for node in hosts)
    ]
    if not hosts:
        taken = set(names.values())
        for number, node in enumerate(switches, 1):
            host = next(name for tail in count() if (name := f"h{number}{'_' * tail}") not in taken)
            described.append(HostDescription(host, on_link=False))
            links.append(LinkFields().described(host, names[node]))
    return Described(
        hosts=tuple(described),
        switches=tuple(names[node] for node in switches),
        links=tuple(links),
        tiers={names[node]: str(graph.nodes[node].get("tier", TIER)) for node in switches},
        labels={
            names[node]: label
            for node in (*hosts, *switches)
            if (label := str(graph.nodes[node].get(_LABEL, "")).strip()) and label != names[node]
        },
    )


def _read(path: Path) -> Any:
    """Return the graph, with at least one node."""
    form = "GML" if path.suffix == GML else "GraphML"
    try:
        graph = _read_gml(path) if form == "GML" else networkx.read_graphml(path)
        is_nested = form == "GraphML" and _has_nested_graphs(path)
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror}") from None
    except Exception as error:  # of XML parsers, and of networkx, which has no class of its own for it
        raise UserError(f"it is no {form}: {' '.join(str(error).split())}") from None
    if is_nested:
        raise UserError(
            "it is GraphML with graphs inside of graphs, of which the inner ones cannot be read: flatten it"
        )
    if not len(graph):
        raise UserError("it has no nodes")
    return graph


def _has_nested_graphs(path: Path) -> bool:
    """Return whether a graph has graphs inside nodes, which networkx ignores."""
    parser, open_graphs, deepest = expat.ParserCreate(namespace_separator=" "), 0, 0

    def start(name: str, _: Mapping[str, str]) -> None:
        nonlocal open_graphs, deepest
        open_graphs += name.split(" ")[-1] == "graph"
        deepest = max(deepest, open_graphs)

    def end(name: str) -> None:
        nonlocal open_graphs
        open_graphs -= name.split(" ")[-1] == "graph"

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(path.read_bytes(), True)
    return deepest > 1


def _read_gml(path: Path) -> Any:
    """Nodes by their numbers, since labels may be there twice; parallel edges whether or not the file announces
    them with `multigraph 1`, which the Topology Zoo's files do not."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    if not re.search(r"^\s*multigraph\s+1\s*$", text, re.MULTILINE):
        text = re.sub(r"\bgraph\s*\[", "graph [\n  multigraph 1", text, count=1)
    return networkx.parse_gml(text, label="id")


def _named(letter: str, nodes: list[Any]) -> dict[Any, str]:
    """Nodes' own names where all can be names here, else a letter and their place."""
    if all(_NAME.fullmatch(str(node)) for node in nodes):
        return {node: str(node) for node in nodes}
    return {node: f"{letter}{number}" for number, node in enumerate(nodes, 1)}


def _edges(graph: Any) -> dict[tuple[Any, Any], dict[str, Any]]:
    """Cables, by the nodes at their ends. Of a directed graph, edges of both directions are one cable, which has the
    larger of their rates."""
    found: dict[tuple[Any, Any], dict[str, Any]] = {}
    rates: dict[tuple[Any, Any], float] = {}
    is_directed = graph.is_directed()
    for a, b, data in graph.edges(data=True):
        fields = {name: data[name] for name in _FIELDS if name in data}
        if "rate_mbps" not in fields and (speed := _number(data, "LinkSpeedRaw")) > 0:
            fields["rate_mbps"] = speed / 1e6
        if "delay_us" not in fields and (km := _distance_km(graph.nodes[a], graph.nodes[b])) is not None:
            fields["delay_us"] = round(km / KM_PER_US, 1)
        key = (a, b) if (b, a) not in found else (b, a)
        if "rate_mbps" in fields:
            way = (a, b) if is_directed else key
            with about(f"the edge of {a} and {b}"):
                rates[way] = rates.get(way, 0.0) + _number(fields, "rate_mbps")
        cable = found.setdefault(key, {})
        for name, value in fields.items():
            cable.setdefault(name, value)
    for (a, b), cable in found.items():
        if "rate_mbps" in cable:
            cable["rate_mbps"] = max(rates.get((a, b), 0.0), rates.get((b, a), 0.0))
    return found


def _number(data: Mapping[str, Any], name: str) -> float:
    """Return an attribute as a number, 0 where it is not there."""
    try:
        return float(data.get(name) or 0)
    except (TypeError, ValueError):
        raise UserError(f"{name} {data[name]!r} is no number") from None


def _distance_km(a: Mapping[str, Any], b: Mapping[str, Any]) -> float | None:
    """Return the distance between two places on a great circle (haversine formula)."""
    if not all("Latitude" in place and "Longitude" in place for place in (a, b)):
        return None
    (a_north, a_east), (b_north, b_east) = (
        (math.radians(_number(place, "Latitude")), math.radians(_number(place, "Longitude"))) for place in (a, b)
    )
    half = math.sin((b_north - a_north) / 2) ** 2
    half += math.cos(a_north) * math.cos(b_north) * math.sin((b_east - a_east) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half)))


def as_graphml(topology: Topology) -> str:
    """Return the network in GraphML with the attributes that `describe` reads."""
    graph = networkx.Graph(name=topology.name)
    labels = {name: {_LABEL: label} for name, label in topology.labels}
    for host in topology.hosts:
        ip = f"{host.ip}/{host.prefix_bits}"
        graph.add_node(host.name, kind="host", ip=ip, mac=host.mac, **labels.get(host.name, {}))
    for switch in topology.switches:
        graph.add_node(switch.name, kind="switch", tier=switch.tier, **labels.get(switch.name, {}))
    for link in topology.links:
        model = link.model
        fields = {name: getattr(model, name) for name in _FIELDS if name != "rate_mbps"}
        if model.rate_bps is not None:
            fields["rate_mbps"] = model.rate_bps / 1e6
        graph.add_edge(link.a.node, link.b.node, **fields)
    return "\n".join(networkx.generate_graphml(graph)) + "\n"
