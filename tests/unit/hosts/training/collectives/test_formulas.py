"""Textbook formulas and bounds, by numbers worked out by hand from the sources."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives import formulas as bounds
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms
from gradbed.hosts.systems.training.collectives.costs import cost_ns, star
from gradbed.hosts.systems.training.collectives.formulas import AlphaBeta, alpha_beta_ns

MODEL = AlphaBeta(alpha_ns=1_000_000.0, beta_ns_per_byte=1.0, gamma_ns_per_byte=0.0001)
"""So that messages, bytes sent and bytes added stand apart in a number: M SSS SSS.AAAA"""


@pytest.mark.parametrize(
    ("algorithm", "operation", "size_bytes", "more", "messages", "sent", "added"),
    [
        (Algorithm.RING, Operation.ALL_REDUCE, 8000, {}, 14, 14_000, 7000),
        (Algorithm.RING, Operation.REDUCE_SCATTER, 8000, {}, 7, 7000, 7000),
        (Algorithm.RING, Operation.ALL_GATHER, 1000, {}, 7, 7000, 0),
        (Algorithm.RING, Operation.ALL_REDUCE, 8000, {"chunks": 5}, 70, 14_000, 7000),
        (Algorithm.HALVING_DOUBLING, Operation.ALL_REDUCE, 8000, {}, 6, 14_000, 7000),
        (Algorithm.RECURSIVE_DOUBLING, Operation.ALL_REDUCE, 8000, {}, 3, 24_000, 24_000),
        (Algorithm.HALVING_DOUBLING, Operation.REDUCE_SCATTER, 8000, {}, 3, 7000, 7000),
        (Algorithm.HALVING_DOUBLING, Operation.ALL_GATHER, 1000, {}, 3, 7000, 0),
        (Algorithm.PAIRWISE, Operation.ALL_TO_ALL, 8000, {}, 7, 7000, 0),
        (Algorithm.DIRECT, Operation.ALL_TO_ALL, 8000, {}, 1, 7000, 0),
        (Algorithm.DIRECT, Operation.GATHER, 1000, {}, 1, 7000, 0),
        (Algorithm.DIRECT, Operation.SCATTER, 8000, {}, 1, 7000, 0),
        (Algorithm.SHARDED_PARAMETER_SERVER, Operation.ALL_REDUCE, 8000, {}, 2, 14_000, 7000),
        (Algorithm.PARAMETER_SERVER, Operation.ALL_REDUCE, 8000, {}, 2, 112_000, 56_000),
        (Algorithm.PARAMETER_SERVER, Operation.ALL_REDUCE, 8000, {"chunks": 7}, 2, 64_000, 56_000),
        (Algorithm.BINARY_TREE, Operation.BROADCAST, 8000, {}, 6, 48_000, 0),
        (Algorithm.BINARY_TREE, Operation.BROADCAST, 8000, {"chunks": 8}, 20, 20_000, 0),
        (Algorithm.DOUBLE_BINARY_TREE, Operation.BROADCAST, 8000, {"chunks": 8}, 20, 10_000, 0),
        (Algorithm.BINARY_TREE, Operation.REDUCE, 8000, {"chunks": 8}, 20, 20_000, 20_000),
        (Algorithm.BINARY_TREE, Operation.ALL_REDUCE, 8000, {"chunks": 8}, 33, 33_000, 16_500),
        (Algorithm.DOUBLE_BINARY_TREE, Operation.ALL_REDUCE, 8000, {"chunks": 8}, 40, 20_000, 10_000),
        (Algorithm.DISSEMINATION, Operation.BARRIER, 0, {}, 3, 0, 0),
        # Racks of four: 3 + 3 rounds of a quarter inside, 2 of an eighth between.
        (Algorithm.HIERARCHICAL, Operation.ALL_REDUCE, 8000, {"ranks_per_rack": 4}, 8, 14_000, 7000),
    ],
)
def test_formulas_of_the_textbooks_for_eight_ranks(
    algorithm: Algorithm,
    operation: Operation,
    size_bytes: int,
    more: dict[str, int],
    messages: int,
    sent: int,
    added: int,
) -> None:
    found = alpha_beta_ns(algorithm, operation, 8, size_bytes, MODEL, **more)
    assert found == pytest.approx(messages * 1e6 + sent + added * 1e-4, rel=1e-12)


@pytest.mark.parametrize(
    ("size", "rounds", "added"),
    [(2, 1, 1), (3, 3, 2), (4, 2, 2), (5, 4, 3), (6, 4, 3), (7, 4, 3), (16, 4, 4), (17, 6, 5)],
)
def test_recursive_doubling_takes_log_n_rounds_of_whole_vectors(size: int, rounds: int, added: int) -> None:
    """Thakur, Rabenseifner and Gropp, section 4.5: log2 p (alpha + n beta + n gamma); groups that are no power of two
    are folded in, and out."""
    found = alpha_beta_ns(Algorithm.RECURSIVE_DOUBLING, Operation.ALL_REDUCE, size, 1000, MODEL)
    assert found == pytest.approx(rounds * (1e6 + 1000) + added * 1000 * 1e-4, rel=1e-12)


def test_every_algorithm_has_a_formula() -> None:
    for operation in Operation:
        for algorithm in algorithms(operation):
            assert alpha_beta_ns(algorithm, operation, 4, 4096, MODEL) > 0
            assert alpha_beta_ns(algorithm, operation, 1, 4096, MODEL) == 0
    with pytest.raises(UserError, match="ring does no barrier"):
        alpha_beta_ns(Algorithm.RING, Operation.BARRIER, 4, 0, MODEL)
    with pytest.raises(UserError, match="racks of 3 ranks"):
        alpha_beta_ns(Algorithm.HIERARCHICAL, Operation.ALL_REDUCE, 8, 4096, MODEL, ranks_per_rack=3)


def test_bounds_of_eight_ranks_at_8_bits_a_nanosecond() -> None:
    """At 8 Gbit/s a byte takes a nanosecond."""

    def hosts(operation: Operation) -> float:
        return bounds.hosts_bound_ns(operation, 8, 8000, 8e9)

    def across(operation: Operation) -> float:
        return bounds.bisection_bound_ns(operation, 8, 8000, 8e9)

    assert hosts(Operation.ALL_REDUCE) == 14_000
    assert hosts(Operation.REDUCE_SCATTER) == hosts(Operation.ALL_TO_ALL) == hosts(Operation.SCATTER) == 7000
    assert hosts(Operation.ALL_GATHER) == hosts(Operation.GATHER) == 56_000
    assert hosts(Operation.BROADCAST) == hosts(Operation.REDUCE) == 8000
    assert bounds.switches_bound_ns(Operation.ALL_REDUCE, 8, 8000, 8e9) == 8000
    assert bounds.switches_bound_ns(Operation.ALL_GATHER, 8, 8000, 8e9) == 56_000
    assert across(Operation.ALL_REDUCE) == across(Operation.BROADCAST) == across(Operation.REDUCE) == 8000
    assert across(Operation.REDUCE_SCATTER) == across(Operation.SCATTER) == 4000
    assert across(Operation.ALL_GATHER) == across(Operation.GATHER) == 32_000
    assert across(Operation.ALL_TO_ALL) == 16_000
    for bound in (bounds.hosts_bound_ns, bounds.switches_bound_ns, bounds.bisection_bound_ns):
        assert all(bound(operation, 1, 8000, 8e9) == 0 for operation in Operation)


@pytest.mark.parametrize("size", [2, 5, 8])
def test_nothing_costs_less_than_its_bound(size: int) -> None:
    network = star(10**9)
    racks = tuple(rank % 2 for rank in range(size))
    for operation in Operation:
        for algorithm in algorithms(operation):
            cost = cost_ns(algorithm, operation, size, 100_000, network, racks=racks)
            assert cost >= bounds.hosts_bound_ns(operation, size, 100_000, 10**9)


def test_astra_sims_all_reduce() -> None:
    """Its examples' switch of 50 GB/s (of 2^30 bytes) and 500 ns: two hops of latency and the bytes in each step."""
    per_byte = 1e9 / (50 * 2**30)
    megabyte = 1 << 20
    ring = bounds.astra_sim_ns(Algorithm.RING, 8, megabyte, 50, 500)
    assert ring == 14 * int(1000 + megabyte // 8 * per_byte) == 14 * 3441
    steps = [int(1000 + (megabyte >> step) * per_byte) for step in (1, 2, 3)]
    assert bounds.astra_sim_ns(Algorithm.HALVING_DOUBLING, 8, megabyte, 50, 500) == 2 * sum(steps)
    for algorithm, size in ((Algorithm.BINARY_TREE, 8), (Algorithm.HALVING_DOUBLING, 6)):
        with pytest.raises(UserError, match="ASTRA-sim's formula"):
            bounds.astra_sim_ns(algorithm, size, megabyte, 50, 500)


def test_packets_take_longer_than_astra_sim_says_by_headers_and_a_packets_way_through_the_switch() -> None:
    rate_gbytes = 100e9 / 8 / 2**30
    astra = bounds.astra_sim_ns(Algorithm.RING, 8, 64 << 20, rate_gbytes, 1000)
    ours = cost_ns(Algorithm.RING, Operation.ALL_REDUCE, 8, 64 << 20, star(100 * 10**9, 1000))
    assert 1.015 < ours / astra < 1.025
