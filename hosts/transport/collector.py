"""The parameter server's side: merges contributions and partial sums, each worker exactly once. No sockets.

A packet's bitmap says whose gradients its lanes contain. If none of them is in the fragment's sum yet, the packet
is added; if all of them are, it is a duplicate; if it holds all that the sum has and more, it takes the sum's
place (which happens when a worker's first packet passed a switch by and its resend did not). Anything else
overlaps and is dropped; then the workers that are missing send their own again, alone, until each has come in.
The sums of the round before stay, because a worker that has lost the answer asks for it with a resend: it can be
one round behind the others, never two, since no round completes without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hosts.protocols.gradient_format import BITMAP_BITS, PACKET_NUMBERS, Flags
from hosts.transport.packet_numbers import forward_distance
from hosts.transport.statistics import CollectorStatistics
from switch.errors import UserError

_KEPT_ROUNDS = 2


@dataclass(frozen=True)
class Answers:
    """What to send after a batch of packets; the sums are `Collector.sum(packet_number)`."""

    complete: list[tuple[int, bool]] = field(default_factory=list)
    """(packet number, whether a resend completed it) of global sums that are new: to all workers."""
    repeats: list[tuple[int, int]] = field(default_factory=list)
    """(packet number, worker): answers to resends, to that worker alone."""


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
    ) -> None:
        """repeat_interval_us: no fragment is sent again to the same worker sooner than this."""
        if not 1 <= workers <= BITMAP_BITS:
            raise UserError(
                f"the worker bitmap has {BITMAP_BITS} bits: use 1 to {BITMAP_BITS} workers, not {workers}"
            )
        if not 1 <= fragments_per_round <= PACKET_NUMBERS // 4:
            raise UserError(f"a round has 1 to {PACKET_NUMBERS // 4} fragments, not {fragments_per_round}")
        self.full_bitmap = (1 << workers) - 1
        self._fragments = fragments_per_round
        self._repeat_interval_us = repeat_interval_us
        self._round = 0
        self._first_number = first_number
        self._sums = np.zeros((_KEPT_ROUNDS, fragments_per_round, lanes), np.int32)
        self._bitmaps = [[0] * fragments_per_round for _ in range(_KEPT_ROUNDS)]
        self._missing = [fragments_per_round, 0]
        self._repeated_us: list[dict[tuple[int, int], int]] = [{} for _ in range(_KEPT_ROUNDS)]
        self.statistics = CollectorStatistics()

    @property
    def complete_rounds(self) -> int:
        """Rounds, from the first on, whose every fragment has its global sum."""
        return self._round + (self._missing[self._round % _KEPT_ROUNDS] == 0)

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
        slot = self._round % _KEPT_ROUNDS
        self._sums[slot] = 0
        self._bitmaps[slot] = [0] * self._fragments
        self._missing[slot] = self._fragments
        self._repeated_us[slot].clear()

    def sum(self, packet_number: int) -> NDArray[np.int32]:
        """The sum so far of a fragment of the present or the previous round, shape (lanes,); a view."""
        place = self._locate(packet_number)
        if place is None or place[0] > self._round:
            raise KeyError(packet_number)
        row: NDArray[np.int32] = self._sums[place[0] % _KEPT_ROUNDS, place[1]]
        return row

    def accept(
        self,
        *,
        packet_numbers: Sequence[int],
        bitmaps: Sequence[int],
        flags: Sequence[int],
        senders: Sequence[int],
        lanes: NDArray[np.int32],
        now_us: int,
    ) -> Answers:
        """Merge a batch of packets; lanes: shape (packets, lanes).

        senders: index of the worker whose packet it is, or whose packet made a switch release the sum: the one
        to answer. Sums wrap modulo 2^32.
        """
        answers = Answers()
        for position, (number, bitmap) in enumerate(zip(packet_numbers, bitmaps, strict=True)):
            place = self._locate(number)
            if place is None or bitmap == 0 or bitmap & ~self.full_bitmap:
                self.statistics.rejected += 1
                continue
            round_number, fragment = place
            if round_number > self._round:
                if self._missing[self._round % _KEPT_ROUNDS]:
                    # Nobody gets there without this round's sums: not a packet of this job's run.
                    self.statistics.rejected += 1
                    continue
                self._advance()
            slot = round_number % _KEPT_ROUNDS
            have = self._bitmaps[slot][fragment]
            if have & bitmap == 0 or (have & ~bitmap == 0 and have != bitmap):
                self._merge(slot, fragment, bitmap, flags[position], lanes[position])
                if have | bitmap == self.full_bitmap:
                    self._missing[slot] -= 1
                    answers.complete.append((number, bool(flags[position] & Flags.RESEND)))
            elif bitmap & ~have:
                self.statistics.overlaps += 1
            else:
                self.statistics.duplicates += 1
                # Sums that a resend released from a switch are marked like it.
                asks = flags[position] & Flags.RESEND and have == self.full_bitmap
                if asks and self._may_repeat(slot, fragment, senders[position], now_us):
                    answers.repeats.append((number, senders[position]))
        return answers

    def _merge(self, slot: int, fragment: int, bitmap: int, flags: int, lanes: NDArray[np.int32]) -> None:
        row = self._sums[slot, fragment]
        if self._bitmaps[slot][fragment] & bitmap:
            row[:] = lanes
            self.statistics.superseded += 1
        else:
            np.add(row, lanes, out=row)
        self._bitmaps[slot][fragment] |= bitmap
        if flags & Flags.PARTIAL:
            self.statistics.merged_partials += 1
        else:
            self.statistics.merged_singles += 1

    def _may_repeat(self, slot: int, fragment: int, worker: int, now_us: int) -> bool:
        repeated_us = self._repeated_us[slot]
        last_us = repeated_us.get((fragment, worker))
        if last_us is not None and now_us - last_us < self._repeat_interval_us:
            self.statistics.suppressed_repeats += 1
            return False
        repeated_us[fragment, worker] = now_us
        self.statistics.repeats += 1
        return True
