"""Where ranks live, what is different about some, what they tell, and networks that change under them."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.systems.training.configuration import RanksSection
from gradbed.experiments.systems.training.placement import place_ranks
from gradbed.experiments.systems.training.trial import FILE
from gradbed.topo.registry import parse_topology
from tests.unit.training.runs import CONTENTS, number, run

TRANSFORMER = {"preset": "tiny", "dp": 2, "tp": 2, "batch": 8, "layers": 2}
RACK = {f"h{number}": (number - 1) // 3 for number in range(1, 10)}
"""Of leaf-spine:3,2,3."""


# ---- Placement ----


def placed(ranks: int, seed: int = 1, **section: Any) -> list[list[str]]:
    return place_ranks(parse_topology("leaf-spine:3,2,3"), ranks, RanksSection(**section), seed)


def test_ranks_are_where_the_placement_says() -> None:
    assert placed(4) == [["h1", "h2", "h3", "h4"]]
    assert placed(4, placement="striped") == [["h1", "h4", "h7", "h2"]]
    assert placed(6, placement="racks") == [["h1", "h2", "h4", "h5", "h7", "h8"]]
    assert placed(2, jobs=2) == [["h1", "h2"], ["h3", "h4"]]
    assert placed(2, jobs=2, placement="striped") == [["h1", "h4"], ["h7", "h2"]]


def test_racks_have_as_many_ranks_each() -> None:
    for ranks in range(1, 10):
        (hosts,) = placed(ranks, placement="racks")
        held = Counter(RACK[host] for host in hosts)
        assert max(held.values()) - min([held[rack] for rack in range(3)]) <= 1
        assert hosts == sorted(hosts)


def test_random_ranks_are_drawn_with_the_seed() -> None:
    drawn = [placed(9, seed, placement="random") for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert sorted(drawn[0][0]) == sorted(RACK)
    with pytest.raises(UserError, match=r"--ranks: 2 jobs of 5 ranks need 10 hosts, .* has 9"):
        placed(5, jobs=2)


@pytest.mark.parametrize("placement", ["in-order", "racks", "striped", "random"])
def test_a_job_runs_wherever_its_ranks_are(placement: str) -> None:
    found = run(
        "leaf-spine:3,2,3",
        workload={"size_bytes": 4_000},
        ranks={"ranks": 5, "placement": placement},
        collectives={**CONTENTS, "algorithm": "hierarchical"},
    )
    assert found.failures == []
    assert found.decisions["hosts"] == placed(5, placement=placement)


# ---- Slow ranks, jobs, iterations ----


def test_a_slow_rank_holds_the_others_back() -> None:
    usual, slow = (
        run("star:4", workload=TRANSFORMER, ranks={"slow": each}, collectives=CONTENTS) for each in ((), ("h3:2",))
    )
    assert usual.failures == slow.failures == []
    computed = {row["host"]: row["compute_s"] for row in slow.tables["ranks"]}
    for row in usual.tables["ranks"]:
        factor = 2 if row["host"] == "h3" else 1
        assert computed[row["host"]] == pytest.approx(factor * row["compute_s"], rel=1e-6)
    assert number(slow, "iteration_time_s") > number(usual, "iteration_time_s") + 0.9 * (
        computed["h3"] - number(usual, "compute_time_s")
    )


def test_a_rank_that_begins_late_is_waited_for() -> None:
    found = run("star:4", workload={"size_bytes": 4_000}, ranks={"slow": ("h2:1+7",)}, collectives=CONTENTS)
    assert found.failures == []
    begins_s = {row["host"]: row["begin_s"] for row in found.tables["ranks"]}
    (collective,) = found.tables["collectives"]
    assert begins_s == {"h1": 0, "h2": pytest.approx(0.007, rel=0.01), "h3": 0, "h4": 0}
    assert collective["last_begin_s"] == pytest.approx(0.007, rel=0.01)
    assert 0.007 < collective["end_s"] < 0.0072


def test_jobs_share_the_network() -> None:
    """Two all-to-alls between racks over one link of two hosts' rate take about twice as long."""
    kind, workload = "leaf-spine:2,1,4", {"operation": "all-to-all", "size_bytes": 400_000}
    alone = run(kind, workload=workload, ranks={"ranks": 4, "placement": "striped"}, collectives=CONTENTS)
    both = run(kind, workload=workload, ranks={"ranks": 4, "jobs": 2, "placement": "striped"}, collectives=CONTENTS)
    assert alone.failures == both.failures == []
    assert {row["job"] for row in both.tables["iterations"]} == {1, 2}
    assert number(both, "iteration_time_s") > 1.5 * number(alone, "iteration_time_s")
    assert number(both, "messages") == 2 * number(alone, "messages")


