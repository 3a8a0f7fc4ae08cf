"""Slow start, additive increase, multiplicative decrease, in fragments: of the window in C, and of the reference."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest

from gradbed.common.c_library import shared_library
from gradbed.hosts.transport.congestion_window import (
    CONGESTION_CONTROL_HELP,
    CONGESTION_CONTROLS,
    window_control,
    window_statistics,
)
from gradbed.hosts.transport.library import TRANSPORT_FOLDER, WindowStruct
from gradbed.hosts.transport.statistics import WindowStatistics
from tests.unit.hosts.transport.reference import congestion_window as reference
from tests.unit.hosts.transport.reference.congestion_window import (
    INITIAL_FRAGMENTS,
    LEAST_AFTER_LOSS_FRAGMENTS,
    LEAST_FRAGMENTS,
)

FUNCTIONS = """
#include "congestion_window.h"
typedef struct gb_congestion_window window;
void opened(window *w, int64_t most, int adapts, int heeds_losses) { window_open(w, most, adapts, heeds_losses); }
void acknowledged(window *w, int64_t order, int64_t next, int marked, int limiting) {
    window_acknowledged(w, order, next, marked, limiting);
}
void lost(window *w, int64_t order, int64_t next) { window_lost(w, order, next); }
"""


class CompiledWindow:
    """The window of congestion_window.h."""

    def __init__(self, maximum_fragments: int, control: str) -> None:
        path = shared_library("test-window", (), FUNCTIONS, include_dirs=(TRANSPORT_FOLDER,))
        self._library = ctypes.PyDLL(str(path))
        self._window = WindowStruct()
        self._call("opened", maximum_fragments, window_control(control).adapts, window_control(control).heeds_losses)

    def _call(self, name: str, *numbers: int) -> None:
        self._library[name](ctypes.byref(self._window), *map(ctypes.c_int64, numbers))

    @property
    def fragments(self) -> int:
        return int(self._window.size)

    def acknowledged(self, order: int, next_order: int, marked: bool, limiting: bool) -> None:
        self._call("acknowledged", order, next_order, marked, limiting)

    def lost(self, order: int, *, next_order: int) -> None:
        self._call("lost", order, next_order)

    @property
    def statistics(self) -> WindowStatistics:
        return window_statistics(self._window)


Window = CompiledWindow | reference.CongestionWindow
Opener = Callable[[int, str], Window]


@pytest.fixture(params=[CompiledWindow, reference.CongestionWindow])
def congestion_window(request: pytest.FixtureRequest) -> Opener:
    opener: Opener = request.param
    return opener


def acknowledge(window: Window, first: int, count: int, *, marked: bool = False, limiting: bool = True) -> int:
    """`count` ACKs to transmissions in order, each of which lets the next one be sent; the order after them."""
    for order in range(first, first + count):
        window.acknowledged(order, next_order=order + window.fragments, marked=marked, limiting=limiting)
    return first + count


def test_slow_start_doubles_then_a_window_of_acks_opens_it_by_one(congestion_window: Opener) -> None:
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


def test_one_decrease_for_all_that_was_sent_before_it(congestion_window: Opener) -> None:
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
def test_bounds(congestion_window: Opener, maximum: int) -> None:
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


def test_acks_open_no_window_that_nothing_waits_for(congestion_window: Opener) -> None:
    window = congestion_window(64, "aimd")
    acknowledge(window, 0, 100, limiting=False)
    assert window.fragments == INITIAL_FRAGMENTS


@pytest.mark.parametrize(
    ("control", "after_loss", "after_mark"), [("aimd", 20, 10), ("ecn", 40, 20), ("none", 40, 40)]
)
def test_what_each_control_heeds(congestion_window: Opener, control: str, after_loss: int, after_mark: int) -> None:
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
