"""Topologies in YAML and GraphML: what they say is what is built, and what is written reads as the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import networkx
import pytest

from gradbed.common.errors import UserError
from gradbed.topo.files.graphml import as_graphml
from gradbed.topo.files.own_form import as_yaml
from gradbed.topo.generators import GENERATORS
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology
from gradbed.topo.selectors import select

RING = """
link: {rate_mbps: 100, delay_us: 50}
switches: {s1: {tier: edge}, s2: {tier: edge}, core: {number: 7}}
hosts:
  h1:
  h2: {ip: 10.9.0.2/24, mac: "08:00:00:00:02:22", gateway: 10.9.0.1}
  h3:
links:
  - [h1, s1]
  - [h2, s2]
  - [h3, s1, {rate_mbps: 10}]
  - [s1, s2, {delay_us: 500, jitter_us: 20, loss: 0.01, duplicate: 0.02, queue_packets: 64}]
  - [s1, core, {ports: [9, 1]}]
  - [core, s2]
"""
USUAL = LinkModel(rate_bps=1_000_000, delay_us=7, queue_packets=33)


def written(folder: Path, text: str, name: str = "ring.yaml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    found = parse_topology(written(tmp_path, RING), USUAL)
    assert [(each.name, each.tier) for each in found.switches] == [("s1", "edge"), ("s2", "edge"), ("core", "switch")]
    assert found.switch("core").number == 7
    assert [host.ip for host in found.hosts] == ["10.0.1.2", "10.9.0.2", "10.0.1.3"]
    h2 = found.host("h2")
    assert (h2.mac, h2.gateway_ip, h2.prefix_bits, h2.on_link) == ("08:00:00:00:02:22", "10.9.0.1", 24, False)
    assert found.link("h1", "s1").model == LinkModel(rate_bps=100_000_000, delay_us=50, queue_packets=33)
    assert found.link("h3", "s1").model.rate_bps == 10_000_000
    assert found.link("s1", "s2").model == LinkModel(100_000_000, 500, 0.01, 0.02, 64, 20)
    assert found.link("s1", "core").end("s1").port == 9


def test_rates_and_times_are_scaled(tmp_path: Path) -> None:
    found = parse_topology(written(tmp_path, RING), USUAL, 0.1)
    assert found.link("h1", "s1").model == LinkModel(rate_bps=10_000_000, delay_us=500, queue_packets=33)
    assert found.link("s1", "s2").model.jitter_us == 200


def alike(found: Topology, wanted: Topology) -> None:
    assert (found.hosts, found.switches) == (wanted.hosts, wanted.switches)
    assert set(found.links) == set(wanted.links)


@pytest.mark.parametrize(
    "kind", ["fat-tree:4", "leaf-spine:3,2,2", "star:5", "dragonfly:3,2,1", "torus:2,2,1", "optical-electrical:2"]
)
def test_what_is_written_as_yaml_reads_as_the_same_network(kind: str, tmp_path: Path) -> None:
    model = LinkModel(rate_bps=25_000_000, delay_us=30, loss=0.25, queue_packets=17)
    built = parse_topology(kind, model)
    again = parse_topology(written(tmp_path, as_yaml(built)), USUAL)
    assert kind.partition(":")[0] in GENERATORS
    if kind.startswith("optical"):  # channels and turns are this shape's own
        assert (again.hosts, again.switches) == (built.hosts, built.switches)
    else:
        alike(again, built)


def test_what_is_written_as_graphml_reads_as_the_same_graph(tmp_path: Path) -> None:
    built = parse_topology("leaf-spine:3,2,2", LinkModel(rate_bps=25_000_000, delay_us=30, loss=0.25))
    again = parse_topology(written(tmp_path, as_graphml(built), "net.graphml"), USUAL)
    assert networkx.utils.graphs_equal(
        networkx.Graph(built.graph.edges()), networkx.Graph(again.graph.edges())
    ) and set(built.graph) == set(again.graph)
    assert [(host.name, host.ip, host.mac) for host in again.hosts] == [
        (host.name, host.ip, host.mac) for host in built.hosts
    ]
    assert {link.model for link in again.links} == {link.model for link in built.links}
    assert {each.name: each.tier for each in again.switches} == {each.name: each.tier for each in built.switches}


def test_a_network_of_the_topology_zoo(tmp_path: Path) -> None:
    """Nodes have labels and places, edges a speed: each node is a switch with a host; parallel edges are one link."""
    zoo = networkx.MultiGraph()
    zoo.add_node(0, label="New York", Latitude=40.71, Longitude=-74.01)
    zoo.add_node(1, label="London", Latitude=51.51, Longitude=-0.13)
    zoo.add_node(2, label="Nowhere")
    zoo.add_edge(0, 1, LinkSpeedRaw=1e9)
    zoo.add_edge(0, 1, LinkSpeedRaw=2e9)
    zoo.add_edge(1, 2)
    zoo.add_edge(2, 2)
    networkx.write_graphml(zoo, tmp_path / "zoo.graphml")
    found = parse_topology(str(tmp_path / "zoo.graphml"), USUAL)
    assert [each.name for each in found.switches] == ["s1", "s2", "s3"]
    assert [(host.name, found.attachment(host.name).name) for host in found.hosts] == [
        ("h1", "s1"),
        ("h2", "s2"),
        ("h3", "s3"),
    ]
    assert len(found.links) == 5
    atlantic = found.link("s1", "s2").model
    assert atlantic.rate_bps == 3_000_000_000
    # The spherical law of cosines, in place of the haversine formula: 5,570 km.
    north = [math.radians(each) for each in (40.71, 51.51)]
    angle = math.acos(
        math.prod(map(math.sin, north)) + math.prod(map(math.cos, north)) * math.cos(math.radians(74.01 - 0.13))
    )
    assert atlantic.delay_us == pytest.approx(6371 * angle / 0.2, abs=1)
    assert found.link("s2", "s3").model == USUAL


ZOO_GML = """Creator "Topology Zoo Toolset"
Version "1.0"
graph [
  directed 0
  node [
    id 7
    label "New York"
    Latitude 40.71
    Longitude -74.01
  ]
  node [
    id 9
    label "Saint-Denis"
  ]
  node [
    id 12
    label "Rome"
  ]
  node [
    id 13
    label "Rome"
  ]
  edge [
    source 7
    target 9
    LinkLabel "no speed"
  ]
  edge [
    source 9
    target 7
    LinkSpeedRaw 2000000000.0
  ]
  edge [
    source 7
    target 9
    LinkSpeedRaw 1000000000.0
    delay_us 30
  ]
  edge [
    source 9
    target 12
  ]
  edge [
    source 12
    target 13
    LinkSpeedRaw 5000000.0
  ]
]
"""


def test_a_network_in_gml(tmp_path: Path) -> None:
    """As the Topology Zoo's files are: parallel edges without `multigraph 1`, labels that are there twice."""
    found = parse_topology(written(tmp_path, ZOO_GML, "zoo.gml"), USUAL)
    assert [each.name for each in found.switches] == ["s1", "s2", "s3", "s4"] and len(found.links) == 3 + 4
    assert found.link("s1", "s2").model.rate_bps == 3_000_000_000
    assert found.link("s1", "s2").model.delay_us == 30
    assert found.link("s3", "s4").model.rate_bps == 5_000_000


