"""Pausing, stepping and slowing down, on a real time that the test makes."""

from __future__ import annotations

import pytest

from gradbed.experiments.live.observer import Pace


class RealTime:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_freely_nothing_waits() -> None:
    pace = Pace(RealTime())
    assert pace.ahead_s(10**9) == 0
    assert pace.next_us(5) is None


def test_a_tenth_of_the_speed_waits_ten_times_as_long() -> None:
    real = RealTime()
    pace = Pace(real)
    pace.set_speed(1000, 0.1)
    assert pace.ahead_s(11_000) == pytest.approx(0.1)
    real.now_s += 0.1
    assert abs(pace.ahead_s(11_000)) < 1e-9
    assert pace.next_us(11_000) == 13_000


def test_time_that_was_spent_paused_is_not_made_up_for() -> None:
    real = RealTime()
    pace = Pace(real)
    pace.set_speed(0, 1.0)
    pace.pause()
    real.now_s += 60
    pace.run(2_000_000)
    assert pace.ahead_s(3_000_000) == 1.0


def test_a_step_ends_where_it_should() -> None:
    pace = Pace(RealTime())
    pace.pause()
    pace.step(500, 100)
    assert not pace.paused
    assert pace.next_us(500) == 600
    pace.arrived(599)
    assert not pace.paused
    pace.arrived(600)
    assert pace.paused
    # Going on goes on, whatever steps there were.
    pace.run(600)
    pace.arrived(10_000)
    assert not pace.paused


def test_the_smallest_step_is_one_moment() -> None:
    pace = Pace(RealTime())
    pace.pause()
    pace.step(500, 0)
    pace.arrived(500)
    assert pace.paused
