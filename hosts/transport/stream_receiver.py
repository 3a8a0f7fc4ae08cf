"""The other end of a stream of packets (stream_sender.py): tells new packets from copies, and what to acknowledge."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.hosts.transport.packet_numbers import PACKET_NUMBERS, forward_distance
from gradbed.hosts.transport.statistics import ReceiverStatistics

SELECTIVE_BITS = 64
"""How many packets beyond the first missing one an acknowledgement tells of."""


class StreamReceiver:
    """Which packets of one sender have come."""

    def __init__(self, first_sequence: int = 0) -> None:
        self._next = first_sequence
        self._ahead = 0
        """Bit k: packet _next + 1 + k has come."""
        self.statistics = ReceiverStatistics()

    def accept(self, sequences: Sequence[int]) -> list[bool]:
        """Which of a batch of packets are new and within reach; each new one is so once."""
        return [self._accept(sequence) for sequence in sequences]

    def _accept(self, sequence: int) -> bool:
        ahead = forward_distance(self._next, sequence)
        if ahead > SELECTIVE_BITS:
            # Before the gap, or so far beyond it that no sender of ours sends it.
            if ahead >= PACKET_NUMBERS // 2:
                self.statistics.duplicates += 1
            else:
                self.statistics.rejected += 1
            return False
        if ahead and self._ahead >> (ahead - 1) & 1:
            self.statistics.duplicates += 1
            return False
        if ahead:
            self._ahead |= 1 << (ahead - 1)
            return True
        self._advance()
        return True

    def _advance(self) -> None:
        """The first missing packet has come, and with it the way is free to the next one."""
        came_beyond = (~self._ahead & (self._ahead + 1)).bit_length() - 1
        self._next = (self._next + 1 + came_beyond) % PACKET_NUMBERS
        self._ahead >>= came_beyond + 1

    @property
    def acknowledgement(self) -> tuple[int, int]:
        """The first missing packet, and a bitmap of those that have come beyond it (bit 0: the one after it)."""
        return self._next, self._ahead
