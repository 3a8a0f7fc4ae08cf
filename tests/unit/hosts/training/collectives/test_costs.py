"""Formulas against packets: those of packet_network.py, which shares no code with them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms, schedule
from gradbed.hosts.systems.training.collectives.costs import (
    Hop,
    NetworkModel,
    Packetisation,
    cheapest,
    cost_ns,
    message_ns,
    of_topology,
    star,
)
from gradbed.topo.generators import fat_tree
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.hosts.training.collectives.packet_network import PacketNetwork

RATE_BPS, DELAY_NS = 100 * 10**9, 1000
CHUNKED = (
    Algorithm.RING,
    Algorithm.BINARY_TREE,
    Algorithm.DOUBLE_BINARY_TREE,
    Algorithm.HIERARCHICAL,
    Algorithm.PARAMETER_SERVER,
)
CASES = [
    (algorithm, operation, chunks)
    for operation in Operation
    for algorithm in algorithms(operation)
    for chunks in ((1, 4) if algorithm in CHUNKED else (1,))
]


def on_packets_ns(
    network: PacketNetwork,
    algorithm: Algorithm,
    operation: Operation,
    size: int,
    size_bytes: int,
    chunks: int = 1,
    racks: tuple[int, ...] | None = None,
) -> float:
    return network.run(
        [schedule(algorithm, operation, size, rank, size_bytes, chunks=chunks, racks=racks) for rank in range(size)]
    )


def star_of_packets(delay_ns: int = DELAY_NS) -> PacketNetwork:
    return PacketNetwork(lambda sender, receiver: ["s1"], RATE_BPS, delay_ns)


@pytest.mark.parametrize(("algorithm", "operation", "chunks"), CASES)
@pytest.mark.parametrize("size", [2, 5, 8])
def test_costs_are_within_2_per_cent_of_packets_on_a_star(
    algorithm: Algorithm, operation: Operation, size: int, chunks: int
) -> None:
    size_bytes = 300_001 // size if operation is Operation.ALL_GATHER else 300_001
    racks = tuple(rank // 4 for rank in range(size))
    found = on_packets_ns(star_of_packets(), algorithm, operation, size, size_bytes, chunks, racks)
    expected = cost_ns(
        *(algorithm, operation, size, size_bytes, star(RATE_BPS, DELAY_NS)), chunks=chunks, racks=racks
    )
    assert expected == pytest.approx(found, rel=0.02)


@pytest.mark.commit_cases(69)
@pytest.mark.parametrize(
    "algorithm",
    [
        Algorithm.RING,
        Algorithm.HALVING_DOUBLING,
        Algorithm.RECURSIVE_DOUBLING,
        Algorithm.SHARDED_PARAMETER_SERVER,
    ],
)
@pytest.mark.parametrize("size", [2, 3, 8, 13])
@pytest.mark.parametrize("size_bytes", [0, 1, 4096, 40_000, 1_000_000])
@pytest.mark.parametrize("delay_ns", [0, 10_000])
def test_all_reduces_of_any_size_cost_what_packets_take(
    algorithm: Algorithm, size: int, size_bytes: int, delay_ns: int
) -> None:
    found = on_packets_ns(star_of_packets(delay_ns), algorithm, Operation.ALL_REDUCE, size, size_bytes)
    expected = cost_ns(algorithm, Operation.ALL_REDUCE, size, size_bytes, star(RATE_BPS, delay_ns))
    assert expected == pytest.approx(found, rel=0.02, abs=25 * size)


def fat_tree_route(sender: int, receiver: int) -> list[str]:
    """Of k = 4 with four hosts in each pod, two on each edge switch: the i-th host of an edge switch goes up to the
    i-th aggregation switch, from there to the core that is its edge switch's. Such paths do not collide where hosts
    at equal places send to each other, nor in a ring."""
    edges, pods = (sender // 2, receiver // 2), (sender // 4, receiver // 4)
    up = [f"e{edges[0] + 1}"]
    if edges[0] == edges[1]:
        return up
    choice = sender % 2
    up.append(f"a{2 * pods[0] + choice + 1}")
    if pods[0] != pods[1]:
        up += [f"c{2 * choice + edges[0] % 2 + 1}", f"a{2 * pods[1] + choice + 1}"]
    return [*up, f"e{edges[1] + 1}"]


@pytest.mark.parametrize(
    ("algorithm", "operation", "size_bytes", "chunks"),
    [
        (Algorithm.RING, Operation.ALL_REDUCE, 16 * 3000, 1),
        (Algorithm.RING, Operation.ALL_REDUCE, 16 * 30_000, 1),
        (Algorithm.RING, Operation.ALL_REDUCE, 16 * 30_000, 3),
        (Algorithm.RING, Operation.ALL_GATHER, 20_000, 1),
        (Algorithm.HALVING_DOUBLING, Operation.ALL_REDUCE, 16 * 3000, 1),
        (Algorithm.HALVING_DOUBLING, Operation.ALL_REDUCE, 16 * 30_000, 1),
        (Algorithm.HALVING_DOUBLING, Operation.REDUCE_SCATTER, 16 * 30_000, 1),
        (Algorithm.DISSEMINATION, Operation.BARRIER, 0, 1),
    ],
)
def test_costs_are_within_2_per_cent_of_packets_on_a_fat_tree(
    algorithm: Algorithm, operation: Operation, size_bytes: int, chunks: int
) -> None:
    """Neighbours of a ring are two, four or six links apart."""
    network = of_topology(
        fat_tree(4, LinkModel(rate_bps=RATE_BPS, delay_us=1)), [f"h{number}" for number in range(1, 17)]
    )
    assert [len(network.path(0, other)) for other in (1, 2, 4)] == [2, 4, 6]
    packets = PacketNetwork(fat_tree_route, RATE_BPS, DELAY_NS)
    found = on_packets_ns(packets, algorithm, operation, 16, size_bytes, chunks)
    assert cost_ns(algorithm, operation, 16, size_bytes, network, chunks=chunks) == pytest.approx(found, rel=0.02)


def test_packets_are_those_of_rocev2() -> None:
    """Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4; RETH 16 in the first, immediate data 4 in the last."""
    packets = Packetisation()
    assert packets.wire_bytes(0) == 58 + 16 + 4
    assert packets.wire_bytes(4096) == 4096 + 58 + 16 + 4
    assert packets.wire_bytes(4097) == 4096 + 58 + 16 + 4 + 58 + 4
    assert packets.wire_bytes(3 * 4096) == 3 * (4096 + 58) + 20
    assert packets.acknowledgements_bytes(5 * 4096) == 2 * 62
    assert [packets.count(size) for size in (0, 1, 4096, 4097)] == [1, 1, 1, 2]


def frames_one_by_one_ns(path: list[Hop], size_bytes: int, mtu_bytes: int) -> float:
    """Each frame on each link: after itself on the link before, after the frame before it."""
    count = max(1, -(-size_bytes // mtu_bytes))
    free = [0.0] * len(path)
    for number in range(count):
        payload = min(mtu_bytes, size_bytes - number * mtu_bytes)
        length = 58 + -(-payload // 4) * 4 + 16 * (number == 0) + 4 * (number == count - 1)
        time = 0.0
        for place, hop in enumerate(path):
            sent = max(time, free[place]) + length * 8e9 / (hop.rate_bps or 1)
            free[place] = sent
            time = sent + hop.delay_ns
    return time


@settings(max_examples=examples(200), deadline=None)
@given(
    rates=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    delays=st.lists(st.integers(0, 5000), min_size=6, max_size=6),
    size_bytes=st.integers(0, 40_000),
    mtu_bytes=st.sampled_from([64, 1000, 4096]),
)
def test_a_message_passes_links_of_any_rates_like_its_frames(
    rates: list[int], delays: list[int], size_bytes: int, mtu_bytes: int
) -> None:
    path = [Hop(rate * 10**9, delay) for rate, delay in zip(rates, delays, strict=False)]
    expected = frames_one_by_one_ns(path, size_bytes, mtu_bytes)
    assert message_ns(tuple(path), Packetisation(mtu_bytes=mtu_bytes), size_bytes) == pytest.approx(expected)


@settings(max_examples=examples(30), deadline=None)
@given(size=st.integers(2, 9), links=st.lists(st.integers(0, 20), min_size=9, max_size=9), chunks=st.integers(1, 5))
def test_a_rings_formula_is_its_longest_way_whatever_delays_links_have(
    size: int, links: list[int], chunks: int
) -> None:
    """Followed message by message, by recurrence over ranks, rounds and chunks."""
    assume(size <= len(links))
    network = NetworkModel(lambda sender, receiver: (Hop(RATE_BPS, 1000 * links[sender]), Hop(RATE_BPS, 0)))
    part = 20_000
    rounds = 2 * (size - 1)
    message = [network.message_ns(rank, (rank + 1) % size, part // chunks) for rank in range(size)]
    sending = network.sending_ns(0, 1, part // chunks)
    come = [[0.0] * chunks for _ in range(size)]
    free = [0.0] * size
    for _ in range(rounds):
        following = [[0.0] * chunks for _ in range(size)]
        for rank in range(size):
            for chunk in range(chunks):
                begun = max(come[rank][chunk], free[rank])
                free[rank] = begun + sending
                following[(rank + 1) % size][chunk] = begun + message[rank]
        come = following
    expected = max(max(times) for times in come)
    size_bytes = size * (part // chunks) * chunks
    found = cost_ns(Algorithm.RING, Operation.ALL_REDUCE, size, size_bytes, network, chunks=chunks)
    assert found == pytest.approx(expected)


def test_the_cheapest_has_few_rounds_for_short_vectors_and_few_bytes_for_long_ones() -> None:
    network = star(RATE_BPS, 10_000)
    assert cheapest(Operation.ALL_GATHER, 64, 16, network) is Algorithm.DIRECT
    short = cost_ns(Algorithm.HALVING_DOUBLING, Operation.ALL_REDUCE, 64, 1000, network)
    assert short < cost_ns(Algorithm.RING, Operation.ALL_REDUCE, 64, 1000, network) / 5
    with pytest.raises(UserError, match="does no"):
        cost_ns(Algorithm.RING, Operation.BARRIER, 4, 0, network)


def test_a_ring_of_1024_ranks_costs_a_moment() -> None:
    found = cost_ns(Algorithm.RING, Operation.ALL_REDUCE, 1024, 1 << 30, star(RATE_BPS, DELAY_NS))
    # 2 (N - 1) messages of 1 MiB in 256 frames, a frame's way through the switch, two delays, 64 acknowledgements.
    frame, message = 4096 + 58, 256 * (4096 + 58) + 20
    assert found == pytest.approx(2046 * ((message + frame + 16 + 64 * 62) * 0.08 + 2000))