def test_links_are_named_by_labels(tmp_path: Path) -> None:
    found = parse_topology(written(tmp_path, ZOO_GML, "zoo.gml"), USUAL)
    wanted = found.link("s1", "s2")
    for word in ("New York-Saint-Denis", "Saint-Denis-New_York", "s1-Saint-Denis", "s2-s1"):
        assert select(found, word).links == (wanted,)
    with pytest.raises(UserError, match="s1 is a switch"):
        select(found, "New York")
    with pytest.raises(UserError, match="has no link or host 'Saint-Denis-Rome'"):
        select(found, "Saint-Denis-Rome")  # which of the two?


@pytest.mark.parametrize("form", [(as_graphml, "net.graphml"), (as_yaml, "net.yaml")])
def test_labels_are_written_too(tmp_path: Path, form: tuple[Callable[[Topology], str], str]) -> None:
    write, name = form
    found = parse_topology(written(tmp_path, ZOO_GML, "zoo.gml"), USUAL)
    again = parse_topology(written(tmp_path, write(found), name), USUAL)
    assert (
        dict(again.labels)
        == dict(found.labels)
        == {"s1": "New York", "s2": "Saint-Denis", "s3": "Rome", "s4": "Rome"}
    )


@pytest.mark.parametrize("first", [{}, {"LinkSpeedRaw": 1e9}, {"rate_mbps": 1000.0}])
@pytest.mark.parametrize("second", [{}, {"LinkSpeedRaw": 2e9}])
def test_a_cable_has_the_rates_that_its_edges_name(
    tmp_path: Path, first: dict[str, float], second: dict[str, float]
) -> None:
    """Whichever of parallel edges names one, and whichever comes first."""
    expected = (1e9 if first else 0) + (2e9 if second else 0)
    for number, edges in enumerate([(first, second), (second, first)]):
        graph = networkx.MultiGraph()
        for fields in edges:
            graph.add_edge("a", "b", **fields)
        networkx.write_graphml(graph, tmp_path / f"{number}.graphml")
        link = parse_topology(str(tmp_path / f"{number}.graphml"), USUAL).link("a", "b")
        assert link.model.rate_bps == (expected or USUAL.rate_bps)


