"""What the system is for: iterations that take no longer when the server's link is halved, no loss where workers are
paced, accuracy that compression does not cost, and an end to every trouble."""

from __future__ import annotations

from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.systems.compression.frames import HEADER_BYTES
from tests.unit.compression.trials import run


def less(rate_mbps: int, at_ms: float) -> list[dict[str, Any]]:
    """The server's link, of 100 Mbit/s, has this rate from then on."""
    return [{"fault": "link-change", "link": ["h1", "s1"], "change": {"rate_mbps": rate_mbps}, "at_ms": at_ms}]


def metrics(workers: int, rate_mbps: int = 100, queue: int = 1000, **sections: Any) -> dict[str, Any]:
    """Of gradients that take 12 ms of the server's link each, as the sum does; it falls to the rate after 15 ms."""
    found = run(
        topology={"kind": f"star:{workers + 1}", "link": {"queue_packets": queue}},
        workload={"workers": workers, "rounds": 1, "values": 35_200},
        faults=less(rate_mbps, at_ms=15) if rate_mbps < 100 else [],
        **sections,
    )
    assert found.failures == []
    return dict(found.metrics)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    ("workers", "queue"),
    [
        (4, 64),
        (8, 64),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in ((16, 64), (6, 1000), (12, 1000))),
    ],
)
def test_an_iteration_takes_as_long_when_the_servers_link_is_halved_and_nothing_is_dropped(
    workers: int, queue: int
) -> None:
    before, after = metrics(workers), metrics(workers, 50, queue)
    assert after["iteration_time_s"] == pytest.approx(before["iteration_time_s"], rel=0.15)
    assert after["queue_drops"] == after["resends"] == 0
    # The link is not left idle for that: it carries what it can, to a tenth, from when it is known to be halved.
    sent = after["wire_bytes"] / before["wire_bytes"]
    assert sent > 0.9 * (0.5 - 0.5 * 0.5 / workers)


@pytest.mark.thorough
def test_without_a_rule_everything_is_sent_at_the_rate_that_is_left() -> None:
    before, after = metrics(8, ratio={"rule": "none"}), metrics(8, 50, 64, ratio={"rule": "none"})
    # The first 15 ms of 108 were at the whole rate.
    assert after["iteration_time_s"] == pytest.approx(2 * before["iteration_time_s"] - 0.015, rel=0.1)
    assert after["queue_drops"] == 0 and after["ratio"] == 1


@pytest.mark.thorough
@pytest.mark.parametrize("rate_mbps", [25, pytest.param(75, marks=pytest.mark.nightly)])  # 50: the first test
def test_the_gradient_is_there_as_soon_whatever_is_left_of_the_rate(rate_mbps: int) -> None:
    assert metrics(12, rate_mbps)["sending_time_s"] < 1.1 * metrics(12)["sending_time_s"]


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("pacing", ["even", "active", "aimd", "none"])
@pytest.mark.parametrize(
    ("workers", "compress"), [(8, "none"), (5, "quantise:8"), pytest.param(32, "topk:0.1", marks=pytest.mark.nightly)]
)
def test_undisturbed_everything_is_sent_also_while_links_jitter(pacing: str, workers: int, compress: str) -> None:
    found = run(
        topology={"kind": f"star:{workers + 1}", "link": {"delay_us": 1000, "jitter_us": 1000}},
        compression={"compress": compress},
        transport={"pacing": pacing},
        workload={"workers": workers, "rounds": 2, "values": 17_600},
    )
    assert found.failures == []
    assert found.metrics["least_ratio"] == 1


def test_a_worker_whose_own_link_falls_behind_sends_less_and_the_others_do_not() -> None:
    found = run(
        topology={"kind": "star:9"},
        workload={"workers": 8, "rounds": 1, "values": 35_200},
        faults=[{"fault": "link-change", "link": ["h4", "s1"], "change": {"rate_mbps": 5}, "at_ms": 15}],
    )
    assert found.failures == []
    # A share is an eighth of 100 Mbit/s.
    assert 0.3 < found.metrics["least_ratio"] < 0.7  # type: ignore[operator]
    assert found.metrics["ratio"] == pytest.approx((7 + found.metrics["least_ratio"]) / 8)  # type: ignore[operator]


