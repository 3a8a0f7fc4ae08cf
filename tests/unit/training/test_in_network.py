"""Collectives that switches carry out: exact under losses, for several groups at once, however late a rank is, and
faster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training import rank as rank_module
from tests.unit.training.runs import CONTENTS, number, run

SUMS = {**CONTENTS, "in_network": "aggregation", "in_network_from_bytes": 0}
COPIES = {**CONTENTS, "in_network": "shuffle", "in_network_from_bytes": 0}
LOSSY = {"loss": 0.02, "duplicate": 0.02}
SEVEN = {"ranks": 7, "placement": "racks"}
BROADCAST = {"operation": "broadcast", "size_bytes": 40_004, "root": 3, "repetitions": 2}


@pytest.mark.commit_cases(4)
@pytest.mark.parametrize("link", [{}, LOSSY], ids=["without loss", "with loss"])
@pytest.mark.parametrize(
    ("kind", "ranks"), [("star:5", {"ranks": 4}), ("star:5", {"ranks": 3}), ("leaf-spine:3,2,3", SEVEN)], ids=str
)
def test_sums_are_exact(kind: str, ranks: dict[str, Any], link: dict[str, Any]) -> None:
    found = run(kind, link=link, workload={"size_bytes": 40_004, "repetitions": 2}, ranks=ranks, collectives=SUMS)
    assert found.failures == []
    assert len(found.tables["collectives"]) == 2
    assert number(found, "messages") == 0
    assert bool(number(found, "retransmissions")) == bool(link)


@pytest.mark.parametrize("link", [{}, LOSSY], ids=["without loss", "with loss"])
def test_copies_are_exact(link: dict[str, Any]) -> None:
    found = run("leaf-spine:3,2,3", link=link, workload=BROADCAST, ranks=SEVEN, collectives=COPIES)
    assert found.failures == []
    assert number(found, "messages") == 0
    # The root sends each fragment once for all six.
    if not link:
        assert number(found, "packets") == 2 * -(-40_004 // 1024)


@pytest.mark.parametrize("link", [{}, LOSSY], ids=["without loss", "with loss"])
def test_groups_of_a_transformer_are_summed_side_by_side(link: dict[str, Any]) -> None:
    """Of dp for gradients, of tp for activations, and iterations one after the other."""
    found = run(
        "leaf-spine:3,2,3",
        link=link,
        workload={"preset": "tiny", "dp": 3, "tp": 2, "batch": 6, "layers": 1, "width": 64, "sequence": 32},
        ranks={"placement": "racks", "iterations": 2},
        collectives=SUMS,
    )
    assert found.failures == []
    groups = {row["first_rank"] for row in found.tables["collectives"] if row["operation"] == "all-reduce"}
    assert len(groups) > 1


def test_jobs_have_sums_of_their_own() -> None:
    found = run("leaf-spine:3,2,3", workload={"size_bytes": 8_192}, ranks={"ranks": 4, "jobs": 2}, collectives=SUMS)
    assert found.failures == []
    assert {(row["job"], row["ranks"]) for row in found.tables["collectives"]} == {(1, 4), (2, 4)}


@pytest.mark.parametrize("collectives", [SUMS, COPIES], ids=["sums", "copies"])
def test_a_rank_may_be_late(collectives: dict[str, Any]) -> None:
    """Much later than thirty times a fragment's timeout; the others neither give up nor fill the network."""
    workload = BROADCAST if collectives is COPIES else {"size_bytes": 40_004, "repetitions": 2}
    late = {**SEVEN, "slow": ("h1:1+200",)}
    found = run("leaf-spine:3,2,3", workload=workload, ranks=late, collectives=collectives)
    assert found.failures == []
    assert 0.2 < number(found, "iteration_time_s") < 0.3
    # Forty fragments of six ranks, or of the root, are sent again four times and then after pauses that double.
    assert 0 < number(found, "retransmissions") <= (4 + 8) * 40 * (1 if collectives is COPIES else 6)


