"""What the fabric process is told, and how its statistics get names."""

from collections import Counter

import pytest

from switch.link import LinkModel
from topo.fabric_layout import fabric_config, link_seed, name_statistics
from topo.fat_tree import fat_tree
from topo.graph import Topology
from topo.link_statistics import DirectionStatistics


@pytest.fixture
def topology() -> Topology:
    return fat_tree(4, rate_bps=8_000_000).with_links([("h1", "e1"), ("a1", "c1")], loss=0.5)


def _row(device_id: int, port: int, direction: str, packets: int = 0) -> dict:
    counted = dict.fromkeys(
        ["bytes", "queue_drops", "queue_drop_bytes", "losses", "lost_bytes", "duplicates", "duplicate_bytes"], 0
    )
    return {"device_id": device_id, "port": port, "direction": direction, "packets": packets, **counted}


def test_memory_links(topology: Topology) -> None:
    config = fabric_config(topology, "memory", 1, ["127.0.0.1:0"])
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
    config = fabric_config(topology, "veth", 1, [])
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
    assert named[0] == DirectionStatistics("h1", "e1", 5, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("kind", ["memory", "veth"])
def test_every_direction_of_every_link_has_one_row(topology: Topology, kind) -> None:
    config = fabric_config(topology, kind, 1, [])
    rows = [_row(i.device_id, i.port, way) for i in config.interfaces for way in ("in", "out")]
    rows += [_row(*end, "out") for link in config.links for end in (link.a, link.b)]
    directions = Counter((s.from_node, s.to_node) for s in name_statistics(topology, kind, rows))
    assert set(directions.values()) == {1}
    assert set(directions) == {pair for link in topology.links for pair in _both(link.a.node, link.b.node)}


def test_rows_of_other_ports_are_left_out(topology: Topology) -> None:
    assert list(name_statistics(topology, "memory", [_row(1, 99, "out")])) == []


def _both(a: str, b: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (a, b), (b, a)
