"""The parameter server's side: merges contributions and partial sums, each worker exactly once. No sockets.

A packet's bitmap says whose gradients its lanes contain. If none of them is in the fragment's sum yet, the packet
is added; if all of them are, it is a duplicate; if it holds all that the sum has and more, it takes the sum's
place (which happens when a worker's first packet passed a switch by and its resend did not). Anything else
overlaps and is dropped, and the workers that are missing are asked for their own, alone. They are asked, too, when
a switch could not add a packet for fear of an overflow: what it holds of the others will not become complete.
The sums of the round before stay, because a worker that has lost the ACK asks for it with a resend: it can be
one round behind the others, never two, since no round completes without it.

A worker that asks for a sum which is still incomplete waits for other workers, perhaps for long where many packets
are lost. It is told that the server is there by the newest global sum again. Only as long as gradients come that are
news, though: else a worker is gone, and the others may learn it from the server's silence.

Sums are exact, in 64 bits; ACKs carry them in 32 (gradbed.hosts.learning.fragments).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.formats.aggregation import MAX_WORKERS, Flags
from gradbed.hosts.learning.fragments import shifted
from gradbed.hosts.systems.aggregation.statistics import CollectorStatistics
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, forward_distance

_KEPT_ROUNDS = 2
# Plain integers: the flags of an enumeration cost much in what runs for every packet.
_OVERFLOW, _PARTIAL = Flags.OVERFLOW.value, Flags.PARTIAL.value
_ASKS = Flags.RESEND.value | Flags.RETRY.value
_DELAYED = _ASKS | Flags.LATE.value
SIGNS_OF_LIFE = 30
"""At most so many in the time after which a worker gives up: in the beginning, when it asks more often, sums come."""


@dataclass(frozen=True)
class Replies:
    """The replies to a batch of packets; what global sums hold is `Collector.global_sums(packet_numbers)`."""

    complete: list[tuple[int, bool]] = field(default_factory=list)
    """(packet number, whether a packet completed it that a repair delayed) of global sums that are new: to all."""
    repeats: list[tuple[int, int | None]] = field(default_factory=list)
    """(packet number, worker): ACKs to repeated packets, to that worker alone, or to all (None)."""
    requests: list[tuple[int, int]] = field(default_factory=list)
    """(packet number, worker): NACKs, to that worker alone."""


@dataclass(frozen=True)
class GlobalSums:
    """Global sums of some fragments as ACKs carry them."""

    lanes: NDArray[np.int32]
    """Shape (fragments, lanes)."""
    shifts: NDArray[np.int64]
    """A sum is lane * 2^shift, shape (fragments,)."""
    congested: NDArray[np.bool_]
    """Whether a packet in the sum met a long queue, shape (fragments,)."""


class _Round:
    """Sums of one round."""

    def __init__(self, fragments: int, lanes: int) -> None:
        self.sums: NDArray[np.int64] = np.zeros((fragments, lanes), np.int64)
        self.congested: NDArray[np.bool_] = np.zeros(fragments, np.bool_)
        self.clear(missing=0)

    def clear(self, missing: int) -> None:
        self.sums[:] = 0
        self.congested[:] = False
        self.bitmaps = [0] * len(self.sums)
        self.missing = missing
        self.repeated_us: dict[tuple[int, int], int] = {}
        self.requested_us: dict[tuple[int, int], int] = {}


class Collector:
    """Sums of the present and the previous round."""

    def __init__(
        self,
        *,
        workers: int,
        fragments_per_round: int,
        lanes: int,
        repeat_interval_us: int,
        first_number: int = 0,
        multicast: bool = False,
        give_up_us: int | None = None,
    ) -> None:
        """repeat_interval_us: nothing is sent again, or asked for again, for the same fragment and worker sooner.
        multicast: an ACK that several workers miss is repeated to all of them at once. give_up_us: when workers give
        a silent server up; None: they do not, and need no signs of life."""
        if not 1 <= workers <= MAX_WORKERS:
            raise UserError(
                f"the worker bitmap has {MAX_WORKERS} bits: use 1 to {MAX_WORKERS} workers, not {workers}"
            )
        if not 1 <= fragments_per_round <= PACKET_NUMBERS // 4:
            raise UserError(f"a round has 1 to {PACKET_NUMBERS // 4} fragments, not {fragments_per_round}")
        self.full_bitmap = (1 << workers) - 1
        self._fragments = fragments_per_round
        self._repeat_interval_us = repeat_interval_us
        self._multicast = multicast
        self._give_up_us = give_up_us
        self._merged_us = 0
        """When a gradient came that was news."""
        self._newest: int | None = None
        """The last packet number whose sum became complete."""
        self._acknowledged_us = [0] * workers
        """When something was sent to each worker."""
        self._round = 0
        self._first_number = first_number
        self._rounds = [_Round(fragments_per_round, lanes) for _ in range(_KEPT_ROUNDS)]
        self._rounds[0].clear(missing=fragments_per_round)
        self.statistics = CollectorStatistics()

    @property
    def complete_rounds(self) -> int:
        """Rounds, from the first on, whose every fragment has its global sum."""
        return self._round + (self._kept(self._round).missing == 0)

    def _kept(self, round_number: int) -> _Round:
        return self._rounds[round_number % _KEPT_ROUNDS]

    def _locate(self, number: int) -> tuple[int, int] | None:
        """(round, fragment) of a packet number of the previous, the present or the next round."""
        distance = forward_distance(self._first_number - self._fragments, number)
        ahead, fragment = divmod(distance, self._fragments)
        round_number = self._round - 1 + ahead
        if ahead > 2 or round_number < 0:
            return None
        return round_number, fragment

    def _advance(self) -> None:
        self._round += 1
        self._first_number = (self._first_number + self._fragments) % PACKET_NUMBERS
        self._kept(self._round).clear(missing=self._fragments)

    def sum(self, packet_number: int) -> NDArray[np.int64]:
        """The sum so far of a fragment of the present or the previous round, shape (lanes,); a view."""
        place = self._locate(packet_number)
        if place is None or place[0] > self._round:
            raise KeyError(packet_number)
        row: NDArray[np.int64] = self._kept(place[0]).sums[place[1]]
        return row

    def global_sums(self, packet_numbers: Sequence[int]) -> GlobalSums:
        """Return what ACKs for complete fragments of the present or the previous round carry; counts as sent."""
        lanes, shifts = shifted(np.stack([self.sum(number) for number in packet_numbers]))
        congested = np.empty(len(packet_numbers), np.bool_)
        for position, number in enumerate(packet_numbers):
            place = self._locate(number)
            assert place is not None
            congested[position] = self._kept(place[0]).congested[place[1]]
        self.statistics.shifted_acks += int(np.count_nonzero(shifts))
        return GlobalSums(lanes, shifts, congested)

    def accept(
        self,
        *,
        packet_numbers: Sequence[int],
        bitmaps: Sequence[int],
        flags: Sequence[int],
        congested: Sequence[bool],
        senders: Sequence[int],
        lanes: NDArray[np.int32],
        now_us: int,
    ) -> Replies:
        """Merge a batch of packets; lanes: shape (packets, lanes).

        congested: whether a packet, or one in its sum, met a long queue. senders: index of the worker whose packet
        it is, or whose packet made a switch release the sum: the one to acknowledge.
        """
        replies = Replies()
        for position, (number, bitmap) in enumerate(zip(packet_numbers, bitmaps, strict=True)):
            place = self._locate(number)
            if place is None or bitmap == 0 or bitmap & ~self.full_bitmap:
                self.statistics.rejected += 1
                continue
            round_number, fragment = place
            if round_number > self._round:
                if self._kept(self._round).missing:
                    # Nobody gets there without this round's sums: not a packet of this job's run.
                    self.statistics.rejected += 1
                    continue
                self._advance()
            kept = self._kept(round_number)
            have = kept.bitmaps[fragment]
            overlap = have & bitmap
            self.statistics.congestion_marks += congested[position]
            if overlap == 0 or (overlap == have != bitmap):
                self._merge(kept, fragment, bitmap, flags[position], lanes[position])
                self._merged_us = now_us
                kept.congested[fragment] |= congested[position]
                if have | bitmap == self.full_bitmap:
                    kept.missing -= 1
                    replies.complete.append((number, bool(flags[position] & _DELAYED)))
                    self._newest = number
                    self._acknowledged_us = [now_us] * len(self._acknowledged_us)
            elif overlap != bitmap:
                self.statistics.overlaps += 1
                self._request(kept, fragment, number, bitmap & ~have, now_us, replies)
            else:
                self.statistics.duplicates += 1
                # Sums that a repeated packet released from a switch are marked like it.
                if flags[position] & _ASKS and have == self.full_bitmap:
                    self._repeat(kept, fragment, number, senders[position], now_us, replies)
                elif flags[position] & _ASKS:
                    self._show_life(senders[position], now_us, replies)
            if flags[position] & _OVERFLOW:
                self.statistics.overflows += 1
                missing = self.full_bitmap & ~kept.bitmaps[fragment]
                self._request(kept, fragment, number, missing, now_us, replies)
        return replies

    def _merge(self, kept: _Round, fragment: int, bitmap: int, flags: int, lanes: NDArray[np.int32]) -> None:
        row = kept.sums[fragment]
        if kept.bitmaps[fragment] & bitmap:
            row[:] = lanes
            self.statistics.superseded += 1
        else:
            np.add(row, lanes, out=row)
        kept.bitmaps[fragment] |= bitmap
        if flags & _PARTIAL:
            self.statistics.merged_partials += 1
        else:
            self.statistics.merged_singles += 1

    def _request(self, kept: _Round, fragment: int, number: int, missing: int, now_us: int, replies: Replies) -> None:
        """Ask the workers of the bitmap `missing`."""
        while missing:
            worker = (missing & -missing).bit_length() - 1
            missing &= missing - 1
            if self._is_recent(kept.requested_us, (fragment, worker), now_us):
                self.statistics.suppressed_requests += 1
            else:
                kept.requested_us[fragment, worker] = now_us
                self.statistics.requests += 1
                replies.requests.append((number, worker))

    def _repeat(self, kept: _Round, fragment: int, number: int, worker: int, now_us: int, replies: Replies) -> None:
        """Send a worker the ACK again; the second one that asks gets it for all, since more will follow."""
        repeated_us = kept.repeated_us
        for_all = self._multicast and any(
            self._is_recent(repeated_us, (fragment, other), now_us)
            for other in range(self.full_bitmap.bit_length())
            if other != worker
        )
        if self._is_recent(repeated_us, (fragment, worker), now_us):
            self.statistics.suppressed_repeats += 1
            return
        self.statistics.repeats += 1
        replies.repeats.append((number, None if for_all else worker))
        for acknowledged in range(self.full_bitmap.bit_length()) if for_all else [worker]:
            repeated_us[fragment, acknowledged] = now_us
            self._acknowledged_us[acknowledged] = now_us

    def _show_life(self, worker: int, now_us: int, replies: Replies) -> None:
        if self._give_up_us is None or self._newest is None or now_us - self._merged_us >= self._give_up_us:
            return
        if now_us - self._acknowledged_us[worker] >= self._give_up_us // SIGNS_OF_LIFE:
            self._acknowledged_us[worker] = now_us
            self.statistics.signs_of_life += 1
            replies.repeats.append((self._newest, worker))

    def _is_recent(self, last_us: dict[tuple[int, int], int], key: tuple[int, int], now_us: int) -> bool:
        before_us = last_us.get(key)
        return before_us is not None and now_us - before_us < self._repeat_interval_us
