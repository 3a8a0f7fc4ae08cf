"""How many fragments a worker may have unacknowledged: TCP's slow start, additive increase, multiplicative decrease.

What TCP counts in segments is counted in fragments here (RFC 5681, section 3.1): in slow start each ACK opens
the window by one fragment, later a window's worth of ACKs does. An ACK that is marked (ECN, RFC 3168, section
6.1.2) or a loss halves it, at most once per round trip: only transmissions that were made after the last decrease
count. Time and packets are the caller's; transmissions are numbered in the order in which they were made.

Aggregation's workers have the controls of this module in C (congestion_window.h), since they handle millions of ACKs;
tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import AfterValidator

from gradbed.common.congestion_control import is_plugin, load_control, unknown_control
from gradbed.hosts.transport.statistics import WindowStatistics

INITIAL_FRAGMENTS = 10
"""RFC 6928, section 2."""
LEAST_FRAGMENTS = 4
"""A loss is found without a timer once three later fragments are acknowledged (RFC 5681): fewer would leave it to
timers, which take a hundred times as long as a round trip."""
LEAST_AFTER_LOSS_FRAGMENTS = 8
"""Losses alone close the window no further. Links that lose packets at random hit most fragments of many workers;
small windows then drive the workers apart, and timers grow with the wait for each other."""


class CongestionWindow(Protocol):
    """The window of one sender; it stays from round to round."""

    statistics: WindowStatistics

    @property
    def fragments(self) -> int:
        """Fragments that may be unacknowledged."""

    def acknowledged(self, order: int, next_order: int, marked: bool, limiting: bool) -> None:
        """Take in an ACK to the transmission with place `order`.

        Args:
            order: The place of the transmission among all.
            next_order: The place of the next transmission.
            marked: The packet, or one in its sum, met congestion.
            limiting: Fragments wait for the window to open. If none do, ACKs do not show that the network carries
                more (RFC 7661).
        """

    def lost(self, order: int, *, next_order: int) -> None:
        """Take in that the transmission with place `order` is lost."""


class AimdWindow:
    """Additive increase, multiplicative decrease, as TCP has it."""

    def __init__(self, maximum_fragments: int, *, adapts: bool = True, heeds_losses: bool = True) -> None:
        """Open the window.

        Args:
            maximum_fragments: The window is never larger.
            adapts: False: the window is always the maximum.
            heeds_losses: False: marks alone close the window.
        """
        self._maximum = maximum_fragments
        self._adapts = adapts
        self._heeds_losses = heeds_losses
        self._size = float(min(INITIAL_FRAGMENTS, maximum_fragments) if self._adapts else maximum_fragments)
        self._threshold = float(maximum_fragments)
        self._counts_from = 0
        self._acks = 0
        self._total = 0
        self.statistics = WindowStatistics(least=self.fragments, greatest=self.fragments, last=self.fragments)

    @property
    def fragments(self) -> int:
        return int(self._size)

    def acknowledged(self, order: int, next_order: int, marked: bool, limiting: bool) -> None:
        self._acks += 1
        self._total += int(self._size)
        self.statistics.mean = self._total / self._acks
        if marked:
            self.statistics.congestion_marks += 1
            self._decrease(order, next_order, LEAST_FRAGMENTS)
        elif limiting and self._adapts and self._size < self._maximum:
            self._set(self._size + (1.0 if self._size < self._threshold else 1.0 / self._size))

    def lost(self, order: int, *, next_order: int) -> None:
        if self._heeds_losses:
            self._decrease(order, next_order, LEAST_AFTER_LOSS_FRAGMENTS)

    def _decrease(self, order: int, next_order: int, least: int) -> None:
        if not self._adapts or order < self._counts_from or self._size <= least:
            return
        self._counts_from = next_order
        self._set(max(float(least), self._size / 2))
        self._threshold = self._size
        self.statistics.decreases += 1

    def _set(self, size: float) -> None:
        self._size = min(float(self._maximum), size)
        fragments, statistics = int(self._size), self.statistics
        if fragments != statistics.last:
            statistics.least = min(statistics.least, fragments)
            statistics.greatest = max(statistics.greatest, fragments)
            statistics.last = fragments


class PluginWindow:
    """The window of another package's control (gradbed.common.congestion_control), with what is counted of it."""

    def __init__(self, name: str, maximum_fragments: int) -> None:
        self._control = load_control(name, maximum_fragments)
        self._maximum = maximum_fragments
        self._acks = 0
        self._total = 0
        self.fragments = self._window()
        self.statistics = WindowStatistics(least=self.fragments, greatest=self.fragments, last=self.fragments)

    def acknowledged(self, order: int, next_order: int, marked: bool, limiting: bool) -> None:
        self._acks += 1
        self._total += self.fragments
        self.statistics.mean = self._total / self._acks
        self.statistics.congestion_marks += marked
        self._control.acknowledged(order, next_order, marked=marked, limiting=limiting)
        self._read()

    def lost(self, order: int, *, next_order: int) -> None:
        self._control.lost(order, next_order)
        self._read()

    def _window(self) -> int:
        return min(self._maximum, max(1, int(self._control.window)))

    def _read(self) -> None:
        before, self.fragments, statistics = self.fragments, self._window(), self.statistics
        statistics.decreases += self.fragments < before
        statistics.least = min(statistics.least, self.fragments)
        statistics.greatest = max(statistics.greatest, self.fragments)
        statistics.last = self.fragments


@dataclass(frozen=True)
class WindowControl:
    """A congestion control of a window."""

    open: Callable[[int], CongestionWindow]
    """Called with the window's maximum in fragments."""
    summary: str
    """For the help of options."""


CONGESTION_CONTROLS: Mapping[str, WindowControl] = {
    "aimd": WindowControl(AimdWindow, "aimd"),
    "ecn": WindowControl(lambda maximum: AimdWindow(maximum, heeds_losses=False), "ecn (without heed of losses)"),
    "none": WindowControl(lambda maximum: AimdWindow(maximum, adapts=False), "none"),
}
"""By name."""
CONGESTION_CONTROL_HELP = (
    f"Congestion control: {', '.join(each.summary for each in CONGESTION_CONTROLS.values())}, or one of a plug-in."
)


def congestion_window(maximum_fragments: int, control: str) -> CongestionWindow:
    """Open the window of a congestion control."""
    if control in CONGESTION_CONTROLS:
        return CONGESTION_CONTROLS[control].open(maximum_fragments)
    return PluginWindow(control, maximum_fragments)


def _known(name: str) -> str:
    if name not in CONGESTION_CONTROLS and not is_plugin(name):
        raise ValueError(unknown_control(name, CONGESTION_CONTROLS))
    return name


CongestionControlName = Annotated[str, AfterValidator(_known)]
