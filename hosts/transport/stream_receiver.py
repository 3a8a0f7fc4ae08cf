"""The other end of a stream of packets (stream_sender.py): tells new packets from copies, and what to acknowledge."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from gradbed.hosts.transport.statistics import ReceiverStatistics

SELECTIVE_BITS = 64
"""How many packets beyond the first missing one an acknowledgement tells of."""


class StreamReceiver:
    """The record of which packets of one sender have come."""

    def __init__(self, first_sequence: int = 0) -> None:
        self._next = first_sequence
        self._ahead = 0
        """Bit k: packet _next + 1 + k has come."""
        self.statistics = ReceiverStatistics()

    def accept(self, sequences: Sequence[int]) -> list[bool]:
        """Return which of a batch of packets are new and within reach; each new one is so once."""
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


# ---- Packet numbers, which wrap around after 2^32 ----


PACKET_NUMBERS = 1 << 32


def forward_distance(start: int, number: int) -> int:
    """Return how far `number` lies ahead of `start`, in 0 .. 2^32 - 1."""
    return (number - start) % PACKET_NUMBERS


# ---- Acknowledgements of a multicast group ----


class GroupAcknowledgement:
    """The acknowledgements of each member of a group
    (gradbed.hosts.transport.stream_receiver.StreamReceiver.acknowledgement).
    """

    def __init__(self, members: Iterable[Hashable], first_sequence: int = 0) -> None:
        self._acknowledged = dict.fromkeys(members, (first_sequence, 0))

    def take(self, member: Hashable, sequence: int, selective: int) -> None:
        """Newer news; what is older than the member's last is left aside, and so are strangers."""
        if (
            member in self._acknowledged
            and forward_distance(self._acknowledged[member][0], sequence) < PACKET_NUMBERS // 2
        ):
            self._acknowledged[member] = (sequence, selective)

    def leave(self, member: Hashable) -> None:
        """Nobody waits for it any more."""
        self._acknowledged.pop(member, None)

    @property
    def acknowledgement(self) -> tuple[int, int] | None:
        """First packet that some member misses, and a bitmap of those beyond it that all have; None: no member."""
        if not self._acknowledged:
            return None
        start = next(iter(self._acknowledged.values()))[0]
        for sequence, _ in self._acknowledged.values():
            if forward_distance(start, sequence) >= PACKET_NUMBERS // 2:
                start = sequence
        common = -1
        for sequence, selective in self._acknowledged.values():
            ahead = forward_distance(start, sequence)
            # Bit k: packet start + k has come.
            common &= (1 << ahead) - 1 | selective << (ahead + 1)
        return start, (common >> 1) & ((1 << SELECTIVE_BITS) - 1)
