"""Windows, timers and resends of the worker's side."""

from __future__ import annotations

import itertools

import pytest

from gradbed.hosts.systems.aggregation.worker.sender import RETRIES, Attempt, Sender, Transmission
from gradbed.hosts.transport.retransmission_timeout import CONSTANT_TIMEOUTS, MAX_BACKED_OFF_US
from tests.unit.hosts.aggregation.worker.reference.round_trips import INITIAL_FACTOR, LOSSLESS_PATIENCE
from tests.unit.hosts.aggregation.worker.reference.sender import EARLY_RESEND_AFTER
from tests.unit.hosts.transport.reference.congestion_window import INITIAL_FRAGMENTS

MIN_TIMEOUT_US = 1000
INITIAL_US = INITIAL_FACTOR * MIN_TIMEOUT_US
MARGIN_US = LOSSLESS_PATIENCE * MIN_TIMEOUT_US


def sender(
    window: int = 4, count: int = 10, paths: int = 1, first_number: int = 0, *, span: int | None = None
) -> Sender:
    """With a window that stays."""
    made = Sender(
        window_fragments=window,
        min_timeout_us=MIN_TIMEOUT_US,
        paths=range(paths),
        congestion_control="none",
        span_fragments=span,
    )
    made.begin(first_number, count, 0)
    return made


def acknowledge(s: Sender, numbers: list[int], now_us: int, *, after_resend: bool = False) -> list[tuple[int, int]]:
    return s.acknowledge(numbers, [after_resend] * len(numbers), now_us)


def after(s: Sender, now_us: int, *numbers: int, after_resend: bool = False) -> list[Transmission]:
    """What leaves once these are acknowledged."""
    acknowledge(s, list(numbers), now_us, after_resend=after_resend)
    return s.transmissions(now_us)


def firsts(*fragments: int) -> list[Transmission]:
    return [Transmission(fragment, Attempt.FIRST) for fragment in fragments]


def retries(*fragments: int) -> list[Transmission]:
    return [Transmission(fragment, Attempt.RETRY) for fragment in fragments]


def resends(*fragments: int) -> list[Transmission]:
    return [Transmission(fragment, Attempt.RESEND) for fragment in fragments]


def test_the_window_opens_as_acks_come() -> None:
    s = sender(window=4, count=6)
    assert s.deadline_us == 0
    assert s.transmissions(0) == firsts(0, 1, 2, 3)
    assert s.transmissions(1) == []
    assert acknowledge(s, [2, 0], 100) == [(0, 2), (1, 0)]
    assert s.transmissions(100) == firsts(4, 5)
    assert s.missing == 4
    acknowledge(s, [1, 3, 4, 5], 200)
    assert s.finished
    assert s.missing == 0
    assert s.deadline_us is None


def test_a_fragment_that_nobody_acknowledges_is_resent_with_growing_patience() -> None:
    s = sender(window=1, count=1)
    assert s.transmissions(0) == firsts(0)
    assert s.deadline_us == INITIAL_US
    assert s.transmissions(INITIAL_US - 1) == []
    now_us = 0
    for _ in range(CONSTANT_TIMEOUTS):
        now_us += INITIAL_US
        assert [again.fragment for again in s.transmissions(now_us)] == [0]
    assert s.deadline_us == now_us + 2 * INITIAL_US
    for _ in range(30):
        now_us = s.deadline_us or 0
        s.transmissions(now_us)
    assert s.deadline_us == now_us + MAX_BACKED_OFF_US
    assert s.statistics.timeout_resends == CONSTANT_TIMEOUTS + 30


def test_before_the_first_ack_only_the_oldest_fragment_probes() -> None:
    s = sender(window=4, count=9)
    s.transmissions(0)
    assert s.deadline_us == 4 * INITIAL_US
    assert s.transmissions(4 * INITIAL_US) == retries(0)
    assert s.transmissions(8 * INITIAL_US) == retries(0)
    assert s.statistics.timeout_resends == 2


