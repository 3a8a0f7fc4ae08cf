"""Links cut, mended and changed, switches restarted, agents stopped and started, in the middle of an aggregation:
what the protocol survives it survives bit for bit, and what it cannot ends with one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from tests.unit.experiments.virtual_trials import FRAGMENTS, ROUNDS, configuration, events, link, run

Faults = list[dict[str, Any]]
MIDDLE_MS = 4.2
"""In the second of four rounds of 3 ms."""


def between(fault: str, start_ms: float, other: str, end_ms: float, **fields: Any) -> Faults:
    return [{"at_ms": start_ms, "fault": fault, **fields}, {"at_ms": end_ms, "fault": other, **fields}]


def lost(sender: str, receiver: str) -> Callable[[TrialResult], bool]:
    return lambda result: link(result, sender, receiver)["losses"] > 0


def completed_fewer(result: TrialResult) -> bool:
    """A switch that restarts forgets what it has counted."""
    return 0 < events(result)["completed"] < 2 * ROUNDS * FRAGMENTS


def without_account(*hosts: str) -> Callable[[TrialResult], bool]:
    def check(result: TrialResult) -> bool:
        return {row["host"] for row in result.tables["hosts"]} == {"h1", "h2", "h3", "h4", "h5"} - set(hosts)

    return check


SURVIVED: Mapping[str, tuple[Faults, Callable[[TrialResult], bool]]] = {
    "a link between switches is down for a while": (
        between("link-down", MIDDLE_MS, "link-up", MIDDLE_MS + 3, link=["l2", "s1"]),
        lost("l2", "s1"),
    ),
    "a link between switches is down for good": (
        [{"at_ms": MIDDLE_MS, "fault": "link-down", "link": ["l2", "s1"]}],
        # The traffic goes by another way.
        lambda result: link(result, "l2", "s1")["packets"] < FRAGMENTS * ROUNDS,
    ),
    "a worker's link is down for a while": (
        between("link-down", MIDDLE_MS, "link-up", MIDDLE_MS + 5, link=["h3", "l2"]),
        lost("h3", "l2"),
    ),
    "the server's link is down for a while": (
        between("link-down", MIDDLE_MS, "link-up", MIDDLE_MS + 5, link=["h1", "l1"]),
        lost("l1", "h1"),
    ),
    "a link gets slow, long and lossy": (
        [
            {"at_ms": MIDDLE_MS, "fault": "link-change", "link": ["l1", "s1"],
             "change": {"loss": 0.3, "rate_mbps": 20, "delay_us": 1000}},
        ],
        lost("s1", "l1"),
    ),
    "a spine that sums restarts": (
        [{"at_ms": MIDDLE_MS, "fault": "switch-restart", "switch": "s1"}],
        completed_fewer,
    ),
    "the server's ToR restarts": (
        [{"at_ms": MIDDLE_MS, "fault": "switch-restart", "switch": "l1"}],
        lambda result: completed_fewer(result) and without_account("h1", "h2")(result)
        and result.metrics["server_bytes"] is None,
    ),
    "a worker's ToR restarts": (
        [{"at_ms": MIDDLE_MS, "fault": "switch-restart", "switch": "l2"}],
        lambda result: without_account("h3", "h4")(result) and result.metrics["wire_throughput_bps"] is None,
    ),
    "a worker starts anew": (
        between("agent-stop", 0.5, "agent-start", 0.8, agent="worker 0"),
        lambda result: without_account("h2")(result) and result.metrics["resends"] > 0,
    ),
    "the server starts anew": (
        between("agent-stop", 0.0, "agent-start", 0.6, agent="server"),
        lambda result: without_account("h1")(result) and result.metrics["resends"] > 0,
    ),
    "a link damages bits": (
        [{"at_ms": 0, "fault": "link-change", "link": ["h3", "l2"], "change": {"bit_error_rate": 1e-4}}],
        lost("h3", "l2"),
    ),
    "the controller is killed": (
        [{"at_ms": MIDDLE_MS, "fault": "controller-restart"}],
        # What switches hold is left alone: no packet misses it.
        lambda result: events(result)["completed"] == 2 * ROUNDS * FRAGMENTS and result.metrics["resends"] == 0,
    ),
    "the controller is killed and another one stood by": (
        [{"at_ms": MIDDLE_MS, "fault": "controller-failover"}],
        lambda result: events(result)["completed"] == 2 * ROUNDS * FRAGMENTS and result.metrics["resends"] == 0,
    ),
    "the controller is killed when a link is down": (
        [
            {"at_ms": MIDDLE_MS, "fault": "link-down", "link": ["l2", "s1"]},
            {"at_ms": MIDDLE_MS + 2, "fault": "controller-restart"},
        ],
        # Its successor hears of it: the traffic goes on by the other way.
        lambda result: link(result, "l2", "s1")["losses"] < FRAGMENTS,
    ),
    "a worker's host stands still": (
        [{"at_ms": MIDDLE_MS, "fault": "agent-pause", "agent": "worker 0", "for_ms": 50}],
        lambda result: result.tables["timeline"][-1]["time_us"] > 54_000,
    ),
    "the server's host stands still": (
        [{"at_ms": MIDDLE_MS, "fault": "agent-pause", "agent": "server", "for_ms": 5000}],
        lambda result: result.metrics["resends"] > 0,
    ),
}  # fmt: skip


def test_an_agent_that_is_paused_at_the_end_is_stopped_all_the_same() -> None:
    """The last sums are on their way, and the server would sleep for an hour."""
    complete_us = run().tables["timeline"][-1]["time_us"]
    pause = {"at_ms": (complete_us - 50) / 1000, "fault": "agent-pause", "agent": "server", "for_ms": 3.6e6}
    result = run(faults=[pause])
    assert [row["name"] for row in result.tables["timeline"] if row["what"] == "fault"]
    assert result.failures == []
    assert result.tables["timeline"][-1]["time_us"] == complete_us


TEXTS: Mapping[str, dict[str, Any]] = {
    "link-down:l2-s1@4.5": {"fault": "link-down", "link": ("l2", "s1"), "at_ms": 4.5},
    "link-change:l2-s1,loss=0.1,reorder=true@3": {
        "fault": "link-change", "link": ("l2", "s1"), "change": {"loss": 0.1, "reorder": True}, "at_ms": 3,
    },
    "switch-restart:s1@1": {"fault": "switch-restart", "switch": "s1", "at_ms": 1},
    "controller-restart@2": {"fault": "controller-restart", "at_ms": 2},
    "controller-failover@2": {"fault": "controller-failover", "at_ms": 2},
    "agent-stop:worker 0,job=2@5": {"fault": "agent-stop", "agent": "worker 0", "job": 2, "at_ms": 5},
    "agent-pause:server,for_ms=5000@5": {"fault": "agent-pause", "agent": "server", "for_ms": 5000, "at_ms": 5},
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_fault_as_text_is_the_same_as_its_mapping(text: str) -> None:
    assert configuration(faults=[text]).faults == configuration(faults=[TEXTS[text]]).faults


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("link-down:l2-s9@1", "no link or host 'l2-s9'"),
        ("link-down:h1@1", "h1 is a host"),
        ("link-down:l2-s1", "is not KIND"),
        ("link-down@1", "is not KIND"),
        ("controller-restart:s1@1", "is not KIND"),
        ("link-change:l2-s1,loss@1", "is not KIND"),
        ("link-change:l2-s1,loss=2@1", "loss: must be less than 1"),
        ("link-change:l2-s1,speed=2@1", "speed: is not known here"),
        ("agent-pause:server@1", "for_ms: is missing"),
        ("switch-restart:s1@soon", "at_ms: must be a number"),
        ("meteorite@1", "must be one of .link-down., "),
    ],
)
def test_a_wrong_text_is_one_line(text: str, line: str) -> None:
    with pytest.raises(ValidationError, match=line):
        configuration(faults=[text])


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("case", SURVIVED)
def test_sums_are_exact_whatever_happens(case: str) -> None:
    faults, happened = SURVIVED[case]
    result = run(faults=faults, timing={"control_delay_us": 500})
    assert result.failures == []
    assert happened(result)


def test_a_switch_is_without_its_program_until_the_controller_has_heard_of_it() -> None:
    restart = [{"at_ms": MIDDLE_MS, "fault": "switch-restart", "switch": "s1"}]
    at_once, late = (run(faults=restart, timing={"control_delay_us": delay}) for delay in (0, 5000))
    assert at_once.failures == late.failures == []
    assert at_once.metrics["resends"] < late.metrics["resends"]
    assert late.metrics["round_time_s"] >= at_once.metrics["round_time_s"]


def test_every_phase_has_the_faults_at_its_own_time() -> None:
    """Of each phase's own jobs, too, whose numbers at the controller go on."""
    faults = [
        *between("agent-stop", 0.0, "agent-start", 0.3, agent="worker 1", job=2),
        *between("link-down", 1, "link-up", 2, link=["l2", "h3"]),
    ]
    result = run(faults=faults, workload={"workers": 2, "jobs": 2, "baselines": ["parameter-server"]})
    assert result.failures == []
    losses = {row["phase"]: row["losses"] for row in result.tables["links"] if row["to"] == "h3"}
    assert set(losses) == {"parameter server", "in-network"}
    assert all(losses.values())
    accounts = [(row["phase"], row["job"]) for row in result.tables["hosts"]]
    assert accounts.count(("parameter server", 2)) == accounts.count(("in-network", 2)) == 2


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("faults", "line"),
    [
        ([{"at_ms": MIDDLE_MS, "fault": "link-down", "link": ["h3", "l2"]}], "no ACK from server .* for 30 s"),
        ([{"at_ms": MIDDLE_MS, "fault": "link-down", "link": ["h1", "l1"]}], "no ACK from server .* for 30 s"),
        ([{"at_ms": MIDDLE_MS, "fault": "agent-stop", "agent": "worker 0"}], "no ACK from server .* for 30 s"),
        ([{"at_ms": MIDDLE_MS, "fault": "agent-stop", "agent": "server"}], "no ACK from server .* for 30 s"),
        # Nobody has the sums of the first rounds any more.
        (between("agent-stop", 10, "agent-start", 10.1, agent="worker 0"), "no ACK from server .* in round 0"),
        ([{"at_ms": 1, "fault": "agent-stop", "agent": "worker 9"}], "no agent worker 9 of job 1"),
        ([{"at_ms": 1, "fault": "agent-start", "agent": "worker 9"}], "job 1 has had no agent worker 9"),
        ([{"at_ms": 1, "fault": "agent-start", "agent": "worker 0"}], "job 1 has an agent worker 0 already"),
        ([{"at_ms": 1, "fault": "agent-stop", "agent": "worker 0", "job": 2}], "there is no job 2"),
        ([{"at_ms": 1, "fault": "agent-pause", "agent": "worker 9", "for_ms": 1}], "no agent worker 9 .* be paused"),
    ],
)  # fmt: skip
def test_what_cannot_go_on_ends_with_one_line(faults: Faults, line: str) -> None:
    with pytest.raises(UserError, match=line) as told:
        run(faults=faults)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ({"fault": "switch-restart", "switch": "s9"}, "no switch 's9'"),
        ({"fault": "link-down", "link": ["s1", "s2"]}, "no link between 's1' and 's2'"),
        ({"fault": "link-change", "link": ["s1", "l1"], "change": {"speed": 1}}, "speed"),
        ({"fault": "meteorite"}, "meteorite"),
    ],
)
def test_faults_of_what_is_not_there_are_refused_before_anything_runs(fault: dict[str, Any], line: str) -> None:
    with pytest.raises(ValidationError, match=line):
        configuration(faults=[{"at_ms": 1, **fault}])
