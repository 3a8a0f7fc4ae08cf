"""Slow start, additive increase, multiplicative decrease, in fragments."""

from __future__ import annotations

import pytest

from gradbed.hosts.transport.congestion_window import (
    CONGESTION_CONTROL_HELP,
    CONGESTION_CONTROLS,
    INITIAL_FRAGMENTS,
    LEAST_AFTER_LOSS_FRAGMENTS,
    LEAST_FRAGMENTS,
    CongestionWindow,
    congestion_window,
)


def acknowledge(
    window: CongestionWindow, first: int, count: int, *, marked: bool = False, limiting: bool = True
) -> int:
    """`count` ACKs to transmissions in order, each of which lets the next one be sent; the order after them."""
    for order in range(first, first + count):
        window.acknowledged(order, next_order=order + window.fragments, marked=marked, limiting=limiting)
    return first + count


def test_slow_start_doubles_then_a_window_of_acks_opens_it_by_one() -> None:
    window = congestion_window(200, "aimd")
    order = acknowledge(window, 0, INITIAL_FRAGMENTS)
    order = acknowledge(window, order, 20)
    assert window.fragments == 40
    window.lost(order, next_order=order)
    assert window.fragments == 20
    for expected in (21, 22, 23):
        # One more than the window, since it grows a little meanwhile.
        order = acknowledge(window, order, expected)
        assert window.fragments == expected


def test_one_decrease_for_all_that_was_sent_before_it() -> None:
    window = congestion_window(64, "aimd")
    acknowledge(window, 0, 54)
    assert window.fragments == 64
    window.lost(54, next_order=100)
    for order in range(55, 100):
        window.acknowledged(order, next_order=100, marked=True, limiting=True)
        window.lost(order, next_order=100)
    assert (window.fragments, window.statistics.decreases) == (32, 1)
    window.acknowledged(100, next_order=120, marked=True, limiting=True)
    assert (window.fragments, window.statistics.decreases) == (16, 2)
    assert window.statistics.congestion_marks == 46


@pytest.mark.parametrize("maximum", [1, 3, 50])
def test_bounds(maximum: int) -> None:
    window = congestion_window(maximum, "aimd")
    acknowledge(window, 0, 200)
    assert window.fragments == maximum
    for order in range(200, 220):
        window.lost(order, next_order=order + 1)
    assert window.fragments == min(LEAST_AFTER_LOSS_FRAGMENTS, maximum)
    acknowledge(window, 220, 20, marked=True)
    assert window.fragments == min(LEAST_FRAGMENTS, maximum)
    window.lost(240, next_order=241)
    assert (window.statistics.least, window.statistics.greatest) == (window.fragments, maximum)


def test_acks_open_no_window_that_nothing_waits_for() -> None:
    window = congestion_window(64, "aimd")
    acknowledge(window, 0, 100, limiting=False)
    assert window.fragments == INITIAL_FRAGMENTS


@pytest.mark.parametrize(
    ("control", "after_loss", "after_mark"), [("aimd", 20, 10), ("ecn", 40, 20), ("none", 40, 40)]
)
def test_what_each_control_heeds(control: str, after_loss: int, after_mark: int) -> None:
    window = congestion_window(40, control)
    order = acknowledge(window, 0, 60)
    window.lost(order, next_order=order)
    assert window.fragments == after_loss
    window.acknowledged(order, next_order=order + 1, marked=True, limiting=True)
    assert window.fragments == after_mark
    assert window.statistics.congestion_marks == 1
    assert window.statistics.mean > 30 or control != "none"


def test_the_help_names_every_control() -> None:
    rest = CONGESTION_CONTROL_HELP.removeprefix("Congestion control: ")
    assert [part.split()[0] for part in rest.split(", ")] == [*CONGESTION_CONTROLS, "or"]
