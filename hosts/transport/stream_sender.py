"""One end of a reliable stream of packets: sends and repeats them until all are acknowledged. No sockets.

Packets are numbered as they are sent first. What is done, and why, is said in stream_sender.h: it is in C, as
aggregation's sender is, and shares its window, its timeout and its record of what is outstanding. The other end
(stream_receiver.py) may use packets in any order, so nothing waits for a gap but the window.
"""

from __future__ import annotations

import weakref

from gradbed.hosts.transport.congestion_window import plugin_callbacks, window_control, window_statistics
from gradbed.hosts.transport.library import TRANSPORT_HEADERS, transport_library
from gradbed.hosts.transport.statistics import StreamStatistics

INITIAL_FACTOR = TRANSPORT_HEADERS.constant("GB_STREAM_INITIAL_FACTOR")
"""Before the first sample the timeout is this many minimum timeouts."""
_ALL = TRANSPORT_HEADERS.constant("GB_STREAM_PACKETS")


class StreamSender:
    """Window, timer and repeated transmissions towards one receiver."""

    def __init__(
        self,
        *,
        window_packets: int,
        min_timeout_us: int,
        congestion_control: str = "aimd",
        first_sequence: int = 0,
        seed: int = 0,
    ) -> None:
        """Begin a stream.

        Args:
            window_packets: The window's maximum. Unacknowledged sequence numbers are never further apart than an
                acknowledgement tells of.
            min_timeout_us: The least margin of the timeout over the smoothed round trip.
            congestion_control: Of CONGESTION_CONTROLS, or a plug-in's.
            first_sequence: The first packet's number.
            seed: Of random delays of timers that have run out before (sender_seed); 0: none.
        """
        self._library = transport_library()
        control = window_control(congestion_control)
        self._pointer = self._library.gb_stream_sender_create(
            window_packets, min_timeout_us, control.adapts, control.heeds_losses, first_sequence, seed
        )
        if not self._pointer:
            raise MemoryError
        weakref.finalize(self, self._library.gb_stream_sender_free, self._pointer)
        self._state = self._pointer.contents
        self._callbacks = plugin_callbacks(congestion_control, self._state.window)

    def queue(self, packets: int) -> None:
        """Queue new packets, which get the next sequence numbers in turn."""
        self._state.queued += packets

    def withdraw(self) -> None:
        """Drop the packets that wait and have never been sent."""
        self._state.queued = 0

    @property
    def queued(self) -> int:
        """Packets that have never been sent."""
        return int(self._state.queued)

    @property
    def finished(self) -> bool:
        """Return whether all is acknowledged."""
        return not self._state.queued and not self._state.outstanding.count

    def transmissions(self, now_us: int, most: int = _ALL) -> list[int]:
        """Return the sequence numbers of the packets to send now, repeated ones first; they count as sent."""
        count: int = self._library.gb_stream_sender_transmissions(self._pointer, now_us, most)
        return list(self._state.numbers[:count]) if count else []

    @property
    def deadline_us(self) -> int | None:
        """Return when `transmissions` has something to send at the latest; None: after an acknowledgement alone.

        Raises:
            UserError: The congestion control is a plug-in and has failed.
        """
        if self._callbacks is not None:
            self._callbacks.check()
        due_us: int = self._library.gb_stream_sender_deadline_us(self._pointer)
        return None if due_us < 0 else due_us

    def acknowledge(self, sequence: int, selective: int, congested: bool, now_us: int) -> list[int]:
        """Take in an acknowledgement, and return the sequence numbers that it is the first to acknowledge.

        All before `sequence` have come, and sequence + 1 + k for every set bit k. An acknowledgement of what was
        never sent, or an old one, says nothing new.

        Args:
            sequence: The first packet that has not come.
            selective: A bitmap of those beyond it that have.
            congested: A packet that this is about met a long queue.
            now_us: The time.
        """
        count: int = self._library.gb_stream_sender_acknowledge(self._pointer, sequence, selective, congested, now_us)
        return list(self._state.numbers[:count]) if count else []

    @property
    def statistics(self) -> StreamStatistics:
        """Return the counts so far."""
        state = self._state
        return StreamStatistics(
            timeout_resends=state.timeout_resends,
            early_resends=state.early_resends,
            stale_acknowledgements=state.stale_acknowledgements,
            window=window_statistics(state.window),
        )