def test_the_sources_rule_gives_up_most_of_every_gradient() -> None:
    """An unchanged rate has it send nothing more."""
    found = run(
        topology={"kind": "star:13"},
        ratio={"rule": "source"},
        workload={"workers": 12, "rounds": 1, "values": 70_400},
    )
    assert found.failures == []
    assert found.metrics["ratio"] < 0.15  # type: ignore[operator]


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(("workers", "values"), [(4, 17_600), (16, 8_800)])
def test_a_queue_of_a_packet_for_each_worker_suffices_if_workers_are_paced(workers: int, values: int) -> None:
    losses = {}
    for pacing in ("even", "none"):
        found = run(
            topology={"kind": f"star:{workers + 1}", "link": {"queue_packets": workers}},
            ratio={"rule": "none"},
            transport={"pacing": pacing},
            workload={"workers": workers, "rounds": 1, "values": values},
        )
        assert found.failures == []
        losses[pacing] = found.metrics["queue_drops"]
    assert losses["even"] == 0
    assert losses["none"] > 0  # type: ignore[operator]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_the_corrected_rule_costs_less_than_a_point_of_accuracy(seed: int) -> None:
    """The link loses half of its rate early in the training and all gradients are cut from then on."""
    accuracies = {}
    for rule, faults in (("none", []), ("corrected", less(50, at_ms=100))):
        found = run(
            seed,
            ratio={"rule": rule, "initial_rate": "run", "interval_us": 2000},
            workload={"kind": "training", "workers": 8, "rounds": 60, "hidden_units": 64, "learning_rate": 0.3},
            faults=faults,
        )
        assert found.failures == []
        accuracies[rule] = found.metrics["accuracy"]
        if rule == "corrected":
            assert found.metrics["ratio"] < 0.85  # type: ignore[operator]
    assert accuracies["corrected"] >= accuracies["none"] - 0.01  # type: ignore[operator]


# ---- Pacing ----


def sending_s(pacing: str, *, half_of_them_leave: bool) -> float:
    """Until the gradients of all workers that stay are at the server; of the last round."""
    found = run(
        topology={"kind": "star:5"},
        ratio={"rule": "none"},
        transport={"pacing": pacing, "left_after_us": 20_000},
        workload={"workers": 4, "rounds": 2, "values": 35_200},
        faults=[
            {"fault": "agent-stop", "agent": f"worker {index}", "at_ms": 1} for index in range(2 * half_of_them_leave)
        ],
    )
    assert found.failures == []
    seconds = found.tables["rounds"][-1]["sending_time_s"]
    assert isinstance(seconds, float)
    return seconds


@pytest.mark.thorough
def test_the_links_rate_is_divided_among_the_workers_that_still_send() -> None:
    """With half of the workers gone the others have twice the rate; at B1/N they have what they had."""
    everybody = sending_s("active", half_of_them_leave=False)
    assert sending_s("active", half_of_them_leave=True) == pytest.approx(everybody / 2, rel=0.05)
    assert sending_s("even", half_of_them_leave=True) == pytest.approx(everybody, rel=0.05)


