"""Windows, timers and resends of the worker's side."""

from __future__ import annotations

import pytest

from hosts.transport.retransmission_timeout import INITIAL_FACTOR, MAX_TIMEOUT_US, RetransmissionTimeout
from hosts.transport.sender import EARLY_RESEND_AFTER, Sender, Transmission

MIN_TIMEOUT_US = 1000
INITIAL_US = INITIAL_FACTOR * MIN_TIMEOUT_US


def sender(window: int = 4, count: int = 10, paths: int = 1, first_number: int = 0) -> Sender:
    made = Sender(window_fragments=window, min_timeout_us=MIN_TIMEOUT_US, paths=paths)
    made.begin(first_number, count)
    return made


def firsts(*fragments: int) -> list[Transmission]:
    return [Transmission(fragment, resend=False) for fragment in fragments]


def resends(*fragments: int) -> list[Transmission]:
    return [Transmission(fragment, resend=True) for fragment in fragments]


def test_the_window_opens_as_answers_come() -> None:
    s = sender(window=4, count=6)
    assert s.deadline_us == 0
    assert s.transmissions(0) == firsts(0, 1, 2, 3)
    assert s.transmissions(1) == []
    assert s.answer([2, 0], 100) == [(0, 2), (1, 0)]
    assert s.transmissions(100) == firsts(4, 5)
    assert s.missing == 4
    s.answer([1, 3, 4, 5], 200)
    assert s.finished
    assert s.missing == 0
    assert s.deadline_us is None


def test_a_fragment_that_nobody_answers_is_resent_with_growing_patience() -> None:
    s = sender(window=1, count=1)
    assert s.transmissions(0) == firsts(0)
    assert s.deadline_us == INITIAL_US
    assert s.transmissions(INITIAL_US - 1) == []
    assert s.transmissions(INITIAL_US) == resends(0)
    assert s.deadline_us == INITIAL_US + 2 * INITIAL_US
    assert s.transmissions(3 * INITIAL_US) == resends(0)
    assert s.deadline_us == 3 * INITIAL_US + 4 * INITIAL_US
    now_us = 0
    for _ in range(30):
        now_us = s.deadline_us or 0
        s.transmissions(now_us)
    assert s.deadline_us == now_us + MAX_TIMEOUT_US
    assert s.statistics.timeout_resends == 32


def test_each_fragment_has_its_own_timer() -> None:
    s = sender(window=2, count=3)
    s.transmissions(0)
    s.answer([0], 400)
    s.transmissions(400)
    deadline_us = s.deadline_us
    assert deadline_us is not None
    assert s.transmissions(deadline_us) == resends(1)
    assert s.deadline_us == 400 + deadline_us  # fragment 2 left 400 us after fragment 1


def test_many_timers_at_once_double_the_timeout_once() -> None:
    s = sender(window=8, count=9)
    s.transmissions(0)
    assert len(s.transmissions(INITIAL_US)) == 8
    assert s.deadline_us == INITIAL_US + 2 * INITIAL_US


def test_new_fragments_inherit_the_backoff_until_one_is_answered_at_once() -> None:
    s = sender(window=1, count=3)
    s.transmissions(0)
    s.transmissions(INITIAL_US)
    s.answer([0], INITIAL_US + 10)  # ambiguous: no sample (Karn)
    assert s.transmissions(20_000) == firsts(1)
    assert s.deadline_us == 20_000 + 2 * INITIAL_US
    s.answer([1], 24_000)
    s.transmissions(24_000)
    assert s.deadline_us == 24_000 + 4000 + 4 * 2000  # smoothed 4 ms, variation 2 ms, and no backoff


def test_an_answer_shortens_timers_that_run_already() -> None:
    s = sender(window=2, count=2)
    s.transmissions(0)
    s.answer([1], 500)
    assert s.deadline_us == 500 + 4 * 250


def test_fast_retransmission_after_enough_later_answers() -> None:
    s = sender(window=8, count=8)
    s.transmissions(0)
    s.answer(list(range(1, EARLY_RESEND_AFTER)), 100)
    assert s.transmissions(100) == []
    s.answer([EARLY_RESEND_AFTER], 101)
    assert s.deadline_us == 0
    assert s.transmissions(101) == resends(0)
    s.answer([5, 6, 7], 102)
    assert s.transmissions(102) == resends(4)  # fragment 0 is not resent early a second time
    assert s.statistics.early_resends == 2
    assert s.statistics.timeout_resends == 0


def test_a_fragment_marked_lost_and_answered_in_time_is_not_resent() -> None:
    s = sender(window=8, count=8)
    s.transmissions(0)
    s.answer([1, 2, 3, 0], 100)
    assert s.transmissions(100) == []
    assert s.deadline_us != 0


def test_paths_do_not_overtake_each_other() -> None:
    s = sender(window=16, count=16, paths=2)
    s.transmissions(0)
    s.answer([1, 3, 5, 7, 9], 100)
    assert s.transmissions(100) == []  # all on the other path
    s.answer([2, 4, 6], 101)
    assert s.transmissions(101) == resends(0)


def test_the_path_follows_the_packet_number_not_the_index() -> None:
    s = sender(window=8, count=8, paths=2, first_number=5)
    s.transmissions(0)
    s.answer([7, 9, 11], 100)
    assert s.transmissions(100) == resends(0)


def test_answers_that_are_no_news() -> None:
    s = sender(window=2, count=4, first_number=(1 << 32) - 1)
    s.transmissions(0)
    assert s.answer([0, 0, 1, 3, (1 << 32) - 2], 10) == [(0, 1)]
    assert s.statistics.duplicate_answers == 1
    assert s.statistics.stale_answers == 3  # one not sent yet, one of no round, one of the round before


def test_rounds_follow_each_other() -> None:
    s = sender(window=4, count=2)
    s.transmissions(0)
    with pytest.raises(RuntimeError):
        s.begin(2, 2)
    s.answer([0, 1], 10)
    s.begin(2, 2)
    assert s.transmissions(20) == firsts(0, 1)
    assert s.answer([1, 3], 30) == [(1, 1)]


def test_estimator_follows_rfc_6298() -> None:
    timeout = RetransmissionTimeout(1000)
    timeout.sample(8000)
    assert timeout.timeout_us() == 8000 + 4 * 4000
    timeout.sample(16_000)
    # RTTVAR = 3/4 * 4000 + 1/4 * |8000 - 16000| = 5000; SRTT = 7/8 * 8000 + 1/8 * 16000 = 9000
    assert timeout.timeout_us() == 9000 + 4 * 5000
    assert timeout.timeout_us(backoff=2) == 4 * 29_000
    for _ in range(200):
        timeout.sample(100)
    assert timeout.timeout_us() == 100 + 1000  # the clock's granularity bounds the spread from below
    assert RetransmissionTimeout(5_000_000).timeout_us(backoff=40) == 5_000_000
