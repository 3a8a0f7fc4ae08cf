"""Merging by worker bitmap, ACKs and their repeats of the server's side."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.formats.aggregation import Flags
from gradbed.hosts.systems.aggregation.collector import Collector, Replies

LANES = 2
INTERVAL_US = 500


def collector(workers: int = 3, fragments: int = 2, first_number: int = 0, *, multicast: bool = False) -> Collector:
    return Collector(
        workers=workers,
        fragments_per_round=fragments,
        lanes=LANES,
        repeat_interval_us=INTERVAL_US,
        first_number=first_number,
        multicast=multicast,
    )


def give(
    c: Collector,
    number: int,
    bitmap: int,
    value: int = 0,
    *,
    flags: int = 0,
    congested: bool = False,
    sender: int = 0,
    now_us: int = 0,
) -> Replies:
    return c.accept(
        packet_numbers=[number],
        bitmaps=[bitmap],
        flags=[flags],
        congested=[congested],
        senders=[sender],
        lanes=np.full((1, LANES), value, np.int32),
        now_us=now_us,
    )


def test_disjoint_contributions_are_added_and_completed_once() -> None:
    c = collector()
    assert give(c, 0, 0b001, 5) == Replies()
    assert give(c, 0, 0b110, 70, flags=Flags.PARTIAL) == Replies(complete=[(0, False)])
    assert c.sum(0).tolist() == [75, 75]
    assert c.complete_rounds == 0
    assert give(c, 1, 0b111, 1, flags=Flags.PARTIAL) == Replies(complete=[(1, False)])
    assert c.complete_rounds == 1
    assert (c.statistics.merged_singles, c.statistics.merged_partials) == (1, 2)


def test_duplicates_and_overlaps_change_nothing() -> None:
    c = collector()
    give(c, 0, 0b011, 5, flags=Flags.PARTIAL)
    assert give(c, 0, 0b001, 5, flags=Flags.RESEND) == Replies()
    assert give(c, 0, 0b110, 9, flags=Flags.PARTIAL).complete == []
    assert c.sum(0).tolist() == [5, 5]
    assert (c.statistics.duplicates, c.statistics.overlaps) == (1, 1)
    assert give(c, 0, 0b100, 4) == Replies(complete=[(0, False)])
    assert c.sum(0).tolist() == [9, 9]


def test_a_sum_that_contains_all_that_is_there_takes_its_place() -> None:
    c = collector()
    give(c, 0, 0b001, 5)
    assert give(c, 0, 0b011, 25, flags=Flags.PARTIAL) == Replies()
    assert c.sum(0).tolist() == [25, 25]
    assert give(c, 0, 0b111, 125, flags=Flags.PARTIAL) == Replies(complete=[(0, False)])
    assert c.sum(0).tolist() == [125, 125]
    assert (c.statistics.superseded, c.statistics.merged_singles, c.statistics.merged_partials) == (2, 1, 2)
    assert give(c, 0, 0b111, 125, flags=Flags.PARTIAL).complete == []
    assert c.statistics.duplicates == 1


def test_complete_sums_are_repeated_to_those_who_ask_but_not_too_often() -> None:
    c = collector(workers=1)
    assert give(c, 0, 1, now_us=0).complete == [(0, False)]
    assert give(c, 0, 1, now_us=1).repeats == []  # a copy made by the network asks for nothing
    assert give(c, 0, 1, flags=Flags.RESEND, sender=0, now_us=2).repeats == [(0, 0)]
    assert give(c, 0, 1, flags=Flags.RESEND, sender=0, now_us=3).repeats == []
    assert give(c, 0, 1, flags=Flags.RESEND, sender=0, now_us=2 + INTERVAL_US).repeats == [(0, 0)]
    assert (c.statistics.repeats, c.statistics.suppressed_repeats) == (2, 1)


def test_sums_that_a_resend_completed_are_told_apart() -> None:
    c = collector()
    give(c, 0, 0b011, flags=Flags.RESEND | Flags.PARTIAL)
    assert give(c, 0, 0b100).complete == [(0, False)]  # the third worker was only late
    give(c, 1, 0b011)
    assert give(c, 1, 0b100, flags=Flags.RESEND).complete == [(1, True)]


def test_the_worker_whose_resend_released_a_finished_sum_is_acknowledged() -> None:
    c = collector()
    give(c, 0, 0b111, flags=Flags.PARTIAL)
    assert give(c, 0, 0b111, flags=Flags.PARTIAL, sender=2).repeats == []  # a copy made by the network
    assert give(c, 0, 0b111, flags=Flags.PARTIAL | Flags.RESEND, sender=2).repeats == [(0, 2)]
    assert give(c, 0, 0b010, flags=Flags.RESEND, sender=1).repeats == [(0, 1)]


def test_the_round_before_stays_and_the_one_before_that_goes() -> None:
    c = collector(workers=1, fragments=1)
    for number in range(3):
        assert give(c, number, 1, 10 + number).complete == [(number, False)]
    assert give(c, 1, 1, flags=Flags.RESEND).repeats == [(1, 0)]
    assert c.sum(1).tolist() == [11, 11]
    assert give(c, 0, 1, flags=Flags.RESEND) == Replies()
    assert c.statistics.rejected == 1
    with pytest.raises(KeyError):
        c.sum(0)
    with pytest.raises(KeyError):
        c.sum(3)


def test_nobody_is_ahead_of_an_incomplete_round() -> None:
    c = collector(workers=2, fragments=1)
    give(c, 0, 0b01, 3)
    assert give(c, 1, 0b01, 4) == Replies()
    assert c.statistics.rejected == 1
    assert give(c, 0, 0b10, 5).complete == [(0, False)]
    assert c.sum(0).tolist() == [8, 8]


@pytest.mark.parametrize("bitmap", [0, 0b1000, 0b1001, 1 << 63])
def test_bitmaps_of_strangers_are_rejected(bitmap: int) -> None:
    c = collector(workers=3)
    assert give(c, 0, bitmap, 1) == Replies()
    assert c.statistics.rejected == 1
    assert c.sum(0).tolist() == [0, 0]


def test_packet_numbers_wrap() -> None:
    c = collector(workers=1, fragments=3, first_number=(1 << 32) - 2)
    for number in ((1 << 32) - 2, (1 << 32) - 1, 0, 1, 2, 3):
        assert give(c, number, 1, 7).complete == [(number, False)]
    assert c.complete_rounds == 2
    assert give(c, (1 << 32) - 1, 1, flags=Flags.RESEND).repeats == [((1 << 32) - 1, 0)]
    assert give(c, (1 << 32) - 3, 1) == Replies()
    assert c.statistics.rejected == 1


def test_numbers_before_the_first_round_are_rejected() -> None:
    c = collector(workers=1, fragments=2)
    assert give(c, (1 << 32) - 1, 1) == Replies()
    assert c.statistics.rejected == 1


def test_sixty_four_workers_and_no_more() -> None:
    c = collector(workers=64, fragments=1)
    for worker in range(64):
        replies = give(c, 0, 1 << worker, 1)
    assert replies.complete == [(0, False)]
    assert c.sum(0).tolist() == [64, 64]
    with pytest.raises(UserError, match="64 bits"):
        collector(workers=65)
    with pytest.raises(UserError):
        collector(fragments=0)


def test_sums_are_exact_and_acks_have_shifts_where_they_must() -> None:
    c = collector(workers=3)
    top = (1 << 31) - 1
    for worker in range(3):
        give(c, 0, 1 << worker, top)
        give(c, 1, 1 << worker, -1)
    assert c.sum(0).tolist() == [3 * top] * LANES
    sums = c.global_sums([1, 0])
    assert sums.lanes.dtype == np.int32
    assert sums.shifts.tolist() == [0, 2]
    assert sums.lanes.tolist() == [[-3] * LANES, [round(3 * top / 4)] * LANES]
    assert c.statistics.shifted_acks == 1


def test_a_dropped_partial_sum_makes_the_server_ask_for_what_it_lacks_alone() -> None:
    c = collector(workers=5)
    give(c, 0, 0b00011, flags=Flags.PARTIAL)
    assert give(c, 0, 0b01110, flags=Flags.PARTIAL, now_us=1).requests == [(0, 2), (0, 3)]
    assert give(c, 0, 0b11110, flags=Flags.PARTIAL, now_us=2).requests == [(0, 4)]  # the others have been asked
    assert give(c, 0, 0b00100, flags=Flags.RESEND, now_us=3) == Replies()
    late = give(c, 0, 0b11110, flags=Flags.PARTIAL, now_us=2 + INTERVAL_US)
    assert late.requests == [(0, 3), (0, 4)]
    assert (c.statistics.requests, c.statistics.suppressed_requests) == (5, 2)
    assert give(c, 0, 0b11000).complete == [(0, False)]


def test_a_packet_that_a_switch_could_not_add_makes_the_server_ask_all_that_are_missing() -> None:
    c = collector(workers=3)
    assert give(c, 0, 0b010, flags=Flags.OVERFLOW).requests == [(0, 0), (0, 2)]
    assert give(c, 0, 0b100, flags=Flags.OVERFLOW, now_us=1) == Replies()
    assert give(c, 0, 0b001, flags=Flags.OVERFLOW).complete == [(0, False)]
    assert give(c, 0, 0b001, flags=Flags.OVERFLOW, now_us=INTERVAL_US) == Replies()  # nobody is missing
    assert (c.statistics.overflows, c.statistics.requests) == (4, 2)


def test_marks_of_the_packets_in_a_sum_are_echoed() -> None:
    c = collector(workers=2)
    give(c, 0, 0b01, congested=True)
    give(c, 0, 0b10)
    give(c, 1, 0b11, flags=Flags.PARTIAL)
    give(c, 1, 0b01, congested=True)  # a duplicate is not in the sum
    assert c.global_sums([0, 1, 0]).congested.tolist() == [True, False, True]
    assert c.statistics.congestion_marks == 2
    give(c, 2, 0b11)
    give(c, 4, 0b11)
    assert c.global_sums([2]).congested.tolist() == [False]  # nothing is left of the round before


def test_an_ack_that_two_workers_miss_is_repeated_to_all() -> None:
    c = collector(workers=3, multicast=True)
    give(c, 0, 0b111)
    assert give(c, 0, 0b001, flags=Flags.RETRY, sender=0).repeats == [(0, 0)]
    assert give(c, 0, 0b001, flags=Flags.RETRY, sender=0, now_us=1).repeats == []
    assert give(c, 0, 0b100, flags=Flags.RETRY, sender=2, now_us=2).repeats == [(0, None)]
    assert give(c, 0, 0b010, flags=Flags.RESEND, sender=1, now_us=3).repeats == []
    late_us = 2 + INTERVAL_US
    assert give(c, 0, 0b010, flags=Flags.RESEND, sender=1, now_us=late_us).repeats == [(0, 1)]
    assert (c.statistics.repeats, c.statistics.suppressed_repeats) == (3, 2)


@given(st.data())
def test_any_sequence_of_bitmaps_counts_each_worker_once(data: st.DataObject) -> None:
    """Worker w contributes 5**w (no sum of some workers equals a sum of others), in whatever groupings."""
    workers = 5
    c = collector(workers=workers, fragments=1)
    included = 0
    for _ in range(data.draw(st.integers(0, 20))):
        bitmap = data.draw(st.integers(1, (1 << workers) - 1))
        value = sum(5**worker for worker in range(workers) if bitmap >> worker & 1)
        replies = give(c, 0, bitmap, value, flags=data.draw(st.sampled_from([0, 2, 4, 6, 0x24, 0x44])))
        if bitmap != included and included & bitmap in (0, included):
            included |= bitmap
            assert bool(replies.complete) == (included == c.full_bitmap)
        else:
            assert not replies.complete
        assert c.sum(0)[0] == sum(5**worker for worker in range(workers) if included >> worker & 1)


def test_who_waits_for_others_hears_of_the_server_as_long_as_gradients_come() -> None:
    second_us = 1_000_000
    c = Collector(
        workers=2, fragments_per_round=2, lanes=LANES, repeat_interval_us=INTERVAL_US, give_up_us=30 * second_us
    )
    assert give(c, 0, 0b01, 1) == Replies()
    assert give(c, 0, 0b01, 1, flags=Flags.RESEND, now_us=5 * second_us) == Replies()  # no sum is there to tell
    assert give(c, 1, 0b11, 1, flags=Flags.PARTIAL, now_us=6 * second_us).complete == [(1, False)]
    # All have just heard of it; then at most once in a second, and only the one that asks.
    assert give(c, 0, 0b01, 1, flags=Flags.RESEND, now_us=6 * second_us + 1) == Replies()
    assert give(c, 0, 0b01, 1, now_us=7 * second_us) == Replies()
    assert give(c, 0, 0b01, 1, flags=Flags.RESEND, now_us=7 * second_us) == Replies(repeats=[(1, 0)])
    assert give(c, 0, 0b01, 1, flags=Flags.RETRY, now_us=7 * second_us + second_us // 2) == Replies()
    assert give(c, 0, 0b01, 1, flags=Flags.RETRY, now_us=35 * second_us) == Replies(repeats=[(1, 0)])
    # The other worker's gradient has not come for as long as workers wait for a server: it is gone.
    assert give(c, 0, 0b01, 1, flags=Flags.RESEND, now_us=36 * second_us) == Replies()
    assert c.statistics.signs_of_life == 2