def test_each_fragment_has_its_own_timer_from_the_first_ack_on() -> None:
    s = sender(window=2, count=3)
    s.transmissions(0)
    acknowledge(s, [0], 400)
    s.transmissions(450)
    timeout_us = 400 + MARGIN_US  # the smoothed round trip and the least margin
    assert s.deadline_us == 400 + timeout_us
    assert s.transmissions(400 + timeout_us) == retries(1)
    assert s.deadline_us == 450 + timeout_us  # fragment 2 left 50 us after the first ACK


def test_probes_do_not_count_as_timeouts_of_their_fragment() -> None:
    s = sender(window=2, count=2)
    s.transmissions(0)
    for _ in range(CONSTANT_TIMEOUTS + 2):
        now_us = s.deadline_us or 0
        assert [again.fragment for again in s.transmissions(now_us)] == [0]
    acknowledge(s, [1], now_us, after_resend=True)
    assert s.deadline_us == now_us + INITIAL_US


def test_a_resend_that_was_not_needed_still_gives_a_sample() -> None:
    """The sum is not marked, so the first transmission counted, and the timer learns that it was too short."""
    needless, needed = sender(window=1, count=2), sender(window=1, count=2)
    for s, after_resend in ((needless, False), (needed, True)):
        s.transmissions(0)
        s.transmissions(INITIAL_US)
        acknowledge(s, [0], INITIAL_US + 20_000, after_resend=after_resend)
        s.transmissions(INITIAL_US + 20_000)
    assert needless.deadline_us == INITIAL_US + 20_000 + (30_000 + 4 * 15_000)
    assert needed.deadline_us == INITIAL_US + 20_000 + INITIAL_US  # nothing learned


def test_sums_that_took_a_resend_of_another_worker_are_no_samples() -> None:
    s = sender(window=1, count=3)
    s.transmissions(0)
    acknowledge(s, [0], 7000, after_resend=True)
    s.transmissions(7000)
    assert s.deadline_us == 7000 + INITIAL_US
    acknowledge(s, [1], 7400)
    s.transmissions(7400)
    # After a loss the margin is small; the round trip is far below the first, which was all lateness.
    assert s.deadline_us == 7400 + 400 + MIN_TIMEOUT_US


def test_an_ack_shortens_timers_that_run_already() -> None:
    s = sender(window=2, count=2)
    s.transmissions(0)
    assert s.deadline_us == 2 * INITIAL_US
    acknowledge(s, [0], 500)
    assert s.deadline_us == 500 + 500 + MARGIN_US


def test_fast_retransmission_after_enough_later_acks() -> None:
    s = sender(window=8, count=8)
    s.transmissions(0)
    assert after(s, 100, *range(1, EARLY_RESEND_AFTER)) == []
    acknowledge(s, [EARLY_RESEND_AFTER], 101)
    assert s.deadline_us == 0
    assert s.transmissions(101) == retries(0)
    acknowledge(s, [5, 6, 7], 102)
    # Fragment 0 left again after 5, 6 and 7; nothing that left later is acknowledged.
    assert s.transmissions(102) == retries(4)
    assert s.statistics.early_resends == 2
    assert s.statistics.timeout_resends == 0


def test_a_lost_resend_is_found_by_fragments_sent_after_it() -> None:
    s = sender(window=8, count=12)
    s.transmissions(0)
    assert after(s, 100, 1, 2, 3) == retries(0) + firsts(8, 9, 10)
    assert after(s, 150, 4, 5, 6, 7) == firsts(11)
    assert after(s, 200, 8, 9) == []
    assert after(s, 200, 10) == retries(0)


def test_at_the_end_of_a_round_one_later_ack_is_enough() -> None:
    s = sender(window=8, count=4)
    s.transmissions(0)
    assert after(s, 100, 0, 1) == []
    assert after(s, 101, 3) == retries(2)  # nothing is left that could be acknowledged later


