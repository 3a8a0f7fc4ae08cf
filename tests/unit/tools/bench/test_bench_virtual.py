"""The benchmark of the virtual clock: what is carried, and that both simulators carry it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network

import networkx
import pytest

from gradbed.common.errors import UserError
from gradbed.topo.graph import Host
from tools.bench.__main__ import virtual
from tools.bench.virtual import run
from tools.bench.virtual.measure import VirtualResult, measure
from tools.bench.virtual.run import measure_apart, milliseconds, run_bench_virtual
from tools.bench.virtual.simulators import description, measure_ns3, ns3_version
from tools.bench.virtual.workload import Permutation


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_no_link_carries_two_flows_one_way(k: int) -> None:
    permutation = Permutation(k)
    routes, towards = dict(permutation.routes()), {(at, port): to for (at, to), port in permutation.ports.items()}
    used: Counter[tuple[str, int]] = Counter()
    for source, destination in permutation.flows():
        for hop in path(routes, towards, permutation.edges[source.name], destination):
            used[hop] += 1
    assert {to.name for _, to in permutation.flows()} == {host.name for host in permutation.topology.hosts}
    assert set(used.values()) == {1}
    assert sum(used.values()) == 5 * k**3 // 4


@pytest.mark.parametrize("k", [4, 6])
def test_few_prefixes_lead_to_every_host_on_a_shortest_path(k: int) -> None:
    permutation = Permutation(k)
    routes, towards = dict(permutation.routes()), {(at, port): to for (at, to), port in permutation.ports.items()}
    assert max(map(len, routes.values())) < 2 * k
    between = networkx.Graph((link.a.node, link.b.node) for link in permutation.topology.links)
    for switch in routes:
        distance = networkx.single_source_shortest_path_length(between, switch)
        for host in permutation.topology.hosts:
            assert len(path(routes, towards, switch, host)) == distance[host.name]


@pytest.mark.parametrize("k", [4, 6])
def test_routes_by_host_are_those_by_prefix(k: int) -> None:
    permutation = Permutation(k)
    routes = dict(permutation.routes())
    for switch, by_host in permutation.host_routes():
        assert by_host == {host.name: longest(routes[switch], host) for host in permutation.topology.hosts}


def longest(routes: Mapping[IPv4Network, int], host: Host) -> int:
    found = [prefix for prefix in routes if IPv4Address(host.ip) in prefix]
    return routes[max(found, key=lambda prefix: prefix.prefixlen)]


def path(
    routes: Mapping[str, Mapping[IPv4Network, int]], towards: Mapping[tuple[str, int], str], at: str, host: Host
) -> list[tuple[str, int]]:
    """Switches and their ports on the way to a host."""
    found: list[tuple[str, int]] = []
    while at != host.name and len(found) < 10:
        found.append((at, longest(routes[at], host)))
        at = towards[found[-1]]
    return found


@pytest.mark.parametrize(("delay_us", "last_us"), [(5, 880), (1, 920)])
def test_every_packet_takes_six_hops(delay_us: int, last_us: int) -> None:
    measured = measure(Permutation(4, delay_us), 1, 1)
    # One each 40 us. The way takes 6 * (8.336 + delay_us) us, so that the last that arrives left at last_us.
    assert measured.queue_drops == 0
    assert measured.packets == 16 * (1 + last_us // 40)
    assert 6 * measured.packets <= measured.hops <= 6 * 16 * 25
    assert (measured.hosts, measured.switches) == (16, 20)


@pytest.mark.skipif(ns3_version() is None, reason="ns-3's development files are not installed")
def test_ns3_carries_the_same() -> None:
    ours = measure(Permutation(4), 2, 1)
    for global_routing in (False, True):
        theirs = measure_ns3(Permutation(4), 2, global_routing=global_routing)
        # Its first packet leaves a pause later.
        assert abs(theirs.packets - ours.packets) <= 16
        assert abs(theirs.hops - ours.hops) <= 6 * 16


def test_ns3_is_told_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Counter(line.split()[0] for line in description(Permutation(4), 2, global_routing=False).splitlines())
    assert words == {"nodes": 1, "link": 48, "route": 20 * 16, "flow": 16, "go": 1}
    assert "route" not in description(Permutation(4), 2, global_routing=True)


def test_the_status_tells_of_a_missed_goal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = VirtualResult(
        4, 16, 20, hops=4_000_000, packets=1, queue_drops=0, setup_s=0.5, run_s=1, clock_s=1, memory_bytes=10**8
    )
    monkeypatch.setattr(run, "measure_apart", lambda permutation, duration_ms: [measured])
    monkeypatch.setattr(run, "ns3_version", lambda: "3")
    monkeypatch.setattr(run, "_ns3_rates", lambda permutation, repetitions: (100_000.0, 200_000.0))
    assert run_bench_virtual([4], 1) == 0
    assert "4,000" in capsys.readouterr().out
    monkeypatch.setattr(run, "_ns3_rates", lambda permutation, repetitions: (200_000.0, 200_000.0))
    assert run_bench_virtual([4], 1) == 1


@pytest.mark.thorough
def test_a_measurement_has_a_process_of_its_own() -> None:
    assert [each.hosts for each in measure_apart(Permutation(2), 1, networks=2)] == [2, 2]
    assert milliseconds(Permutation(4), 3_000_000) == 1250
    assert milliseconds(Permutation(64), 3) == 1


@pytest.mark.parametrize("sizes", ["4,x", "", "5", "0"])
def test_wrong_sizes_get_one_line(sizes: str) -> None:
    with pytest.raises(UserError):
        virtual(sizes, 1)
