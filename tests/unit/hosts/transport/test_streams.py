"""A reliable stream of packets: numbers, windows, losses, timers, copies."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.hosts.transport.retransmission_timeout import sender_seed
from gradbed.hosts.transport.stream_receiver import SELECTIVE_BITS, StreamReceiver
from gradbed.hosts.transport.stream_sender import INITIAL_FACTOR, StreamSender


def sender(window: int = 16, first: int = 0) -> StreamSender:
    return StreamSender(window_packets=window, min_timeout_us=1000, congestion_control="none", first_sequence=first)


@given(st.lists(st.integers(0, 90), max_size=200), st.sampled_from([0, (1 << 32) - 3]))
def test_a_receiver_is_a_set(offsets: list[int], first: int) -> None:
    receiver, have = StreamReceiver(first), set[int]()
    for offset in offsets:
        gap = next(n for n in range(200) if n not in have)
        new = offset not in have and offset <= gap + SELECTIVE_BITS
        assert receiver.accept([(first + offset) % (1 << 32)]) == [new]
        if new:
            have.add(offset)
        gap = next(n for n in range(200) if n not in have)
        bitmap = sum(1 << k for k in range(SELECTIVE_BITS) if gap + 1 + k in have)
        assert receiver.acknowledgement == ((first + gap) % (1 << 32), bitmap)


def test_a_window_opens_with_acknowledgements() -> None:
    stream = sender(window=4)
    assert stream.finished
    stream.queue(6)
    assert stream.transmissions(0) == [0, 1, 2, 3]
    assert stream.acknowledge(1, 0b10, False, 100) == [0, 3]
    assert stream.deadline_us == 0
    assert stream.transmissions(100) == [4, 5]
    assert stream.acknowledge(6, 0, False, 200) == [1, 2, 4, 5]
    assert stream.finished and stream.deadline_us is None


def test_numbers_never_lie_further_apart_than_an_acknowledgement_tells() -> None:
    stream, receiver = sender(window=500), StreamReceiver()
    stream.queue(500)
    first, *others = stream.transmissions(0)
    assert len(others) == SELECTIVE_BITS
    assert all(receiver.accept(others))
    assert stream.acknowledge(*receiver.acknowledgement, False, 100) == others
    assert stream.transmissions(100) == [first]


def test_three_later_acknowledgements_reveal_a_loss() -> None:
    stream = sender(window=8)
    stream.queue(20)
    stream.transmissions(0)
    stream.acknowledge(0, 0b011, False, 100)
    assert 0 not in stream.transmissions(100)
    stream.acknowledge(0, 0b111, False, 110)
    assert stream.transmissions(110)[0] == 0
    assert stream.statistics.early_resends == 1
    # By those sent before it the repeated one has not been overtaken.
    stream.acknowledge(0, 0b1111111, False, 111)
    assert 0 not in stream.transmissions(111)


def test_the_last_packets_need_no_three() -> None:
    stream = sender()
    stream.queue(2)
    stream.transmissions(0)
    stream.acknowledge(0, 0b1, False, 100)
    assert stream.transmissions(100) == [0]


def test_timers_back_off_and_repeat_until_acknowledged() -> None:
    stream = sender()
    stream.queue(1)
    stream.transmissions(0)
    assert stream.deadline_us == INITIAL_FACTOR * 1000
    times = []
    for _ in range(8):
        now_us = stream.deadline_us
        assert now_us is not None
        assert stream.transmissions(now_us - 1) == []
        assert stream.transmissions(now_us) == [0]
        times.append(now_us)
    waits = [b - a for a, b in itertools.pairwise(times)]
    assert waits == sorted(waits) and waits[-1] > waits[0]
    assert stream.acknowledge(1, 0, False, times[-1] + 5) == [0]
    assert stream.statistics.timeout_resends == 8


def test_round_trips_of_repeated_packets_are_no_samples() -> None:
    stream = sender()
    stream.queue(3)
    stream.transmissions(0)
    stream.acknowledge(1, 0, False, 2000)
    stream.acknowledge(2, 0, False, 2000)
    stream.transmissions(stream.deadline_us or 0)
    stream.acknowledge(3, 0, False, 900_000)
    stream.queue(1)
    stream.transmissions(1_000_000)
    assert stream.deadline_us is not None
    # Samples of 2 ms each: smoothed, and four times the variation.
    assert 1_003_000 <= stream.deadline_us < 1_010_000


@pytest.mark.parametrize("number", [1, 5000, (1 << 31) + 7, (1 << 32) - 1])
def test_what_was_never_sent_cannot_be_acknowledged(number: int) -> None:
    stream = sender()
    stream.queue(0)
    assert stream.acknowledge(number, (1 << 64) - 1, True, 0) == []
    stream.queue(1)
    assert stream.transmissions(0) == [0]
    assert stream.acknowledge(number + 1 & 0xFFFFFFFF or 2, 0, False, 1) == []
    assert not stream.finished
    assert stream.statistics.stale_acknowledgements == 2


@pytest.mark.thorough
@given(st.integers(0, 1 << 30))
def test_everything_arrives_once_whatever_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    first = (1 << 32) - 20
    stream, receiver, arrived = sender(first=first), StreamReceiver(first), list[int]()
    stream.queue(100)
    now_us = 0
    for _ in range(10_000):
        sent = [number for number in stream.transmissions(now_us) if chance.random() < 0.7]
        chance.shuffle(sent)
        arrived += [number for number, new in zip(sent, receiver.accept(sent), strict=True) if new]
        now_us += 50
        if sent and chance.random() < 0.7:
            stream.acknowledge(*receiver.acknowledgement, False, now_us)
        now_us = max(now_us, stream.deadline_us or 0)
    assert stream.finished
    assert sorted((number - first) % (1 << 32) for number in arrived) == list(range(100))


def test_a_timer_sends_one_packet_and_its_acknowledgement_reveals_the_rest() -> None:
    stream = sender(window=8)
    stream.queue(30)
    stream.transmissions(0)
    stream.acknowledge(8, 0, False, 500)
    assert len(stream.transmissions(500)) == 8  # all of them get lost
    timer_us = stream.deadline_us
    assert timer_us is not None
    assert stream.transmissions(timer_us) == [8]
    assert stream.acknowledge(9, 0, False, timer_us + 500) == [8]
    assert stream.transmissions(timer_us + 500)[:7] == list(range(9, 16))
    assert (stream.statistics.timeout_resends, stream.statistics.early_resends) == (1, 7)


def test_a_receiver_that_was_kept_waiting_costs_one_packet() -> None:
    stream = sender(window=8)
    stream.queue(30)
    stream.transmissions(0)
    stream.acknowledge(8, 0, False, 500)
    stream.transmissions(500)
    timer_us = stream.deadline_us
    assert timer_us is not None
    stream.transmissions(timer_us)
    assert len(stream.acknowledge(16, 0, False, timer_us + 10)) == 8
    assert stream.transmissions(timer_us + 10) == list(range(16, 24))
    assert (stream.statistics.timeout_resends, stream.statistics.early_resends) == (1, 0)


def test_senders_in_step_leave_step_once_a_timer_has_run_out() -> None:
    """The first timers are equal, the later ones lie up to a half further on, another for each seed, and the same
    each time."""

    def times_us(seed: int) -> list[int]:
        stream = StreamSender(window_packets=4, min_timeout_us=1000, congestion_control="none", seed=seed)
        stream.queue(1)
        stream.transmissions(0)
        found = []
        for _ in range(3):
            found.append(stream.deadline_us or 0)
            stream.transmissions(found[-1])
        return found

    every = [times_us(sender_seed(1, worker)) for worker in range(20)]
    assert every == [times_us(sender_seed(1, worker)) for worker in range(20)]
    assert {times[0] for times in every} == {10_000} and len({times[1] for times in every}) > 15
    assert all(20_000 <= times[1] < 25_000 for times in every)
    assert every[0] != times_us(sender_seed(2, 0))


def test_what_came_with_a_repeated_packet_is_no_sample() -> None:
    """Of a multicast packet that all have, one's acknowledgement got lost: that of the next repetition tells so. If
    this took the wait for a timer for a round trip, timers would follow themselves."""
    stream = sender(window=2)
    now_us, waits_us = 0, []
    for number in range(0, 20, 2):
        stream.queue(2)
        assert stream.transmissions(now_us) == [number, number + 1]
        timer_us = stream.deadline_us
        assert timer_us is not None
        waits_us.append(timer_us - now_us)
        assert stream.transmissions(timer_us) == [number]
        now_us = timer_us + 500
        assert stream.acknowledge(number + 2, 0, False, now_us) == [number, number + 1]
    assert set(waits_us) == {INITIAL_FACTOR * 1000}
