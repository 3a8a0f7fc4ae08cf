"""Several receivers of one multicast stream as if they were one: what all of them have is acknowledged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from gradbed.hosts.transport.packet_numbers import PACKET_NUMBERS, forward_distance
from gradbed.hosts.transport.stream_receiver import SELECTIVE_BITS


class GroupAcknowledgement:
    """What each member has told (gradbed.hosts.transport.stream_receiver.StreamReceiver.acknowledgement)."""

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
