"""Every rule on its own, and what the worst of them makes of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradbed.experiments.validity.verdict import (
    LIMITS,
    NO_EVIDENCE,
    ValidityMeasures,
    ValidityReport,
    VerdictWord,
    judge,
    worst_report,
)

GOOD = ValidityMeasures(
    duration_s=10.0,
    machine_busy=0.4,
    machine_stolen=0.0,
    switch_busy=0.3,
    switch_waiting=0.01,
    agent_busy=0.2,
    agent_waiting=0.02,
    agent_wait_us=20.0,
    link_achieved=0.995,
    links_backlogged=3,
    late_mean_us=40.0,
    late_p99_us=256.0,
    late_max_us=4096.0,
    packet_time_us=1200.0,
    socket_packets=10_000,
)


def test_a_machine_that_keeps_up() -> None:
    report = judge(GOOD)
    assert report.verdict == "valid"
    assert report.reasons == ()


@pytest.mark.parametrize(
    ("name", "degraded", "invalid", "word"),
    [
        ("machine_busy", 0.93, 0.99, "the run itself used"),
        ("machine_stolen", 0.05, 0.20, "hypervisor"),
        ("switch_busy", 0.80, 0.97, "switch's busiest thread"),
        ("switch_waiting", 0.15, 0.40, "switch's thread waited"),
        ("agent_busy", 0.80, 0.97, "busiest agent"),
        ("agent_waiting", 0.4, 0.7, "waited most for a processor"),
        ("agent_wait_us", 700.0, 2500.0, "agents waited"),
        ("link_achieved", 0.95, 0.85, "rate is off"),
        ("link_achieved", 1.05, 1.15, "rate is off"),
        ("late_mean_us", 400.0, 1300.0, "late on average"),
        ("late_p99_us", 2048.0, 16384.0, "late by at least"),
        ("socket_drops", 1, 100, "lost in sockets"),
    ],
)
def test_each_rule(name: str, degraded: float, invalid: float, word: str) -> None:
    for value, verdict in ((degraded, "degraded"), (invalid, "invalid")):
        report = judge(replace(GOOD, **{name: value}))
        assert report.verdict == verdict
        assert len(report.reasons) == 1
        assert word in report.reasons[0]


def test_the_worst_rule_decides_and_comes_first() -> None:
    report = judge(replace(GOOD, machine_busy=0.9, link_achieved=0.5, agent_busy=0.8))
    assert report.verdict == "invalid"
    assert "rate is off by 50 %" in report.reasons[0]
    assert len(report.reasons) == 3


def test_other_programs_are_named_where_they_may_be_the_cause() -> None:
    assert judge(replace(GOOD, machine_busy=0.9, machine_others=0.2)).verdict == "valid"
    report = judge(replace(GOOD, switch_waiting=0.2, machine_others=0.2))
    assert len(report.reasons) == 2
    assert "other programs used 20 %" in report.reasons[-1]


@pytest.mark.parametrize(
    ("busy", "others", "verdict"),
    [(0.95, 0.2, "valid"), (0.95, 0.0, "degraded"), (0.5, 0.35, "degraded"), (1.0, 1.0, "degraded")],
)
def test_what_other_programs_used_is_not_the_runs_own(busy: float, others: float, verdict: str) -> None:
    """A machine that others use is degraded at best."""
    assert judge(replace(GOOD, machine_busy=busy, machine_others=others)).verdict == verdict
    report = judge(replace(GOOD, machine_busy=0.99, machine_others=0.5))
    assert (report.verdict, report.reasons) == (
        "degraded", ("of all processors other programs used 50 % (limit 30 %)",),
    )  # fmt: skip


def test_nothing_measured_is_not_known() -> None:
    report = judge(ValidityMeasures())
    assert report.verdict == "unknown"
    assert report.reasons == (NO_EVIDENCE,)


def test_without_rates_and_timers_a_run_is_unknown_or_worse() -> None:
    unlimited = replace(GOOD, packet_time_us=None, link_achieved=None, links_backlogged=0)
    assert judge(unlimited).verdict == "unknown"
    # What can be seen of the machine counts all the same.
    assert judge(replace(unlimited, agent_waiting=0.5)).verdict == "degraded"
    assert judge(replace(unlimited, machine_busy=0.99)).verdict == "invalid"
    # Either is evidence.
    assert judge(replace(unlimited, link_achieved=0.99)).verdict == "valid"
    assert judge(replace(unlimited, packet_time_us=1200.0)).verdict == "valid"


def test_the_gravest_of_several_reports() -> None:
    words: list[VerdictWord] = ["valid", "unknown", "simulated", "degraded", "invalid"]
    reports = [ValidityReport(verdict=word) for word in words]
    assert [worst_report(reports[:end]).verdict for end in range(1, 6)] == [
        "valid", "unknown", "unknown", "degraded", "invalid",
    ]  # fmt: skip
    first, second = (ValidityReport(verdict="degraded", reasons=(word,)) for word in "ab")
    assert worst_report([first, second]) is first


def test_a_report_survives_its_columns() -> None:
    report = judge(replace(GOOD, machine_busy=0.99, agent_busy=0.8))
    assert ValidityReport.of_columns(report.columns()) == report


def test_limits_are_in_order() -> None:
    assert all(limit.degraded < limit.invalid for limit in LIMITS)


def test_columns_are_flat() -> None:
    columns = judge(replace(GOOD, machine_busy=0.9)).columns()
    assert columns["verdict"] == "degraded"
    assert columns["validity_link_achieved"] == 0.995
    assert all(value is None or isinstance(value, (str, int, float)) for value in columns.values())
