"""The source's rule to the letter, the repaired one and its invariants, and when a worker applies them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hosts.systems.compression.rate_adaptation import RateAdaptation
from hosts.systems.compression.rate_monitor import RateMonitor
from hosts.systems.compression.ratio import repaired_ratio, source_ratio
from tests.unit.compression.jobs import job_of

TOTALS = st.integers(1, 10**9)
PARTS = st.floats(0, 1)
RATES = st.floats(1e3, 1e12)

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine may be busy."""


# ---- The formulas ----


@patient
@given(TOTALS, PARTS, RATES, st.floats(0, 3))
def test_the_repaired_ratio_lies_between_what_is_sent_and_all(
    total: int, part: float, initial: float, of_it: float
) -> None:
    sent = part * total
    assert sent / total <= repaired_ratio(sent, total, initial, of_it * initial) * (1 + 1e-12)
    assert repaired_ratio(sent, total, initial, of_it * initial) <= 1


@patient
@given(TOTALS, PARTS, RATES, st.floats(0, 3), st.floats(0, 3))
def test_the_repaired_ratio_never_falls_as_the_rate_rises(
    total: int, part: float, initial: float, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    ratios = [repaired_ratio(part * total, total, initial, each * initial) for each in (low, high)]
    assert ratios[0] <= ratios[1]


@patient
@given(TOTALS, st.floats(0, 0.999), RATES)
def test_the_repaired_ratio_is_1_exactly_if_the_rate_has_not_fallen_or_nothing_is_left(
    total: int, part: float, initial: float
) -> None:
    assert repaired_ratio(part * total, total, initial, initial) == 1
    assert repaired_ratio(part * total, total, initial, 2 * initial) == 1
    assert repaired_ratio(total, total, initial, initial / 2) == 1
    assert repaired_ratio(part * total, total, initial, 0.9 * initial) < 1


@patient
@given(TOTALS, st.floats(0, 0.99), RATES, st.floats(0.001, 1))
def test_the_repaired_rule_takes_as_long_as_if_the_rate_had_not_fallen(
    total: int, part: float, initial: float, of_it: float
) -> None:
    sent, rate = part * total, of_it * initial
    kept = repaired_ratio(sent, total, initial, rate) * total
    assert sent / initial + (kept - sent) / rate == pytest.approx(total / initial, rel=1e-9)


def test_the_floor_is_a_part_of_what_is_left() -> None:
    assert repaired_ratio(40, 100, 10, 0) == 0.4
    assert repaired_ratio(40, 100, 10, 0, floor=0.5) == 0.7


def test_the_source_keeps_more_the_more_the_rate_falls_and_nothing_more_if_it_does_not() -> None:
    assert source_ratio(20, 100, 10, 10) == 0.2
    assert source_ratio(20, 100, 10, 1) == pytest.approx(0.92)
    assert source_ratio(20, 100, 10, 5) == repaired_ratio(20, 100, 10, 5) == 0.6  # they agree here alone


def test_an_empty_gradient_is_sent_as_a_whole() -> None:
    assert source_ratio(0, 0, 10, 5) == repaired_ratio(0, 0, 10, 5) == 1


# ---- Readings ----


def feed(monitor: RateMonitor, packets: list[tuple[int, int]], until_us: int) -> list[tuple[float, float | None]]:
    """(rate, settled) of all intervals; packets: time and bytes."""
    found, waiting = [], list(packets)
    for now_us in range(until_us + 1):
        while waiting and waiting[0][0] == now_us:
            monitor.acknowledged(waiting.pop(0)[1], now_us)
        if (reading := monitor.read(now_us)) is not None:
            found.append((reading.rate_bps, reading.settled_bps))
    return found


def test_readings_do_not_depend_on_where_intervals_cut() -> None:
    """A packet of 100 bytes every 7 us, in intervals of 50 us."""
    monitor = RateMonitor(50, 0.05)
    monitor.begin(0)
    found = feed(monitor, [(7 * n, 100) for n in range(60)], 400)
    assert found == [(pytest.approx(800e6 / 7), None)] + [(pytest.approx(800e6 / 7),) * 2] * 7
    assert monitor.initial_bps == pytest.approx(800e6 / 7)


def test_a_rate_that_falls_is_settled_once_it_stays() -> None:
    monitor = RateMonitor(50, 0.05)
    monitor.begin(0)
    packets = [(5 * n, 100) for n in range(20)] + [(100 + 10 * n, 100) for n in range(20)]
    found = feed(monitor, packets, 250)
    assert [settled for _, settled in found] == [
        None,
        pytest.approx(160e6),
        None,
        pytest.approx(80e6),
        pytest.approx(80e6),
    ]


def test_a_link_that_stands_still_has_no_settled_rate() -> None:
    monitor = RateMonitor(50, 0.05)
    monitor.begin(0)
    found = feed(monitor, [(5 * n, 100) for n in range(21)], 400)
    assert found[2:] == [(0.0, None)] * (len(found) - 2) and len(found) == 8


def test_nothing_is_read_before_the_first_acknowledgement() -> None:
    monitor = RateMonitor(50, 0.05)
    monitor.begin(1000)
    assert monitor.read(5000) is None and monitor.due_us is None and monitor.initial_bps is None


# ---- Decisions ----


def adaptation(**fields: object) -> RateAdaptation:
    return RateAdaptation(job_of(1, server_link_bps=10**8, interval_us=10, **fields))


def decisions(
    made: RateAdaptation, rates: list[int], sent_bytes: int = 1000, planned_bytes: int = 10_000
) -> list[float | None]:
    """The ratio chosen after each interval of 10 us; rates: bytes in each."""
    made.begin(0)
    made.monitor.acknowledged(0, 0)
    found = []
    for number, size in enumerate(rates):
        if size:
            made.monitor.acknowledged(size, 10 * (number + 1))
        decision = made.decide(10 * (number + 1), sent_bytes, planned_bytes)
        found.append(None if decision is None else round(decision.ratio, 6))
    return found


def test_the_repaired_rule_decides_when_a_rate_settles_below_the_last_plan() -> None:
    made = adaptation()
    assert decisions(made, [100, 100, 50, 50, 50, 25, 25, 25]) == [None, None, None, 0.55, None, None, 0.55, None]
    assert [reading["settled"] for reading in made.readings] == [False, True, False, True, True, False, True, True]


def test_the_repaired_rule_lets_a_rate_that_rises_or_wavers_alone() -> None:
    assert decisions(adaptation(), [100, 102, 98, 97, 200, 200, 99, 100]) == [None] * 8


def test_a_rate_of_zero_decides_nothing() -> None:
    assert decisions(adaptation(), [100, 100, 0, 0, 0, 100]) == [None] * 6


def test_the_sources_rule_decides_once_at_the_first_settled_rate() -> None:
    assert decisions(adaptation(ratio="source"), [100, 100, 50, 50]) == [None, 0.1, None, None]


def test_no_rule_never_decides() -> None:
    assert decisions(adaptation(ratio="none"), [100, 100, 50, 50]) == [None] * 4


def test_the_initial_rate_may_be_that_of_the_run() -> None:
    of_run = adaptation(initial_rate="run")
    assert decisions(of_run, [100, 100]) == [None, None]
    assert decisions(of_run, [50, 50]) == [None, 0.55]
    of_iteration = adaptation()
    decisions(of_iteration, [100, 100])
    assert decisions(of_iteration, [50, 50]) == [None, None]
