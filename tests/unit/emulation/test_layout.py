"""What the switch process is told, and how its statistics get names."""

from collections import Counter
from typing import Literal

import pytest

from gradbed.emulation.layout import link_seed, name_classes, name_statistics, network_config
from gradbed.emulation.statistics import DirectionStatistics, added
from gradbed.switch.engine_network import ForeignEnd, HostEnd, NetworkConfig
from gradbed.topo.generators import fat_tree
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel


@pytest.fixture
def topology() -> Topology:
    return fat_tree(4, LinkModel(rate_bps=8_000_000)).with_links([("h1", "e1"), ("a1", "c1")], loss=0.5)


def _row(device_id: int, port: int, direction: str, packets: int = 0) -> dict:
    counted = dict.fromkeys(
        [
            "bytes",
            "queue_drops",
            "queue_drop_bytes",
            "losses",
            "lost_bytes",
            "duplicates",
            "duplicate_bytes",
            "backlogged_bytes",
            "backlogged_ns",
        ],
        0,
    )
    return {"device_id": device_id, "port": port, "direction": direction, "packets": packets, **counted}


def test_memory_links(topology: Topology) -> None:
    config = network_config(topology, "memory", 1, ["127.0.0.1:0"])
    e1 = topology.switch("e1").number
    assert config.grpc_addresses == ("127.0.0.1:0",)
    assert [(s.device_id, s.name) for s in config.switches] == [(s.number, s.name) for s in topology.switches]
    assert [i.interface for i in config.interfaces[:3]] == ["e1-eth1", "e1-eth2", "e2-eth1"]
    assert (config.interfaces[0].device_id, config.interfaces[0].port) == (e1, 1)
    assert config.interfaces[0].link == LinkModel(rate_bps=8_000_000, loss=0.5)
    assert len(config.interfaces) == 16
    assert len(config.links) == 32
    lossy = [link for link in config.links if link.link.loss]
    assert [(link.a, link.b) for link in lossy] == [((topology.switch("a1").number, 3), (1, 1))]
    ends = [end for link in config.links for end in (link.a, link.b)]
    ends += [(i.device_id, i.port) for i in config.interfaces]
    assert len(set(ends)) == len(ends) == 20 * 4


def test_veth_links_model_each_direction_once(topology: Topology) -> None:
    config = network_config(topology, "veth", 1, [])
    assert config.links == ()
    assert len(config.interfaces) == 16 + 2 * 32
    models = Counter(i.link == LinkModel() for i in config.interfaces)
    assert models == {False: 16 + 32, True: 32}


def test_seeds_depend_on_seed_and_place_only(topology: Topology) -> None:
    seeds = [link_seed(1, link) for link in topology.links]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seeds == [link_seed(1, link) for link in fat_tree(4).links]
    assert not set(seeds) & {link_seed(2, link) for link in topology.links}
    # Written down: a run repeated after an upgrade must make the same decisions.
    assert link_seed(1, topology.link("h1", "e1")) == 7324693967110083839
    of_switches = [[s.seed for s in network_config(topology, "memory", seed, []).switches] for seed in (1, 2)]
    assert len(set(of_switches[0] + of_switches[1])) == 2 * len(topology.switches)


def test_statistics_get_the_names_of_both_ends(topology: Topology) -> None:
    e1, a1 = topology.switch("e1").number, topology.switch("a1").number
    rows = [_row(e1, 1, "in", 5), _row(e1, 1, "out", 6), _row(e1, 3, "out", 7), _row(a1, 1, "out", 8)]
    named = list(name_statistics(topology, "memory", rows))
    assert [(s.from_node, s.to_node, s.packets) for s in named] == [
        ("h1", "e1", 5),
        ("e1", "h1", 6),
        ("e1", "a1", 7),
        ("a1", "e1", 8),
    ]
    assert named[0] == DirectionStatistics("h1", "e1", 5, 0, 0, 0, 0, 0, 0, 0, from_outside=True)


@pytest.mark.parametrize("kind", ["memory", "veth"])
def test_every_direction_of_every_link_has_one_row(topology: Topology, kind) -> None:
    config = network_config(topology, kind, 1, [])
    rows = [_row(i.device_id, i.port, way) for i in config.interfaces for way in ("in", "out")]
    rows += [_row(*end, "out") for link in config.links for end in (link.a, link.b)]
    directions = Counter((s.from_node, s.to_node) for s in name_statistics(topology, kind, rows))
    assert set(directions.values()) == {1}
    assert set(directions) == {pair for link in topology.links for pair in _both(link.a.node, link.b.node)}


def test_rows_of_other_ports_are_left_out(topology: Topology) -> None:
    assert list(name_statistics(topology, "memory", [_row(1, 99, "out")])) == []


