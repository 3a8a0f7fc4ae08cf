"""The optical and electrical interconnect: exact sizes, degrees, wiring and distances."""

from __future__ import annotations

from collections import Counter

import networkx
import pytest

from gradbed.common.errors import UserError
from gradbed.topo.optical_electrical import (
    HYBRID,
    OPTICAL,
    hybrid_name,
    light_links,
    mesh_port,
    optical_electrical,
    place_of,
    size_of,
    uplink_port,
)

SIZES = range(2, 9)


@pytest.mark.parametrize("n", SIZES)
def test_sizes_and_degrees(n: int) -> None:
    topology = optical_electrical(n)
    assert len(topology.hosts) == n**3
    assert Counter(switch.tier for switch in topology.switches) == {HYBRID: n**2, OPTICAL: 2 * n}
    assert len(topology.links) == n**3 + n**2 * (n - 1) // 2 + 2 * n**2
    assert len(list(light_links(topology))) == 2 * n**2
    for switch in topology.switches:
        assert topology.graph.degree[switch.name] == (2 * n + 1 if switch.tier == HYBRID else n)


@pytest.mark.parametrize("n", SIZES)
def test_distances(n: int) -> None:
    topology = optical_electrical(n)
    hosts = {host.name for host in topology.hosts}
    total = 0
    # Hosts of a switch are alike: the first one of each stands for them.
    for source in [host.name for host in topology.hosts][::n]:
        distances = networkx.single_source_shortest_path_length(topology.graph, source)
        by_distance = Counter(distances[host] for host in hosts - {source})
        expected = {2: n - 1, 3: n * (n - 1), 4: n * (n - 1), 5: n * (n - 1) ** 2}
        assert by_distance == {links: count for links, count in expected.items() if count}
        assert max(by_distance) == 5
        total += n * sum(links * count for links, count in by_distance.items())
    # The mean is (5 N^2 + 2 N + 2) / (N^2 + N + 1), in integers.
    assert total * (n**2 + n + 1) == n**3 * (n**3 - 1) * (5 * n**2 + 2 * n + 2)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_wiring_and_ports(n: int) -> None:
    topology = optical_electrical(n)
    assert size_of(topology) == n
    for x in range(n):
        for y in range(n):
            name = hybrid_name(x, y)
            assert place_of(name) == (x, y)
            hosts = [f"h{(x * n + y) * n + z + 1}" for z in range(n)]
            mesh = [hybrid_name(x, other) for other in range(n) if other != y]
            lights = [f"a{y}", f"a{y + n}"]
            assert topology.neighbours(name) == {node: 1 + i for i, node in enumerate([*hosts, *mesh, *lights])}
            for other in range(n):
                if other != y:
                    assert topology.port(name, hybrid_name(x, other)) == mesh_port(n, y, other)
            for plane, light in enumerate(lights):
                assert topology.port(name, light) == uplink_port(n, plane)
            for z, host in enumerate(hosts):
                assert topology.host(host).ip == f"10.{x}.{y}.{z + 2}"
    for i in range(2 * n):
        assert topology.neighbours(f"a{i}") == {hybrid_name(x, i % n): x + 1 for x in range(n)}


def test_other_networks_have_no_n() -> None:
    from gradbed.topo.generators import star

    with pytest.raises(UserError, match="star:3 is not of the kind optical-electrical:N"):
        size_of(star(3))


def test_impossible_sizes() -> None:
    for n in (0, -1, 251):
        with pytest.raises(UserError, match="1 to 250 units"):
            optical_electrical(n)
