"""Congestion controls of other packages: windows in packets that acknowledgements and losses move.

Senders are in C, those of hosts as the queue pairs of NICs. They call a control through `WindowCallbacks`: once for
each acknowledged packet, some microseconds each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Protocol

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.plugins import call_plugin, plugins


class CongestionControl(Protocol):
    """The congestion window of one sender.

    Transmissions are numbered in the order in which they are made. Numbers tell what was sent before a decrease and
    is no reason for another one.
    """

    @property
    def window(self) -> int:
        """Packets that may be unacknowledged, at least 1."""

    def acknowledged(self, number: int, next_number: int, *, marked: bool, limiting: bool) -> None:
        """Take in the acknowledgement of a transmission.

        Args:
            number: Of the transmission.
            next_number: Of the next transmission to be made.
            marked: The packet met congestion (ECN, RFC 3168).
            limiting: Packets wait for the window to open. If none do, an acknowledgement does not show that the
                network carries more (RFC 7661).
        """

    def lost(self, number: int, next_number: int) -> None:
        """Take in that a transmission is lost, by later acknowledgements or by a timeout."""


def is_plugin(name: str) -> bool:
    """Return whether another package brings a control of that name."""
    return name in plugins("congestion_controls")


def unknown_control(name: str, known: Iterable[str]) -> str:
    """Say that no congestion control has that name, and which ones there are."""
    there = [*known, *plugins("congestion_controls")]
    return f"no congestion control is called {name!r}: there are {', '.join(there)}"


def load_control(name: str, maximum: int) -> CongestionControl:
    """Make the control of another package for one sender.

    Args:
        name: Of the entry point in the group gradbed.congestion_controls.
        maximum: Packets that the window never exceeds.

    Raises:
        UserError: It cannot be loaded, or fails.
    """
    control: CongestionControl = call_plugin("congestion_controls", name, maximum)
    return control


_ACKNOWLEDGED = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)
_LOST = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


class WindowCallbacks:
    """A control as two functions of C, which return the new window in packets.

    C cannot raise: after an exception the window stays, and `check` raises.
    """

    def __init__(self, name: str, maximum: int) -> None:
        self._name = name
        self._control = load_control(name, maximum)
        self._maximum = maximum
        self._error: Exception | None = None
        self.window = 1
        """Window after the last event, at first the one that the control begins with."""
        self._after(lambda: None)
        self.check()
        self._functions = _ACKNOWLEDGED(self._acknowledged), _LOST(self._lost)
        self.acknowledged, self.lost = (ctypes.cast(each, ctypes.c_void_p).value for each in self._functions)
        """Addresses of the functions, which last as long as this object."""

    def check(self) -> None:
        """Raise a UserError if the control has failed."""
        if self._error is not None:
            reason = unforeseen(self._error)
            raise UserError(f"the congestion control {self._name!r} failed: {reason}") from self._error

    def _acknowledged(self, number: int, next_number: int, marked: int, limiting: int) -> int:
        return self._after(
            lambda: self._control.acknowledged(number, next_number, marked=bool(marked), limiting=bool(limiting))
        )

    def _lost(self, number: int, next_number: int) -> int:
        return self._after(lambda: self._control.lost(number, next_number))

    def _after(self, event: Callable[[], None]) -> int:
        if self._error is None:
            try:
                event()
                self.window = min(self._maximum, max(1, int(self._control.window)))
            except Exception as error:
                self._error = error
        return self.window
