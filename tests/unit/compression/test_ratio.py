"""The rule as published, the corrected one and its invariants, and when a worker applies them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradbed.hosts.systems.compression.rate import Backlog, RateAdaptation, RateMonitor, corrected_ratio, source_ratio
from gradbed.hosts.systems.compression.transport import News
from tests.unit.compression.jobs import job_of

TOTALS = st.integers(1, 10**9)
PARTS = st.floats(0, 1)
RATES = st.floats(1e3, 1e12)

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine may be busy."""


# ---- The formulas ----


@patient
@given(TOTALS, PARTS, RATES, st.floats(0, 3))
def test_the_corrected_ratio_lies_between_what_is_sent_and_all(
    total: int, part: float, initial: float, of_it: float
) -> None:
    sent = part * total
    assert sent / total <= corrected_ratio(sent, total, initial, of_it * initial) * (1 + 1e-12)
    assert corrected_ratio(sent, total, initial, of_it * initial) <= 1


@patient
@given(TOTALS, PARTS, RATES, st.floats(0, 3), st.floats(0, 3))
def test_the_corrected_ratio_never_falls_as_the_rate_rises(
    total: int, part: float, initial: float, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    ratios = [corrected_ratio(part * total, total, initial, each * initial) for each in (low, high)]
    assert ratios[0] <= ratios[1]


@patient
@given(TOTALS, st.floats(0, 0.999), RATES)
def test_the_corrected_ratio_is_1_exactly_if_the_rate_has_not_fallen_or_nothing_is_left(
    total: int, part: float, initial: float
) -> None:
    assert corrected_ratio(part * total, total, initial, initial) == 1
    assert corrected_ratio(part * total, total, initial, 2 * initial) == 1
    assert corrected_ratio(total, total, initial, initial / 2) == 1
    assert corrected_ratio(part * total, total, initial, 0.9 * initial) < 1


@patient
@given(TOTALS, st.floats(0, 0.99), RATES, st.floats(0.001, 1))
def test_the_corrected_rule_takes_as_long_as_if_the_rate_had_not_fallen(
    total: int, part: float, initial: float, of_it: float
) -> None:
    sent, rate = part * total, of_it * initial
    kept = corrected_ratio(sent, total, initial, rate) * total
    assert sent / initial + (kept - sent) / rate == pytest.approx(total / initial, rel=1e-9)


@patient
@given(TOTALS, st.floats(0, 0.99), RATES, st.floats(0.001, 1), st.floats(0, 2))
def test_with_the_sum_an_iteration_takes_as_long_as_if_the_rate_had_not_fallen(
    total: int, part: float, initial: float, of_it: float, share: float
) -> None:
    """But for what would take more than half of the rest of the gradient."""
    sent, rate, share = part * total, of_it * initial, share * total
    alone = corrected_ratio(sent, total, initial, rate) * total - sent
    kept = corrected_ratio(sent, total, initial, rate, sum_share=share) * total - sent
    if kept > 0.5000001 * alone:
        assert sent / initial + (kept + share) / rate == pytest.approx((total + share) / initial, rel=1e-6)
    assert 0.4999999 * alone <= kept <= alone * (1 + 1e-9)


def test_the_floor_is_a_part_of_what_is_left() -> None:
    assert corrected_ratio(40, 100, 10, 0) == 0.4
    assert corrected_ratio(40, 100, 10, 0, floor=0.5) == 0.7


def test_the_source_keeps_more_the_more_the_rate_falls_and_nothing_more_if_it_does_not() -> None:
    assert source_ratio(20, 100, 10, 10) == 0.2
    assert source_ratio(20, 100, 10, 1) == pytest.approx(0.92)
    assert source_ratio(20, 100, 10, 5) == corrected_ratio(20, 100, 10, 5) == 0.6  # they agree here alone


def test_an_empty_gradient_is_sent_as_a_whole() -> None:
    assert source_ratio(0, 0, 10, 5) == corrected_ratio(0, 0, 10, 5) == 1


# ---- Readings ----


def feed(monitor: RateMonitor, packets: list[tuple[int, int]], until_us: int) -> list[tuple[float, float | None]]:
    """(rate, settled) of all intervals; packets: time and bytes."""
    found, waiting = [], list(packets)
    for now_us in range(until_us + 1):
        while waiting and waiting[0][0] == now_us:
            monitor.acknowledged(waiting.pop(0)[1], now_us, arrived_us=now_us, sent_us=now_us // 2)
        if (reading := monitor.read(now_us)) is not None:
            found.append((reading.rate_bps, reading.settled_bps))
    return found


def test_readings_do_not_depend_on_where_intervals_cut() -> None:
    """A packet of 100 bytes every 7 us, in intervals of 50 us."""
    monitor = RateMonitor(50, 0.05)
    found = feed(monitor, [(7 * n, 100) for n in range(60)], 400)
    assert found == [(pytest.approx(800e6 / 7), None)] + [(pytest.approx(800e6 / 7),) * 2] * 7
    assert monitor.initial_bps == pytest.approx(800e6 / 7)


def test_a_rate_that_falls_is_settled_once_it_stays() -> None:
    monitor = RateMonitor(50, 0.05)
    packets = [(5 * n, 100) for n in range(20)] + [(100 + 10 * n, 100) for n in range(20)]
    found = feed(monitor, packets, 250)
    assert [settled for _, settled in found] == [
        None,
        pytest.approx(160e6),
        None,
        pytest.approx(80e6),
        pytest.approx(80e6),
    ]


def test_a_settled_rate_is_the_earlier_of_the_two() -> None:
    """100 bytes in 5 us, and then 97."""
    monitor = RateMonitor(50, 0.05)
    packets = [(0, 0), *((5 * n, 100) for n in range(1, 11)), *((5 * n, 97) for n in range(11, 21))]
    assert feed(monitor, packets, 100) == [
        (pytest.approx(160e6), None),
        (pytest.approx(155.2e6), pytest.approx(160e6)),
    ]


def test_a_link_that_stands_still_has_no_settled_rate() -> None:
    monitor = RateMonitor(50, 0.05)
    found = feed(monitor, [(5 * n, 100) for n in range(21)], 400)
    assert found[2:] == [(0.0, None)] * (len(found) - 2) and len(found) == 8


def test_a_reading_tells_at_which_rate_its_packets_were_sent() -> None:
    """At twice the rate at which they arrived, by whatever clock."""
    monitor = RateMonitor(50, 0.05)
    for now_us in range(0, 60, 10):
        monitor.acknowledged(100, now_us, arrived_us=2**33 + now_us, sent_us=now_us // 2)
    reading = monitor.read(50)
    assert reading is not None and (reading.rate_bps, reading.sent_bps) == (80e6, 160e6)


def test_nothing_is_read_before_the_first_acknowledgement() -> None:
    monitor = RateMonitor(50, 0.05)
    assert monitor.read(5000) is None and monitor.due_us is None and monitor.initial_bps is None


# ---- Backlogs ----


def has_backlog(backlog: Backlog, *intervals: list[int]) -> list[bool]:
    """Round trips, of all intervals."""
    found = []
    for round_trips in intervals:
        for each in round_trips:
            backlog.sample(each)
        found.append(backlog.read())
    return found


def test_a_backlog_keeps_every_packet_waiting() -> None:
    backlog = Backlog(usual_us=100)
    backlog.begin()
    assert has_backlog(backlog, [50, 60], [150, 150], [151, 200], [151, 150]) == [False, False, True, False]
    assert has_backlog(backlog, [], [500]) == [False, True]
    # A path that has become longer is taken for that from the second gradient on.
    backlog.begin()
    assert has_backlog(backlog, [500]) == [True]
    backlog.begin()
    assert has_backlog(backlog, [500], [700]) == [False, True]


def test_round_trips_that_vary_are_no_backlog() -> None:
    drawn = np.random.default_rng(1).integers(0, 2000, (200, 3))
    backlog = Backlog(usual_us=100)
    backlog.begin()
    assert not any(has_backlog(backlog, *drawn.tolist()))
    assert has_backlog(backlog, *(drawn[:3] + 15_000).tolist()) == [True] * 3


# ---- Decisions ----

INTERVAL_US = 10_000
FALLING_BEHIND = [5000 * n for n in range(1, 9)]
"""Twice as much is sent as arrives. At 100 Mbit/s packets of two workers wait 237 us for each other at most."""


class Message:
    """GradientMessage as far as decisions go."""

    planned_bytes = 10_000
    sum_bytes = 0


class Watched:
    """A worker whose packets arrive at the rates that are told, in kB an interval. waits_us: of its packets in each
    interval. others: kB that come of the other workers meanwhile."""

    def __init__(self, workers: int = 1, **fields: object) -> None:
        job = job_of(workers, server_link_bps=10**8 * workers, interval_us=INTERVAL_US, **fields)
        self.made = RateAdaptation(job)
        self.now_us, self.arrived_bytes = 10**6, 0
        self.workers = workers

    def decisions(
        self, rates: list[int], waits_us: list[int] | None = None, others: list[int] | None = None
    ) -> list[float | None]:
        self.made.begin()
        found: list[float | None] = []
        waits_us = (waits_us or FALLING_BEHIND)[: len(rates)]
        columns = zip([0, *rates], [0, *waits_us], [0, *(others or [0] * len(rates))], strict=True)
        for number, (size, wait_us, by_others) in enumerate(columns):
            self.now_us += INTERVAL_US
            self.arrived_bytes += 1000 * (size + by_others)
            if size or not number:
                frame = {"time_us": self.now_us, "arrived_bytes": self.arrived_bytes, "active": self.workers}
                news = News(1000 * size, self.now_us - 100 - wait_us, 100 + wait_us)
                self.made.acknowledged(news, frame, self.now_us)
            finding = self.made.read(self.now_us)
            if number:
                assert finding is not None
                decision = self.made.decide(finding, Message(), 1000)  # type: ignore[arg-type]
                found.append(None if decision is None else round(decision.ratio, 6))
        return found


def test_the_corrected_rule_decides_when_a_rate_settles_below_the_last_plan() -> None:
    watched = Watched()
    assert watched.decisions([100, 100, 50, 50, 50, 25, 25, 25]) == [None, None, None, 0.55, None, None, 0.55, None]
    settled = [reading["settled"] for reading in watched.made.readings]
    assert settled == [False, True, False, True, True, False, True, True]


def test_a_rate_that_falls_without_a_backlog_is_the_workers_own_doing() -> None:
    assert Watched().decisions([100, 100, 50, 50, 50], [0] * 5) == [None] * 5


def test_a_path_that_has_become_longer_once_is_no_backlog() -> None:
    rates, waits_us = [100, 100, 50, 100, 50, 50, 50], [0, 0, 5000, 5000, 5000, 5000, 5000]
    assert Watched().decisions(rates, waits_us) == [None] * 7


@pytest.mark.parametrize("pacing", ["even", "active", "aimd", "none"])
def test_what_a_worker_loses_to_others_is_its_own_loss_only_where_none_competes(pacing: str) -> None:
    """Half of its rate, while the server gets as much as before of all together."""
    decisions = Watched(2, pacing=pacing).decisions([100, 100, 50, 50, 50], others=[100, 100, 150, 150, 150])
    cut = pacing in ("even", "active")
    assert decisions == [None, None, None, 0.55 if cut else None, None]


@pytest.mark.parametrize("pacing", ["even", "aimd"])
def test_a_fall_for_all_is_read_of_all_together(pacing: str) -> None:
    """Its own rate falls to a quarter, since another takes more, and that of all to a half."""
    decisions = Watched(2, pacing=pacing).decisions([100, 100, 25, 25, 25], others=[100, 100, 75, 75, 75])
    assert decisions == [None, None, None, 0.55, None]


def test_the_corrected_rule_lets_a_rate_that_rises_or_wavers_alone() -> None:
    assert Watched().decisions([100, 102, 98, 97, 200, 200, 99, 100]) == [None] * 8
    # Of two readings in turn both are below.
    assert Watched(settled_within=0.1).decisions([100, 100, 79, 81, 100]) == [None] * 5


def test_a_rate_of_zero_decides_nothing() -> None:
    assert Watched().decisions([100, 100, 0, 0, 0, 100]) == [None] * 6


def test_the_sources_rule_decides_once_at_the_first_settled_rate_whyever_it_fell() -> None:
    assert Watched(ratio="source").decisions([100, 100, 50, 50], [0] * 4) == [None, 0.1, None, None]


def test_no_rule_never_decides() -> None:
    assert Watched(ratio="none").decisions([100, 100, 50, 50]) == [None] * 4


def test_the_initial_rate_may_be_that_of_the_run() -> None:
    of_run = Watched(initial_rate="run")
    assert of_run.decisions([100, 100]) == [None, None]
    assert of_run.decisions([50, 50, 50, 50]) == [None, None, 0.55, None]
    of_iteration = Watched()
    of_iteration.decisions([100, 100])
    assert of_iteration.decisions([50, 50, 50, 50]) == [None] * 4


def test_all_workers_together_never_have_had_more_than_their_link() -> None:
    """125 kB in 10 ms; what came after a pause may have waited."""
    assert Watched(pacing="aimd").decisions([160, 120, 120, 120]) == [None] * 4