def test_iterations_follow_each_other() -> None:
    found = run("star:4", workload=TRANSFORMER, ranks={"iterations": 3}, collectives=CONTENTS)
    assert found.failures == []
    assert [row["iteration"] for row in found.tables["iterations"]] == [0, 1, 2]
    ranks: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for row in sorted(found.tables["ranks"], key=lambda row: row["iteration"]):
        ranks[row["rank"]].append((row["begin_s"], row["end_s"]))
    for times in ranks.values():
        assert len(times) == 3
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(times))
    numbers: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for row in found.tables["collectives"]:
        numbers[row["first_rank"], row["ranks"]].add(row["number"])
    assert all(each == set(range(len(each))) and len(each) % 3 == 0 for each in numbers.values())


# ---- The time line ----


def test_the_time_line_is_of_the_ranks_that_tell_and_chrome_reads_it(tmp_path: Path) -> None:
    found = run("star:4", tmp_path, workload=TRANSFORMER, ranks={"timeline": 2, "iterations": 2})
    nodes = found.tables["nodes"]
    assert {(row["rank"], row["iteration"]) for row in nodes} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    trace = json.loads((tmp_path / FILE).read_text())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = {
        (event["pid"], event["tid"]): event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"
    }
    assert len(events) == len(nodes)
    for event, row in zip(events, nodes, strict=True):
        assert event["name"] == row["name"] and event["args"]["node"] == row["node"]
        assert event["ts"] == pytest.approx(1e6 * row["begin_s"], abs=1e-3)
        assert event["ts"] + event["dur"] == pytest.approx(1e6 * row["end_s"], abs=1e-3)
        assert event["dur"] >= 0
        what = "computation" if row["kind"] in ("compute", "memory") else "communication"
        assert names[event["pid"], event["tid"]] == f"rank {row['rank']} {what}"
    # An accelerator computes one node at a time, all of what its rank computed.
    for rank in (0, 1):
        of_rank = [event for event in events if event["tid"] == 2 * rank and event["dur"] > 0]
        spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in of_rank)
        assert all(before[1] <= after[0] + 1e-3 for before, after in itertools.pairwise(spans))
        computed_s = sum(row["compute_s"] for row in found.tables["ranks"] if row["rank"] == rank)
        assert sum(event["dur"] for event in of_rank) == pytest.approx(1e6 * computed_s, rel=1e-6)


def test_no_time_line_where_nobody_tells(tmp_path: Path) -> None:
    found = run("star:4", tmp_path, workload=TRANSFORMER, ranks={"timeline": 0})
    assert found.tables["nodes"] == []
    assert not (tmp_path / FILE).exists()


# ---- Faults ----

LONG = {"size_bytes": 4_000_000, "repetitions": 40}


def test_a_link_that_fails_is_gone_round() -> None:
    faults = [{"fault": "link-down", "link": ["l1", "s1"], "at_ms": 3}]
    usual = run("leaf-spine:2,2,2", workload=LONG)
    found = run("leaf-spine:2,2,2", workload=LONG, faults=faults, timing={"control_delay_us": 100})
    assert usual.failures == found.failures == []
    assert number(found, "retransmissions") > 0 == number(usual, "retransmissions")
    assert number(found, "iteration_time_s") > number(usual, "iteration_time_s")


def test_a_rank_that_is_killed_is_one_clear_line() -> None:
    faults = [{"fault": "agent-stop", "agent": "rank 1", "at_ms": 3}]
    with pytest.raises(UserError, match=r"^rank \d: rank 1 on h2 does not answer any more$"):
        run("leaf-spine:2,2,2", workload=LONG, faults=faults)
