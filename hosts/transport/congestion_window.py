"""The congestion controls of senders' windows, by name. The windows themselves are in C (congestion_window.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from gradbed.common.congestion_control import WindowCallbacks, is_plugin, unknown_control
from gradbed.hosts.transport.statistics import WindowStatistics


@dataclass(frozen=True)
class WindowControl:
    """A congestion control of a window, as `window_open` of congestion_window.h takes it."""

    adapts: bool
    """False: the window is always its maximum, unless a plug-in moves it."""
    heeds_losses: bool
    """False: marks alone close the window."""
    summary: str
    """For the help of options."""


CONGESTION_CONTROLS: Mapping[str, WindowControl] = {
    "aimd": WindowControl(adapts=True, heeds_losses=True, summary="aimd"),
    "ecn": WindowControl(adapts=True, heeds_losses=False, summary="ecn (without heed of losses)"),
    "none": WindowControl(adapts=False, heeds_losses=False, summary="none"),
}
"""By name."""
CONGESTION_CONTROL_HELP = (
    f"Congestion control: {', '.join(each.summary for each in CONGESTION_CONTROLS.values())}, or one of a plug-in."
)


def window_control(name: str) -> WindowControl:
    """Return the control of that name; a plug-in's is one that leaves the window alone until it is told."""
    return CONGESTION_CONTROLS.get(name) or WindowControl(adapts=False, heeds_losses=False, summary=name)


def plugin_callbacks(name: str, window: Any) -> WindowCallbacks | None:
    """Let a plug-in move a window that has just been opened; None: the control is none of a plug-in.

    Args:
        name: The name of the control.
        window: A `struct gb_congestion_window`. It calls what is returned, which has to live as long.
    """
    if name in CONGESTION_CONTROLS:
        return None
    callbacks = WindowCallbacks(name, window.maximum)
    window.control_acknowledged, window.control_lost = callbacks.acknowledged, callbacks.lost
    window.size = window.least = window.greatest = window.last = callbacks.window
    return callbacks


def window_statistics(window: Any) -> WindowStatistics:
    """Return what a `struct gb_congestion_window` has counted."""
    return WindowStatistics(
        least=window.least,
        greatest=window.greatest,
        mean=window.total / window.acks if window.acks else 0.0,
        last=window.last,
        decreases=window.decreases,
        congestion_marks=window.congestion_marks,
    )


def _known(name: str) -> str:
    if name not in CONGESTION_CONTROLS and not is_plugin(name):
        raise ValueError(unknown_control(name, CONGESTION_CONTROLS))
    return name


CongestionControlName = Annotated[str, AfterValidator(_known)]