def test_two_directions_are_one_cable(tmp_path: Path) -> None:
    graph = networkx.DiGraph()
    graph.add_edge("a", "b", LinkSpeedRaw=1e9)
    graph.add_edge("b", "a", LinkSpeedRaw=2e9)
    networkx.write_graphml(graph, tmp_path / "directed.graphml")
    assert parse_topology(str(tmp_path / "directed.graphml"), USUAL).link("a", "b").model.rate_bps == 2_000_000_000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "net.graphml",
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph/></graphml>',
            "it has no nodes",
        ),
        ("net.gml", "graph [ ]", "it has no nodes"),
        ("net.gml", "graph [", "it is no GML"),
        ("net.gml", 'graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 LinkSpeedRaw "fast" ] ]', "'fast'"),
        ("net.mn", '{"application": {}, "hosts": [], "version": "2"}', "a network of MiniEdit, Mininet's editor"),
        ("net.conf", "[nodes]\na: _\n[links]\na:b delay=10ms\n", "a network of Mini-NDN"),
        ("net.txt", "1 2\n", "a file of a kind, which is not read"),
    ],
)
def test_files_are_named_for_what_they_are(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_topology(written(tmp_path, text, name), USUAL)
    assert "\n" not in str(caught.value) and "write fat-tree" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts: [", "line 1: it is no YAML"),
        ("{}", "hosts is missing"),
        ("hosts: {h1: {adress: 1}}\nswitches: {s1: }\nlinks: []", "hosts.h1.adress is not known"),
        ("hosts: {h1: }\nswitches: {s1: }\nlinks: [[h1]]", "links.0 has too few parts"),
        (
            "hosts: {h1: }\nswitches: {s1: }\nlinks: [[h1, s1, {loss: 2}]]",
            "the link of h1 and s1: loss: .*less than 1",
        ),
        ("hosts: {h1: }\nswitches: {s1: }\nlinks: [[h1, s1, 5]]", "the link of h1 and s1: write"),
        ("hosts: {h1: }\nswitches: {s1: }\nlinks: [[h1, s2]]", "host h1: it is not linked to any switch"),
        ("hosts: {h1: }\nswitches: {s1: {number: 0}}\nlinks: [[h1, s1]]", "switch s1: .*must be at least 1"),
        ("hosts: {h1: }\nswitches: {s1: {tier: A}}\nlinks: [[h1, s1]]", "switch s1: .*'A': a tier is"),
        ("hosts: {h-1: }\nswitches: {s1: }\nlinks: [[h-1, s1]]", "'h-1': the name of a host or a switch is a letter"),
        ("hosts: {h1: {mac: zz}}\nswitches: {s1: }\nlinks: [[h1, s1]]", "host h1: mac: 'zz': a MAC address is"),
        ("hosts: {h1: {ip: 10.0.0.300/24}}\nswitches: {s1: }\nlinks: [[h1, s1]]", "host h1: .*300"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_topology(written(tmp_path, text))
    assert "\n" not in str(caught.value) and "ring.yaml" in str(caught.value)


def test_no_graphml(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"bad.graphml: it is no GraphML"):
        parse_topology(written(tmp_path, "<graph", "bad.graphml"))
    with pytest.raises(UserError, match=r"none.graphml: it cannot be read: No such file"):
        parse_topology(str(tmp_path / "none.graphml"))


def test_the_examples_are_networks() -> None:
    examples = Path(__file__).resolve().parents[3] / "examples" / "topologies"
    sizes = {}
    for file in examples.iterdir():
        found = parse_topology(str(file), USUAL)
        assert networkx.is_connected(found.graph)
        sizes[file.name] = (len(found.hosts), len(found.switches), len(found.links))
    assert sizes == {"ring.yaml": (4, 4, 8), "two_racks.yaml": (6, 4, 10), "four_cities.graphml": (4, 4, 8)}