def _both(a: str, b: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (a, b), (b, a)


def test_links_of_foreign_switches(topology: Topology) -> None:
    """a1 and e1 are not the engine's: links among them and their hosts are wires, others are interfaces here."""
    config = network_config(topology, "memory", 1, [], foreign={"a1", "e1"})
    numbers = {name: topology.switch(name).number for name in ("a1", "e1", "c1")}
    assert {(s.device_id, s.name) for s in config.foreign_switches} == {
        (numbers["a1"], "a1"),
        (numbers["e1"], "e1"),
    }
    assert {s.name for s in config.switches}.isdisjoint({"a1", "e1"}) and len(config.switches) == 18
    assert NetworkConfig.model_validate_json(config.model_dump_json()) == config
    ends = {(wire.a.interface, wire.b.interface): wire for wire in config.wires}
    assert set(ends) == {("e1-w1", "h1-w0"), ("e1-w2", "h2-w0"), ("e1-w3", "a1-w1")}
    host = ends["e1-w1", "h1-w0"]
    assert (host.a.device_id, host.a.port) == (numbers["e1"], 1)
    assert host.b == HostEnd(interface="h1-w0")
    assert host.link == topology.link("h1", "e1").model
    between = ends["e1-w3", "a1-w1"]
    assert between.b == ForeignEnd(interface="a1-w1", device_id=numbers["a1"], port=1)
    # Where one end is the engine's port, that port is the model of both directions.
    towards = [i for i in config.interfaces if i.interface == "c1-eth1"]
    assert [(i.device_id, i.link) for i in towards] == [(numbers["c1"], topology.link("a1", "c1").model)]
    # Of the 32 links between switches one is a wire and four have one foreign end.
    assert len(config.links) == 32 - 1 - 4
    assert len(config.interfaces) == 16 - 2 + 4


@pytest.mark.parametrize("kind", ["memory", "veth"])
def test_statistics_of_foreign_switches(topology: Topology, kind: Literal["memory", "veth"]) -> None:
    """One row for each direction of every link, whoever runs its ends."""
    foreign = {"a1", "e1"}
    config = network_config(topology, kind, 1, [], foreign)
    rows = [_row(i.device_id, i.port, direction) for i in config.interfaces for direction in ("in", "out")]
    rows += [_row(*end, "out") for link in config.links for end in (link.a, link.b)]
    for wire in config.wires:
        rows.append(_row(wire.a.device_id, wire.a.port, "out"))
        far = wire.b if isinstance(wire.b, ForeignEnd) else None
        rows.append(_row(far.device_id, far.port, "out") if far else _row(wire.a.device_id, wire.a.port, "in"))
    named = Counter((row.from_node, row.to_node) for row in name_statistics(topology, kind, rows, foreign))
    assert named == Counter(
        direction for link in topology.links for direction in ((link.a.node, link.b.node), (link.b.node, link.a.node))
    )


@pytest.mark.parametrize(("foreign", "outside"), [((), {"h1"}), (("a1",), {"h1", "a1"})])
def test_what_a_socket_in_front_of_a_link_dropped(
    topology: Topology, foreign: tuple[str, ...], outside: set[str]
) -> None:
    e1 = topology.switch("e1").number
    port = topology.port("e1", "a1")
    rows = [{**_row(e1, place, direction), "socket_drops": 10 * place + (direction == "in")}
            for place in (topology.port("e1", "h1"), port) for direction in ("in", "out")]  # fmt: skip
    named = {(row.from_node, row.to_node): row for row in name_statistics(topology, "memory", rows, foreign)}
    assert {ends: row.socket_drops for ends, row in named.items()} == {
        ("h1", "e1"): 11, ("e1", "h1"): 10, ("a1", "e1"): 10 * port + 1, ("e1", "a1"): 10 * port,
    }  # fmt: skip
    assert {sender for (sender, _), row in named.items() if row.from_outside} == outside
    assert named["h1", "e1"].offered == 11


def test_what_the_socket_at_the_far_end_of_a_veth_link_dropped_did_not_come(topology: Topology) -> None:
    link = topology.link("a1", "e1")
    (near_id, near_port), (far_id, far_port) = ((topology.switch(e.node).number, e.port) for e in (link.a, link.b))
    rows = [
        {**_row(near_id, near_port, "out", 100), "socket_drops": 0},
        {**_row(far_id, far_port, "in", 96), "socket_drops": 4},
    ]
    (named,) = name_statistics(topology, "veth", rows)
    assert (named.packets, named.socket_drops, named.offered) == (96, 4, 100)


@pytest.mark.parametrize(("foreign", "begun"), [((), 98), (("a1", "e1"), 104)])
def test_what_a_foreign_switch_hands_to_a_full_queue_has_begun(
    topology: Topology, foreign: tuple[str, ...], begun: int
) -> None:
    """Its queue is behind its egress, as a host's is; that of a switch here is in front."""
    counted = {"queue_drops": 6 if foreign else 0, "entered": 104 if foreign else 0, "started": 98, "delivered": 98}
    nothing = dict.fromkeys(("losses", "duplicates", "refusals"), (0, 0))
    row = {"device_id": topology.switch("e1").number, "port": 3, "direction": "out", **nothing}
    row.update({name: (0, packets) for name, packets in counted.items()})
    found = name_classes(topology, "memory", [row], foreign)["e1", "a1"]
    assert found.begun == (0, begun)
    assert added([found.begun, found.duplicates]) == added([found.delivered, found.losses, found.dropped])
