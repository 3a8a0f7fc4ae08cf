"""Packets over the whole interconnect: exact distances and loads, wavelengths, policies."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address

import pytest

from gradbed.controller.planning.plan import Lpm, Plan, SwitchPlan, TableEntry
from gradbed.controller.systems.interconnect.entries import hash_seed
from gradbed.formats.addresses import mac_number
from gradbed.topo.optical_electrical import PLANES, hybrid_name, optical_electrical, optical_name, uplink_port
from tests.unit.interconnect.network import FRAME_BYTES, Interconnect, frame, ttl

SENT_TTL = 64
STRAY, NO_ROUTE = 1, 3


def all_to_all(network: Interconnect) -> None:
    for sender in network.hosts:
        network.send(sender, [host for host in network.hosts if host != sender])
    network.settle()


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("policy", ["least-loaded", "mesh-first"])
def test_exact_distances_and_loads(n: int, policy: str) -> None:
    """Every host sends every other one a packet. Hybrid switches count down the TTL; light is one more link."""
    with Interconnect(n, policy=policy) as network:
        all_to_all(network)
        by_ip = {host.ip: host for host in network.topology.hosts}
        for receiver in network.topology.hosts:
            distances: Counter[int] = Counter()
            for received in network.received(receiver.name):
                assert len(received) == FRAME_BYTES
                sender = by_ip[".".join(map(str, received[26:30]))]
                light = sender.ip.split(".")[1] != receiver.ip.split(".")[1]
                distances[SENT_TTL - ttl(received) + 1 + light] += 1
            assert distances == {2: n - 1, 3: n * (n - 1), 4: n * (n - 1), 5: n * (n - 1) ** 2}
        assert not network.dropped()

        carried = network.carried()
        places = [(x, y) for x in range(n) for y in range(n)]
        mesh = [carried[hybrid_name(x, y), hybrid_name(x, z)] for x, y in places for z in range(n) if y != z]
        uplinks = [[carried[hybrid_name(x, y), optical_name(y + n * p)] for p in range(PLANES)] for x, y in places]
        assert sum(mesh) == len(mesh) * n**3
        assert sum(map(sum, uplinks)) == n**2 * n**3 * (n - 1)
        # A light path: out by fibre `out` of A_i by wavelength w, that is, from unit out - w.
        paths = {
            (i % n, index): [
                network.counter(optical_name(i % n + n * p), "light").get(index, 0) for p in range(PLANES)
            ]
            for i in range(n)
            for index in (out * n + w for out in range(1, n + 1) for w in range(1, n))
        }
        assert sum(map(sum, paths.values())) == sum(map(sum, uplinks))
        if policy == "mesh-first":
            # Both planes together are exact; in one of them it is the half on average.
            assert set(mesh) == {n**3}
            assert set(map(sum, uplinks)) == {n**3 * (n - 1)}
            assert set(map(sum, paths.values())) == {n**3}


def test_every_packet_takes_one_mesh_link_at_most() -> None:
    n = 3
    with Interconnect(n) as network:
        all_to_all(network)
        carried = network.carried()
        over_mesh = sum(count for (a, b), count in carried.items() if a[0] == b[0] == "m")
        # All pairs of hosts with different sub-units take exactly one.
        assert over_mesh == n**3 * (n**3 - n**2)


def tune(network: Interconnect, unit: int, wavelength: int) -> None:
    """Let M(0,0) send what is for M(unit,0) to A_0 by this wavelength, whatever is right."""
    plan = network.controller.plan()
    own, there = plan["m0_0"], network.topology.switch(hybrid_name(unit, 0))
    match = {"hdr.ipv4.dst_addr": Lpm(value=int(IPv4Address(f"10.{unit}.0.0")), prefix_bits=24)}
    params = {"port": uplink_port(network.n, 0), "next": mac_number(there.mac), "by_wavelength": wavelength}
    wrong = TableEntry(table="destinations", match=match, action="straight", params=params)
    entries = [wrong if entry.key == wrong.key else entry for entry in own.entries]
    network.southbound.apply(Plan(switches={**plan.switches, "m0_0": SwitchPlan.of(own.program, entries)}))


def test_light_of_a_wrong_wavelength_ends_at_the_wrong_switch_and_is_counted() -> None:
    with Interconnect(3) as network:
        tune(network, unit=1, wavelength=2)
        network.send("h1", ["h10"])
        network.settle()
        assert network.received("h10") == []
        assert network.counter(hybrid_name(2, 0), "dropped") == {STRAY: 1}
        assert sum(network.dropped().values()) == 1


@pytest.mark.parametrize(
    ("wavelength", "counter"), [(0, "dark"), (2, "unknown_wavelength"), (4095, "unknown_wavelength")]
)
def test_what_is_no_light_goes_nowhere(wavelength: int, counter: str) -> None:
    with Interconnect(2) as network:
        tune(network, unit=1, wavelength=wavelength)
        network.send("h1", ["h5"])
        network.settle()
        counted = {name: network.counter("a0", name) for name in ("dark", "unknown_wavelength", "light")}
        assert counted == {"dark": {}, "unknown_wavelength": {}, "light": {}, counter: {1: 1}}


def test_what_nobody_has_is_dropped_and_counted() -> None:
    with Interconnect(2) as network:
        nobody = network.topology.host("h5").model_copy(update={"ip": "10.9.0.2"})
        network.interfaces["h1"].send(frame(network.topology.host("h1"), nobody).reshape(1, -1))
        network.settle()
        assert network.dropped() == {NO_ROUTE: 1}


@pytest.mark.parametrize(
    ("policy", "planes", "orders"),
    [
        ("least-loaded", {0, 1}, {"mesh"}),
        ("random-plane", {0, 1}, {"mesh"}),
        ("fixed-plane", {0}, {"mesh"}),
        ("mesh-first", {0, 1}, {"mesh"}),
    ],
)
def test_policies(policy: str, planes: set[int], orders: set[str]) -> None:
    """In an idle network, where all is a tie: 40 packets, one after the other, from h1 at M(0,0) to h7 at M(1,1)."""
    with Interconnect(2, policy=policy) as network:
        for _ in range(40):
            network.send("h1", ["h7"])
            network.settle()
        assert len(network.received("h7")) == 40
        carried = network.carried()
        by_plane = [carried["m0_0", f"a{2 * p}"] + carried["m0_1", f"a{1 + 2 * p}"] for p in range(PLANES)]
        by_order = {"light": carried["m1_0", "m1_1"], "mesh": carried["m0_0", "m0_1"]}
        assert {plane for plane, count in enumerate(by_plane) if count} == planes
        assert {order for order, count in by_order.items() if count} == orders
        # Coins are fair: of 40, 7 to 33 but for one time in 100,000.
        for counts, taken in ((by_plane, planes), (list(by_order.values()), orders)):
            assert sum(counts) == 40
            assert len(taken) == 1 or all(7 <= count <= 33 for count in counts)


def test_light_keeps_its_channel_behind_an_optical_switch() -> None:
    """From M(0,0) and M(1,0) to two hosts of M(2,0) by A_0: two wavelengths of one fibre out, and neither waits."""
    with Interconnect(3, policy="fixed-plane") as network:
        for sender, receiver in (("h1", "h19"), ("h10", "h20")):
            network.send(sender, [receiver])
        network.settle()
        times_ns = []
        for receiver in ("h19", "h20"):
            network.interfaces[receiver].receive()
            times_ns += network.interfaces[receiver].times_ns.tolist()
        assert len(times_ns) == 2 and times_ns[0] == times_ns[1]


def test_coins_fall_as_the_seed_says() -> None:
    """So that the repetitions of a study differ, and each comes out the same every time."""

    def planes(seed: int) -> list[int]:
        with Interconnect(2, seed=seed) as network:
            counts = []
            for _ in range(24):
                network.send("h1", ["h5"])
                network.settle()
                counts.append(network.carried()["m0_0", "a0"])
            return counts

    assert planes(1) == planes(1) != planes(2)


def test_ecmp_keeps_a_flow_on_one_way_and_spreads_flows() -> None:
    with Interconnect(2, policy="ecmp") as network:
        ways: Counter[tuple[str, str]] = Counter()
        for flow in range(24):
            before = network.carried()
            for _ in range(5):
                network.send("h1", ["h7"], flow=flow)
                network.settle()
            taken = network.carried() - before
            assert set(taken.values()) == {5}
            way = "mesh" if taken["m0_0", "m0_1"] else "light"
            [plane] = [a for (_, a), _ in taken.items() if a.startswith("a")]
            ways[way, plane] += 1
        assert len(ways) == 4


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("n", [2, 4])
def test_every_switch_hashes_flows_in_its_own_way(n: int) -> None:
    """Flows to the switch of the same number in another unit have two planes to choose from. Were these coins, of 24
    flows 4 to 20 would take the first plane but for one time in 3,000, and two of four switches would split them
    alike, or all the other way round, one time in 1,000,000."""
    flows, split = 24, {}
    with Interconnect(n, policy="ecmp", seed=3) as network:
        for sub_unit in range(n):
            sender, receiver = network.hosts[sub_unit * n], network.hosts[(n + sub_unit) * n]
            taken = []
            for flow in range(flows):
                before = network.carried()
                network.send(sender, [receiver], flow=flow)
                network.settle()
                [optical] = [a for (_, a) in network.carried() - before if a.startswith("a")]
                taken.append(int(optical[1:]) // n)
            split[sub_unit] = tuple(taken)
    assert all(4 <= sum(taken) <= 20 for taken in split.values())
    opposite = {tuple(1 - plane for plane in taken) for taken in split.values()}
    assert len({*split.values(), *opposite}) == 2 * n


def test_another_seed_spreads_the_same_flows_otherwise() -> None:
    """And not all the other way round, as it would with a linear hash."""

    def planes(seed: int) -> list[bool]:
        with Interconnect(2, policy="ecmp", seed=seed) as network:
            taken = []
            for flow in range(20):
                before = network.carried()
                network.send("h1", ["h5"], flow=flow)
                network.settle()
                taken.append((network.carried() - before)["m0_0", "a0"] == 1)
            return taken

    first, second = planes(1), planes(2)
    assert 3 <= sum(a == b for a, b in zip(first, second, strict=True)) <= 17


def test_the_seed_says_how_flows_are_hashed() -> None:
    topology = optical_electrical(2)
    seeds = {hash_seed(seed, switch.name) for seed in (1, 2) for switch in topology.switches}
    assert len(seeds) == 2 * len(topology.switches)
    assert hash_seed(1, "m0_0") == hash_seed(1, "m0_0")
