"""A worker's side of a round: which fragment goes out when, until every global sum is there. No sockets.

The caller passes in the time and moves the packets. What is done, and why, is said in sender.h: it is in C, since a
round of 512 workers has millions of ACKs.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from gradbed.formats.aggregation import Flags
from gradbed.hosts.systems.aggregation.statistics import SenderStatistics
from gradbed.hosts.systems.aggregation.worker.library import int32s_at, sender_library
from gradbed.hosts.transport.congestion_window import plugin_callbacks, window_control, window_statistics

RETRIES = 3
"""How often a fragment is sent again before switches are told to give up its sum."""


class Attempt(IntEnum):
    """Ways in which a fragment is sent."""

    FIRST = 0
    LATE = 1
    """For the first time, less than a window after a timer that may have held it up: how long others wait for its
    sum tells them nothing."""
    RETRY = 2
    """Again, as if it were the first time."""
    RESEND = 3
    """Again, and the designated switch gives up what it has."""
    DIRECT = 4
    """Past all switches, since the server asked for it."""

    @property
    def flags(self) -> int:
        """Return the flags of the gradient packet."""
        return _FLAGS[self]


_FLAGS = (0, int(Flags.LATE), int(Flags.RETRY), int(Flags.RESEND), int(Flags.RESEND))


class Transmission(NamedTuple):
    """A fragment to send now."""

    fragment: int
    """Index within the round."""
    attempt: Attempt


class Sender:
    """Windows, timers and repeated transmissions of one worker; `begin` starts each round."""

    def __init__(
        self,
        *,
        window_fragments: int,
        min_timeout_us: int,
        paths: Sequence[int] = (0,),
        congestion_control: str = "aimd",
        span_fragments: int | None = None,
        retries: int = RETRIES,
        seed: int = 0,
    ) -> None:
        """window_fragments: the window's maximum. paths: the paths that packet numbers take in turn: number n
        goes paths[n % len(paths)]. span_fragments: unacknowledged fragments are never so many or more apart.
        retries: 0 makes all that is sent again a RESEND. seed: of random delays of timers that have run out before
        (gradbed.hosts.transport.retransmission_timeout.sender_seed); 0: none."""
        self.window_fragments = window_fragments
        control = window_control(congestion_control)
        self._library = sender_library()
        self.pointer = self._library.gb_sender_create(
            window_fragments,
            min_timeout_us,
            np.array(paths, np.int32).ctypes.data,
            len(paths),
            control.adapts,
            control.heeds_losses,
            span_fragments or 0,
            retries,
            seed,
        )
        if not self.pointer:
            raise MemoryError
        weakref.finalize(self, self._library.gb_sender_free, self.pointer)
        self._state = self.pointer.contents
        self._callbacks = plugin_callbacks(congestion_control, self._state.window)

    @property
    def is_native(self) -> bool:
        """Return whether all of it is C: the congestion control is no plug-in."""
        return self._callbacks is None

    def begin(self, first_number: int, count: int, now_us: int) -> None:
        """Start a round of `count` fragments, the first with packet number `first_number`."""
        if not self.finished:
            raise RuntimeError("a round begins before the one before it has ended")
        if self._library.gb_sender_begin(self.pointer, first_number, count, now_us) < 0:
            raise MemoryError

    @property
    def finished(self) -> bool:
        """Return whether all fragments of the round are acknowledged."""
        return self.missing == 0

    @property
    def missing(self) -> int:
        """Fragments of the round without a global sum."""
        return int(self._state.count - self._state.next + self._state.outstanding.count)

    def transmissions(self, now_us: int) -> list[Transmission]:
        """Return what to send now, repeated ones first; counts as sent. Whole frames: RoundFrames.due."""
        count = self._library.gb_sender_transmissions(self.pointer, now_us)
        return [Transmission(each.fragment, Attempt(each.attempt)) for each in self._state.transmissions[:count]]

    @property
    def deadline_us(self) -> int | None:
        """Return when `transmissions` has something to send at the latest; None: only an ACK can bring that about.

        Raises:
            UserError: The congestion control is a plug-in and has failed.
        """
        if self._callbacks is not None:
            self._callbacks.check()
        due_us: int = self._library.gb_sender_deadline_us(self.pointer)
        return None if due_us < 0 else due_us

    def acknowledge(
        self,
        packet_numbers: Sequence[int],
        after_resends: Sequence[bool],
        now_us: int,
        congested: Sequence[bool] | None = None,
    ) -> list[tuple[int, int]]:
        """Take in a batch of global sums. Whole frames: RoundFrames.take.

        after_resends: whether each was marked as made complete, or asked for, by a repeated packet of any worker.
        congested: whether each, or a packet in its sum, met a long queue. Returns (position in the batch, fragment)
        for those that are news. Repeats, other rounds' numbers and fragments that were never sent change nothing
        but the statistics.
        """
        count = len(packet_numbers)
        numbers = np.array(packet_numbers, np.uint32)
        marks = np.array([after_resends, [False] * count if congested is None else congested], np.uint8)
        news = self._library.gb_sender_acknowledge(
            self.pointer, numbers.ctypes.data, marks[0].ctypes.data, marks[1].ctypes.data, count, now_us
        )
        if news < 0:
            raise MemoryError
        return list(zip(int32s_at(self._state.positions, news), int32s_at(self._state.news, news), strict=True))

    def request(self, packet_numbers: Sequence[int]) -> None:
        """The server asks for these fragments alone. One that has not been sent yet will go directly, too."""
        for number in packet_numbers:
            self._library.gb_sender_request(self.pointer, number)

    @property
    def statistics(self) -> SenderStatistics:
        """Return what it has counted so far."""
        counts = self._state.statistics
        return SenderStatistics(
            **{name: getattr(counts, name) for name, _ in counts._fields_},
            window=window_statistics(self._state.window),
        )
