"""Times of collectives beside formulas: the system's own (model_s), and one that stands here."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.training.runs import number, run

RATE_BPS, DELAY_S = 100e9, 1e-6
HEADER_BYTES = 14 + 20 + 8 + 12 + 4
"""Of each packet: Ethernet, IPv4, UDP, BTH and ICRC; the first of a message has a RETH of 16 bytes, the last
immediate data of 4."""
MTU_BYTES = 4096
SPREAD: dict[str, Any] = {
    "switches": {"balancing": "least-loaded"},
    "transport": {"recovery": "selective-repeat", "reordering_packets": 64},
}


def step_s(size_bytes: float, links: int) -> float:
    """Of a message: all its packets one behind the other, the last one also over the other links."""
    packets = max(1, math.ceil(size_bytes / MTU_BYTES))
    wire_bytes = size_bytes + packets * HEADER_BYTES + 20
    last_bytes = size_bytes - (packets - 1) * MTU_BYTES + HEADER_BYTES
    return 8 * (wire_bytes + (links - 1) * last_bytes) / RATE_BPS + links * DELAY_S


def ring_s(ranks: int, size_bytes: int, links: int) -> float:
    """Thakur, Rabenseifner and Gropp (2005): 2 (p - 1) steps of n / p bytes."""
    return 2 * (ranks - 1) * step_s(size_bytes / ranks, links)


def halving_doubling_star_s(ranks: int, size_bytes: int) -> float:
    """2 log2 p steps; the k-th of the first half has n / 2^k bytes."""
    steps = range(1, int(math.log2(ranks)) + 1)
    return 2 * sum(step_s(size_bytes / 2**k, 2) for k in steps)


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling"])
@pytest.mark.parametrize(
    ("kind", "size_bytes", "more"),
    [("star:8", 65_536, {}), ("star:8", 1_000_000, {}), ("fat-tree:4", 2_000_000, SPREAD)],
    ids=["small on a star", "large on a star", "fat-tree"],
)
def test_the_model_is_met_within_2_percent(algorithm: str, kind: str, size_bytes: int, more: dict[str, Any]) -> None:
    found = run(kind, workload={"size_bytes": size_bytes}, collectives={"algorithm": algorithm}, **more)
    assert found.failures == []
    assert number(found, "collective_time_s") == pytest.approx(number(found, "model_s"), rel=0.02)


def test_times_on_a_star_are_those_of_the_textbook() -> None:
    for size_bytes in (32_768, 2**20):
        for algorithm, wanted_s in (
            ("ring", ring_s(8, size_bytes, 2)),
            ("halving-doubling", halving_doubling_star_s(8, size_bytes)),
        ):
            found = run("star:8", workload={"size_bytes": size_bytes}, collectives={"algorithm": algorithm})
            assert number(found, "collective_time_s") == pytest.approx(wanted_s, rel=0.02), (algorithm, size_bytes)


def links_of_a_fat_tree(a: int, b: int) -> int:
    """Between the a-th and the b-th of 16 hosts, two at each edge switch and four in each pod."""
    return 2 if a // 2 == b // 2 else 4 if a // 4 == b // 4 else 6


def test_a_ring_of_a_fat_tree_waits_for_who_comes_before() -> None:
    """Rank r sends on what came from rank r - 1 in the step before: a recurrence, without packets."""
    ranks, size_bytes = 16, 2**21
    done_s = [0.0] * ranks
    for _ in range(2 * (ranks - 1)):
        done_s = [
            done_s[rank - 1] + step_s(size_bytes / ranks, links_of_a_fat_tree((rank - 1) % ranks, rank))
            for rank in range(ranks)
        ]
    found = run("fat-tree:4", workload={"size_bytes": size_bytes}, collectives={"algorithm": "ring"}, **SPREAD)
    assert number(found, "collective_time_s") == pytest.approx(max(done_s), rel=0.02)


def test_paths_of_ecmp_collide_where_halving_doubling_crosses_a_fat_tree() -> None:
    """Which is why the formula holds for least-loaded alone: with hashes two flows share a link in some step."""
    workload, collectives = {"size_bytes": 2_000_000}, {"algorithm": "halving-doubling"}
    hashed = run("fat-tree:4", workload=workload, collectives=collectives)
    assert hashed.failures == []
    assert number(hashed, "collective_time_s") > 1.3 * number(hashed, "model_s")


def test_no_collective_is_faster_than_links_allow() -> None:
    found = run("star:8", workload={"size_bytes": 1_000_000}, collectives={"algorithm": "ring"})
    assert number(found, "bound_rate_bps") == pytest.approx(RATE_BPS * 8 / 14)
    bound_bps, rate_bps = number(found, "bound_rate_bps"), number(found, "algorithm_rate_bps")
    assert 0.75 * bound_bps < rate_bps < bound_bps  # headers, and 14 delays of 2 us