def test_lost_resends_are_found_by_later_resends_only_if_these_made_the_difference() -> None:
    for after_resend, waited_us, expected in ((True, 100, retries(0, 1)), (False, 100, []), (True, 99, [])):
        s = sender(window=8, count=4)
        s.transmissions(0)
        assert after(s, 100, 3) == retries(0, 1, 2)
        # With no mark, some worker's first packet was late. Sooner than any round trip, the resend was not it.
        assert after(s, 100 + waited_us, 2, after_resend=after_resend) == expected


def test_a_fragment_marked_lost_and_acknowledged_in_time_is_not_resent() -> None:
    s = sender(window=8, count=8)
    s.transmissions(0)
    assert after(s, 100, 1, 2, 3, 0) == []
    assert s.deadline_us != 0


def test_paths_do_not_overtake_each_other() -> None:
    s = sender(window=16, count=16, paths=2)
    s.transmissions(0)
    assert after(s, 100, 1, 3, 5, 7, 9) == []  # all on the other path
    assert after(s, 101, 2, 4, 6) == retries(0)


def test_the_path_follows_the_packet_number_not_the_index() -> None:
    s = sender(window=8, count=8, paths=2, first_number=5)
    s.transmissions(0)
    assert after(s, 100, 7, 9, 11) == retries(0)


def test_acks_that_are_no_news() -> None:
    s = sender(window=2, count=4, first_number=(1 << 32) - 1)
    s.transmissions(0)
    assert acknowledge(s, [0, 0, 1, 3, (1 << 32) - 2], 10) == [(0, 1)]
    assert s.statistics.duplicate_acks == 1
    assert s.statistics.stale_acks == 3  # one not sent yet, one of no round, one of the round before


def test_rounds_follow_each_other() -> None:
    s = sender(window=4, count=2)
    s.transmissions(0)
    with pytest.raises(RuntimeError):
        s.begin(2, 2, 15)
    acknowledge(s, [0, 1], 10)
    s.begin(2, 2, 15)
    assert s.transmissions(20) == firsts(0, 1)
    assert acknowledge(s, [1, 3], 30) == [(1, 1)]


def test_after_some_retries_switches_are_told_to_give_up() -> None:
    s = sender(window=1, count=2)
    s.transmissions(0)
    attempts = []
    for _ in range(RETRIES + 2):
        attempts += s.transmissions(s.deadline_us or 0)
    assert attempts == [*retries(*[0] * RETRIES), *resends(0, 0)]
    assert s.statistics.given_up == 2
    assert after(s, 10**7, 0) == [Transmission(1, Attempt.LATE)]
    assert s.transmissions(s.deadline_us or 0) == retries(1)


def test_without_retries_switches_give_up_at_once() -> None:
    s = Sender(window_fragments=1, min_timeout_us=MIN_TIMEOUT_US, retries=0)
    s.begin(0, 1, 0)
    s.transmissions(0)
    assert s.transmissions(s.deadline_us or 0) == resends(0)


def test_what_the_server_asks_for_goes_directly_and_at_once() -> None:
    s = sender(window=2, count=4)
    s.transmissions(0)
    s.request([1])
    assert s.deadline_us == 0
    assert s.transmissions(10) == [Transmission(1, Attempt.DIRECT)]
    assert s.transmissions(10) == []
    s.request([2, 4, (1 << 32) - 1])  # not sent yet, and two of no round
    assert s.transmissions(10) == []
    assert after(s, 20, 0) == [Transmission(2, Attempt.DIRECT)]
    s.request([0])
    assert s.transmissions(20) == []
    assert (s.statistics.direct_copies, s.statistics.stale_requests) == (2, 3)
    assert after(s, 30, 1, 2) == firsts(3)
    acknowledge(s, [3], 40)
    s.begin(4, 3, 50)
    assert s.transmissions(50) == firsts(0, 1)
    assert after(s, 60, 4) == firsts(2)  # it was another round's fragment 2 that was asked for