AIMD_SHARE = 5 / 8
"""Of the link, at least. At a mark a worker halves its rate; what it sends next still finds a queue above the
threshold, and the next round trip halves it once more. From there it grows evenly. A line from a quarter to the whole
is five eighths in the mean, and the queue of which the marks tell only adds to that."""


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [2, 8])
def test_aimd_carries_what_its_sawtooth_does_and_keeps_the_queue_near_its_threshold(workers: int) -> None:
    found = run(
        topology={"kind": f"star:{workers + 1}", "link": {"queue_packets": 256}},
        switches={"congestion_packets": 20},
        ratio={"rule": "none"},
        transport={"pacing": "aimd"},
        workload={"workers": workers, "rounds": 1, "values": 352_000 // workers},
    )
    assert found.failures == []
    assert found.metrics["queue_drops"] == 0 < found.metrics["marked"]  # type: ignore[operator]
    # Until the news of the threshold is back, 2.5 ms, the queue grows by what the rate is too high: 5 steps of a
    # sixteenth at most, since 4 of them fill 20 packets. And a packet of each worker may come at once.
    assert found.metrics["longest_queue"] <= 20 + 7 + workers  # type: ignore[operator]
    least_s = 32 * 352_000 / 1e8
    assert found.metrics["sending_time_s"] < least_s / AIMD_SHARE  # type: ignore[operator]


def test_a_workers_rate_is_within_2_percent_over_100_ms() -> None:
    """As the switch sees it, of four workers at a quarter of the link. A packet is 0.6 % of what 100 ms carry."""
    found = run(
        topology={"kind": "star:5", "link": {"rate_mbps": 20}},
        ratio={"rule": "none"},
        samples={"interval_us": 100_000},
        workload={"workers": 4, "rounds": 1, "values": 70_400},
    )
    assert found.failures == []
    whole = [row["load"] for row in found.tables["link_samples"]][1:4]
    assert whole == pytest.approx([1.0] * 3, rel=0.02)


def test_workers_that_begin_together_take_turns_so_that_their_rates_settle() -> None:
    """All readings but each one's first; nothing is cut where nothing has fallen."""
    found = run(workload={"workers": 8, "rounds": 1, "values": 35_200})
    assert found.failures == [] and found.metrics["ratio"] == 1
    settled = [row["settled"] for row in found.tables["rates"]]
    assert len(settled) > 100 and settled.count(False) == 8


# ---- Troubles ----


def test_a_link_that_stands_still_for_a_while_decides_nothing() -> None:
    """Nor has anybody left whom nobody waits for, however long the silence is."""
    found = run(
        ratio={"interval_us": 2000},
        transport={"left_after_us": 20_000},
        workload={"workers": 4, "rounds": 1, "values": 35_200},
        faults=[
            {"fault": "link-down", "link": ["h1", "s1"], "at_ms": 10},
            {"fault": "link-up", "link": ["h1", "s1"], "at_ms": 40},
        ],
    )
    assert found.failures == []
    stalled = [row for row in found.tables["rates"] if row["rate_bps"] == 0]
    assert stalled and all(not row["settled"] and row["ratio"] is None for row in stalled)
    assert [row["summed_workers"] for row in found.tables["rounds"]] == [4]
    assert 0.04 < found.metrics["iteration_time_s"] < 0.3  # type: ignore[operator]


def test_a_link_that_never_comes_back_ends_the_run_with_one_line() -> None:
    with pytest.raises(UserError, match=r"no news from server 10\.0\.0\.2 for 0\.5 s in round 0"):
        run(
            transport={"give_up_us": 500_000},
            workload={"workers": 2, "rounds": 1},
            faults=[{"fault": "link-down", "link": ["h1", "s1"], "at_ms": 2}],
        )


@pytest.mark.parametrize(("compress", "summed"), [("none", [4, 3, 3]), ("powersgd:16", [3, 3, 3])])
def test_a_worker_that_leaves_in_the_middle_is_not_waited_for(compress: str, summed: list[int]) -> None:
    """What has come of its gradient counts, if it can be read without the rest."""
    found = run(
        topology={"kind": "star:5"},
        compression={"compress": compress},
        ratio={"rule": "none"},
        transport={"left_after_us": 50_000},
        workload={"workers": 4, "rounds": 3, "values": 17_600},
        faults=[{"fault": "agent-stop", "agent": "worker 1", "at_ms": 1}],
    )
    assert found.failures == []
    times = [row["iteration_time_s"] for row in found.tables["rounds"]]
    assert max(times) > 0.04 > times[-1]
    assert [row["summed_workers"] for row in found.tables["rounds"]] == summed
    assert "h3" not in {row["host"] for row in found.tables["hosts"]}


def test_a_run_that_nobody_came_through_fails_with_one_line() -> None:
    found = run(
        topology={"kind": "star:2"},
        workload={"workers": 1, "rounds": 1},
        faults=[{"fault": "agent-stop", "agent": "worker 0", "at_ms": 0}],
    )
    assert found.failures == ["round 1: no worker was there to its end"]
    assert set(found.metrics.values()) == {None}


def test_a_gradient_of_which_nothing_is_kept_is_an_end_marker() -> None:
    found = run(
        compression={"compress": "threshold:1000"},
        workload={"kind": "training", "workers": 4, "rounds": 3, "hidden_units": 16},
    )
    assert found.failures == []
    assert found.metrics["ratio"] == 1 and found.metrics["wire_bytes"] == HEADER_BYTES
    assert len({row["accuracy"] for row in found.tables["rounds"]}) == 1


def test_a_gradient_of_one_value() -> None:
    found = run(workload={"workers": 2, "rounds": 2, "values": 1})
    assert found.failures == []
    assert found.metrics["ratio"] == 1


@pytest.mark.thorough
@pytest.mark.parametrize("at_ms", [3, 9])
def test_a_worker_whose_host_stood_still_stays_out(at_ms: int) -> None:
    """The server has given it up after 5 s and gone on: what has come of later sums meanwhile is not taken for the
    one that the worker waited for, and until then its gradients are those that were sent."""
    pause = {"fault": "agent-pause", "agent": "worker 0", "for_ms": 5000, "at_ms": at_ms}
    workload = {"workers": 3, "rounds": 10, "values": 1920}
    found = run(topology={"kind": "star:4"}, workload=workload, faults=[pause])
    assert found.failures == []
    summed = [row["summed_workers"] for row in found.tables["rounds"]]
    assert summed[0] == 3 and summed[-1] == 2


def test_sums_of_a_server_that_began_anew_are_not_taken_for_later_ones() -> None:
    restart = [
        {"fault": "agent-stop", "agent": "server", "at_ms": 9},
        {"fault": "agent-start", "agent": "server", "at_ms": 12},
    ]
    workload = {"workers": 3, "rounds": 10, "values": 1920}
    with pytest.raises(UserError, match=r"no news from server .* for 2 s in round [1-9]"):
        run(topology={"kind": "star:4"}, workload=workload, faults=restart, transport={"give_up_us": 2_000_000})