def test_sums_that_do_not_fit_into_32_bits_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modulo 2^32, at hosts as in the formula: switches hand large ones on to the server."""
    large = 2**31 - 1

    def contents(rank: int, collective: int, values: int) -> Any:
        found = np.full(values, large, np.int32)
        found[::3] = -(2**31)
        return found

    def expected_result(
        operation: str, group: tuple[int, ...], rank: int, number: int, values: int, root: Any
    ) -> Any:
        found = np.full(values, large * len(group), np.int64)
        found[::3] = -(2**31) * len(group)
        return found

    monkeypatch.setattr(rank_module, "contents", contents)
    monkeypatch.setattr("gradbed.experiments.systems.training.checks.expected_result", expected_result)
    found = run("leaf-spine:3,2,3", workload={"size_bytes": 40_004}, ranks=SEVEN, collectives=SUMS)
    assert found.failures == []


def test_sums_in_switches_are_faster_than_rings() -> None:
    """64 ranks in 8 racks, with a server besides. A ring carries 2 n (p - 1) / p bytes to each, sums n."""
    times_s = {}
    for name, collectives in (("ring", {"algorithm": "ring"}), ("switches", {"in_network": "aggregation"})):
        found = run(
            "leaf-spine:8,8,9",
            workload={"size_bytes": 1_000_000},
            ranks={"ranks": 64, "placement": "racks", "timeline": 0},
            collectives=collectives,
        )
        assert found.failures == []
        times_s[name] = number(found, "collective_time_s")
    assert times_s["ring"] > 1.7 * times_s["switches"]


def test_what_is_small_goes_among_hosts() -> None:
    """Vectors of less than --in-network-from-bytes, and other operations: both over queue pairs."""
    transformer = {"preset": "tiny", "dp": 3, "tp": 2, "batch": 6, "layers": 1}
    found = run(
        "leaf-spine:3,2,3",
        workload=transformer,
        ranks={"placement": "racks"},
        collectives={**SUMS, "in_network_from_bytes": 100_000},
    )
    assert found.failures == []
    sizes = [row["size_bytes"] for row in found.tables["collectives"] if row["operation"] == "all-reduce"]
    assert min(sizes) < 100_000 <= max(sizes)
    assert number(found, "messages") > 0


def test_a_rank_that_is_killed_ends_the_sums_of_the_others() -> None:
    faults = [{"fault": "agent-stop", "agent": "rank 1", "at_ms": 1}]
    workload = {"size_bytes": 1_000_000, "repetitions": 100}
    with pytest.raises(UserError, match=r"^rank \d: a collective that switches carry out does not go on any more$"):
        run("star:4", workload=workload, ranks={"ranks": 3}, collectives={"in_network": "aggregation"}, faults=faults)


@pytest.mark.parametrize(
    ("kind", "workload", "ranks", "collectives", "said"),
    [
        ("star:4", {}, {}, SUMS, "--in-network: sums need a host without a rank"),
        ("star:4", {"size_bytes": 100}, {"ranks": 3}, {"in_network": "aggregation"}, "no all-reduce of 16384 bytes"),
        (
            "star:4",
            {},
            {"ranks": 3},
            {"in_network": "ndn"},
            "no system ndn has switches that carry out collectives: those of aggregation and shuffle do",
        ),
        ("star:66", {}, {"ranks": 65}, SUMS, "switches sum for at most 64 ranks, not 65"),
        ("star:65", {"operation": "broadcast"}, {}, COPIES, "switches copy for at most 64 ranks, not 65"),
    ],
    ids=lambda each: each if isinstance(each, str) and " " in each else "",
)
def test_what_switches_cannot_do_is_one_line(
    kind: str, workload: dict[str, Any], ranks: dict[str, Any], collectives: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        run(kind, workload=workload, ranks=ranks, collectives=collectives)
