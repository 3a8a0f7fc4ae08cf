"""Files in forms that people have: older ones of p4lang, of p4-utils, and of networkx. The small inputs in others/
were written after such files; the expected networks are counted by hand, and addresses are those of their tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import pytest

from gradbed.common.errors import UserError
from gradbed.topo.files import read_topology, topology_file
from gradbed.topo.graph import Topology

OTHERS = Path(__file__).parent / "others"


def written(folder: Path, data: Any, name: str = "topology.json") -> str:
    (folder / name).write_text(json.dumps(data))
    return str(folder / name)


def read(kind: object) -> Topology:
    found = read_topology(str(kind))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "hosts", "switches", "links"),
    [
        ("bare_ip/topology.json", 2, 1, 2),
        ("old_tutorials/topology.json", 3, 2, 4),
        ("p4lang_p4app/p4app.json", 2, 2, 3),
    ],
)
def test_the_small_inputs_are_read(name: str, hosts: int, switches: int, links: int) -> None:
    found = read(OTHERS / name)
    assert (len(found.hosts), len(found.switches), len(found.links)) == (hosts, switches, links)


def test_an_address_without_a_prefix_is_of_mininets_eight_bits() -> None:
    found = read(OTHERS / "bare_ip/topology.json")
    assert {host.prefix_bits for host in found.hosts} == {8}
    assert found.destination_mac("h1", "h2") == "02:00:00:00:01:02", "they are neighbours"


def test_hosts_of_a_list_have_the_addresses_of_the_old_tutorials() -> None:
    found = read(OTHERS / "old_tutorials/topology.json")
    assert [(host.ip, host.prefix_bits, host.mac) for host in found.hosts] == [
        ("10.0.1.1", 24, "00:00:00:00:01:01"),
        ("10.0.2.2", 24, "00:00:00:00:02:02"),
        ("10.0.2.3", 24, "00:00:00:00:02:03"),
    ]
    # run_exercise.py of that time added the links of hosts first, by name, "so bmv2 port numbers are predictable".
    assert found.neighbours("s1") == {"h1": 1, "s2": 2} and found.neighbours("s2") == {"h2": 1, "h3": 2, "s1": 3}
    assert found.link("s2", "h3").model.rate_bps == 10_000_000


def test_the_target_of_p4lang_p4app_with_several_switches(tmp_path: Path) -> None:
    data = json.loads((OTHERS / "p4lang_p4app/p4app.json").read_text())
    kind = written(tmp_path, data, "p4app.json")
    for name in ("plain.p4", "s1.txt", "s2.txt"):
        (tmp_path / name).touch()
    found = topology_file(kind)
    assert found is not None and found.sources(None) == {"s1": tmp_path / "plain.p4", "s2": tmp_path / "plain.p4"}
    assert found.entries == {"s1": tmp_path / "s1.txt", "s2": tmp_path / "s2.txt"}
    assert [host.ip for host in found.topology.hosts] == ["10.0.1.1", "10.0.2.2"]
    assert found.topology.link("s2", "h2").model.delay_us == 5000
    alone = {"program": "plain.p4", "targets": {"simple": {"num-hosts": 2}, "stf": {}}}
    with pytest.raises(
        UserError, match=r"no target has links, as multiswitch does: simple, stf \(p4app.json of p4lan"
    ):
        topology_file(written(tmp_path, alone, "p4app.json"))


def p4_utils(**more: Any) -> dict[str, Any]:
    network = {
        "hosts": {"h1": {}, "server": {}},
        "switches": {"s1": {}},
        "links": [["h1", "s1"], ["server", "s1"]],
        **more.pop("topology", {}),
    }
    return {"topology": network, **more}


def test_the_program_of_p4_utils_before_2021(tmp_path: Path) -> None:
    (tmp_path / "old.p4").touch()
    found = topology_file(written(tmp_path, p4_utils(program="old.p4", switch="simple_switch"), "p4app.json"))
    assert found is not None and found.program == tmp_path / "old.p4"
    both = topology_file(written(tmp_path, p4_utils(program="none.p4", p4_src="old.p4"), "p4app.json"))
    assert both is not None and both.program == tmp_path / "old.p4"


def test_manual_addresses_are_mininets_where_there_are_none(tmp_path: Path) -> None:
    found = read(written(tmp_path, p4_utils(topology={"assignment_strategy": "manual"}), "p4app.json"))
    assert [(host.ip, host.prefix_bits) for host in found.hosts] == [("10.0.0.1", 8), ("10.0.0.2", 8)]
    hosts = {"h1": {"ip": "10.7.0.1/24"}, "server": {}}
    more = {"assignment_strategy": "manual", "hosts": hosts}
    mixed = read(written(tmp_path, p4_utils(topology=more), "p4app.json"))
    assert [(host.ip, host.prefix_bits) for host in mixed.hosts] == [("10.7.0.1", 24), ("10.0.0.2", 8)]


@pytest.mark.parametrize("edges", ["links", "edges"])
def test_node_link_json_is_what_networkx_reads_of_it(tmp_path: Path, edges: str) -> None:
    ring = networkx.cycle_graph(5)
    data = {
        "directed": False,
        "multigraph": False,
        "graph": {},
        "nodes": [{"id": node, "tier": "ring"} for node in ring],
        edges: [{"source": a, "target": b, "rate_mbps": 10, "delay_us": 20} for a, b in ring.edges],
    }
    found = read(written(tmp_path, data))
    assert len(found.hosts) == 5 and {switch.tier for switch in found.switches} == {"ring"}
    between = found.graph.subgraph([switch.name for switch in found.switches])
    assert networkx.is_isomorphic(networkx.Graph(between), ring)
    assert found.link("s1", "s2").model.rate_bps == 10_000_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"hosts": {"h1": {"ip": None, "commands": []}}, "switches": {"s1": {}}, "links": [["h1", "s1-p1"]]},
            r"host h1: ip null asks for an address by DHCP.*\(topology.json of p4lang/tutorials\)",
        ),
        ({"hosts": ["h1"], "switches": {"s1": {}}, "links": [["h1", "s9"]]}, "a link of 's9', which is neither"),
        ({"hosts": ["h1"], "switches": {"s1": {}}, "links": []}, "host h1: it is not linked to any switch"),
        ({"hosts": ["a"], "switches": {"s1": {}}, "links": [["a", "s1"]]}, "a: hosts get their addresses of numbers"),
        ({"hosts": 5, "switches": {}, "links": []}, r"hosts has to be an object \(topology.json of p4lang/tutorials"),
        (p4_utils(topology={"links": 5}), r"topology.links has to be a list \(p4app.json of p4-utils"),
        (p4_utils(topology={"assignment_strategy": "l5"}), r"assignment_strategy 'l5'.* \(p4app.json of p4-utils\)"),
        ({"targets": {}}, r"no target has links.* there is none \(p4app.json of p4lang/p4app\)"),
        ({"nodes": []}, r"nodes has too few parts \(node-link JSON of networkx"),
        ({"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}, "a link of 2, which is no node"),
        ({"vertices": []}, "it is JSON of no form that is known by what it holds"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_form(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(written(tmp_path, data))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("depth", [1, 3, 50_000])
def test_graphml_with_graphs_inside_of_graphs_is_refused(tmp_path: Path, depth: int) -> None:
    inner = '<graph edgedefault="undirected">' * depth + "</graph>" * depth
    nodes = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'
    kind = tmp_path / "nested.graphml"
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    kind.write_text(f'{head}<graph edgedefault="undirected">{nodes}{inner}</graph></graphml>')
    with pytest.raises(UserError, match=r"nested.graphml: it is GraphML with graphs inside of graphs") as caught:
        read(kind)
    assert "\n" not in str(caught.value)
    kind.write_text(f'{head}<graph edgedefault="undirected">{nodes}</graph></graphml>')
    assert len(read(kind).switches) == 2