def test_with_static_slots_no_two_unacknowledged_fragments_take_the_same_slot() -> None:
    """Number n takes slot n % 6, so a window of four goes on to 5 while 0 is missing, and no further."""
    s = sender(window=4, count=12, span=6)
    assert s.transmissions(0) == firsts(0, 1, 2, 3)
    assert after(s, 10, 1, 2) == firsts(4, 5)
    assert after(s, 20, 3) == retries(0)
    assert s.deadline_us != 0
    assert after(s, 30, 4, 5) == []
    assert after(s, 40, 0) == firsts(6, 7, 8, 9)


def test_losses_and_marks_close_the_window_once_per_round_trip() -> None:
    s = Sender(window_fragments=64, min_timeout_us=MIN_TIMEOUT_US)
    s.begin(0, 200, 0)
    assert len(s.transmissions(0)) == INITIAL_FRAGMENTS
    for outstanding in (range(INITIAL_FRAGMENTS), range(INITIAL_FRAGMENTS, 3 * INITIAL_FRAGMENTS)):  # slow start
        first = s.statistics.window.last
        acknowledge(s, list(outstanding), 100)
        assert s.statistics.window.last == 2 * first
        s.transmissions(100)
    s.acknowledge([30, 31, 32, 33], [False] * 4, 200, [True] * 4)
    assert (s.statistics.window.last, s.statistics.window.decreases) == (20, 1)
    assert s.transmissions(200) == []
    assert after(s, 300, *range(35, 50)) == retries(34)  # 34 is lost, but left before the last decrease
    assert s.statistics.window.decreases == 1
    assert s.statistics.window.congestion_marks == 4


def test_probes_for_late_workers_do_not_close_the_window() -> None:
    s = Sender(window_fragments=64, min_timeout_us=MIN_TIMEOUT_US)
    s.begin(0, 20, 0)
    s.transmissions(0)
    assert s.transmissions(s.deadline_us or 0) == retries(0)
    assert s.statistics.window.decreases == 0
    acknowledge(s, [1], 10**6)
    assert s.transmissions(s.deadline_us or 0)
    s.transmissions(10**7)
    assert s.statistics.window.decreases > 0


def test_what_a_timer_held_up_is_marked_late_for_a_window() -> None:
    s = sender(window=4, count=20)
    s.transmissions(0)
    assert after(s, 400, 1) == firsts(4)
    due_us = s.deadline_us or 0
    assert s.transmissions(due_us)[:1] == retries(0)
    acknowledge(s, [0, 2, 3, 4, 5, 6], due_us + 400)
    sent = s.transmissions(due_us + 400)
    late = [sending.fragment for sending in sent if sending.attempt is Attempt.LATE]
    assert late == [f for f in range(5, 9) if f in {sending.fragment for sending in sent}]


def test_fragments_that_have_backed_off_take_turns_until_a_sum_comes() -> None:
    s = sender(window=3, count=3)
    assert s.transmissions(0) == firsts(0, 1, 2)
    acknowledge(s, [0], 100)
    sent: list[tuple[int, int]] = []
    now_us = 100
    while now_us < 5_000_000:
        now_us = max(now_us, s.deadline_us or 0)
        sent += [(now_us, each.fragment) for each in s.transmissions(now_us)]
    late = [each for each in sent if each[0] >= 2_000_000]
    # One timer for both, MAX_BACKED_OFF_US long, and each has its turn.
    times_us = [time_us for time_us, _ in late]
    assert {after - before for before, after in itertools.pairwise(times_us)} == {MAX_BACKED_OFF_US}
    assert {(a, b) for (_, a), (_, b) in itertools.pairwise(late)} == {(1, 2), (2, 1)}
    # A sum that is news: the other's timer is as short as at first.
    acknowledge(s, [1], now_us)
    deadline_us = s.deadline_us
    assert deadline_us is not None and deadline_us - now_us < 2 * INITIAL_US
