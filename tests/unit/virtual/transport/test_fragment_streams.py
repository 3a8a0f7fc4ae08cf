"""Streams of fragments: vectors through losses, parts in any order, sinks that are asked late, and how they end."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.virtual.transport.network import Line
from tests.unit.virtual.transport.stream_ends import (
    AGAIN,
    FRAGMENTS,
    NO_OFFSET,
    PAYLOAD_BYTES,
    REPLIES,
    STREAM_FAILED,
    STREAMED,
    Arrived,
    arrived,
    frame,
    open_end,
    send,
)

LINK = LinkModel(rate_bps=10**10, delay_us=2, queue_packets=1000)
VALUES = PAYLOAD_BYTES // 4
SOURCE, OTHER = 1, 2


def vector(size: int, seed: int = 0) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(-(2**31), 2**31, size, np.int32)


def ended(line: Line, host: int, kind: int = STREAMED) -> list[int]:
    """Tags, in order."""
    return [each.tag for each in line.done[host] if each.kind == kind]


# ---- From end to end ----

SIZES = st.lists(st.integers(0, 30 * VALUES), min_size=1, max_size=5)


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    sizes=SIZES,
    window=st.integers(1, 20),
    seed=st.integers(0, 1000),
    loss=st.sampled_from([0, 0.05, 0.3]),
    duplicate=st.sampled_from([0, 0.2]),
    other=st.sampled_from(["sink", "server"]),
)
def test_vectors_come_through_whatever_is_lost(
    sizes: list[int], window: int, seed: int, loss: float, duplicate: float, other: str
) -> None:
    link = LinkModel(rate_bps=10**10, delay_us=2, queue_packets=1000, loss=loss, duplicate=duplicate)
    vectors = [vector(size, seed + place) for place, size in enumerate(sizes)]
    targets = [np.zeros(size, np.int32) for size in sizes]
    has_reply = other == "server"
    with Line([1, 1], link) as line:
        everybody = 1 << (SOURCE if has_reply else OTHER)
        open_end(line, "source", SOURCE, OTHER, window=window, reply_payload=int(has_reply), everybody=everybody)
        ends = {"window": 2 * window, "reply_payload": int(has_reply), "everybody": everybody, "bits": everybody}
        open_end(line, other, OTHER, SOURCE, **ends)
        for tag, values in enumerate(vectors):
            line.open(SOURCE).stream(1, tag, values.nbytes, values, targets[tag] if has_reply else None)
            if not has_reply:
                line.open(OTHER).stream(1, tag, values.nbytes, None, targets[tag])
        line.run()
        assert sorted(ended(line, SOURCE)) == list(range(len(sizes)))
        assert has_reply or sorted(ended(line, OTHER)) == list(range(len(sizes)))
        source, receiver = (line.open(host).stream_statistics(1) for host in (SOURCE, OTHER))
        rows = {(row.port, row.direction): row for row in line.simulated.engine.link_statistics()}
    for values, target in zip(vectors, targets, strict=True):
        np.testing.assert_array_equal(values, target)
    fragments = sum(max(1, -(-size // VALUES)) for size in sizes)
    assert source["sent_fragments"] == fragments + source["retransmissions"]
    assert source["retransmissions"] == source["timeouts"]
    assert receiver["received_fragments"] == fragments + receiver["duplicates"]
    # What links delivered, lost and doubled says the same.
    assert rows[OTHER, "out"].packets == receiver["received_fragments"]
    if not loss and not duplicate:
        assert source["retransmissions"] == receiver["duplicates"] == 0


def test_no_more_than_a_window_is_under_way() -> None:
    with Line([1, 1], LINK) as line:
        open_end(line, "source", SOURCE, OTHER, window=5, timeout_ns=10**9)
        line.open(SOURCE).stream(1, 0, 20 * PAYLOAD_BYTES, vector(20 * VALUES))
        line.run(100_000)
        assert [each.number for each in arrived(line.interface(OTHER))] == [0, 1, 2, 3, 4]
        send(line, OTHER, [frame(OTHER, SOURCE, REPLIES, number, 1 << SOURCE, [7] * VALUES) for number in (1, 2)])
        line.run(200_000)
        assert arrived(line.interface(OTHER)) == []  # the oldest is still under way
        send(line, OTHER, [frame(OTHER, SOURCE, REPLIES, 0, 1 << SOURCE, [7] * VALUES)])
        line.run(300_000)
        assert [each.number for each in arrived(line.interface(OTHER))] == [5, 6, 7]


def test_fragments_say_their_largest_absolute_value_and_end_with_zeros() -> None:
    values = np.array([5, -(2**31), 7] + [1] * (VALUES - 3) + [-3, 2], np.int32)
    with Line([1, 1], LINK) as line:
        open_end(line, "source", SOURCE, OTHER, timeout_ns=10**9)
        line.open(SOURCE).stream(1, 0, values.nbytes, values)
        line.run(100_000)
        first, second = arrived(line.interface(OTHER))
    assert first == Arrived(FRAGMENTS, 0, 1 << SOURCE, 2**31, 0, values[:VALUES].tolist())
    assert second == Arrived(FRAGMENTS, 1, 1 << SOURCE, 3, 0, [-3, 2] + [0] * (VALUES - 2))


def test_a_source_waits_for_all_who_have_to_reply() -> None:
    with Line([1, 1], LINK) as line:
        open_end(line, "source", SOURCE, OTHER, reply_payload=0, everybody=0b1110, timeout_ns=10**9)
        line.open(SOURCE).stream(1, 9, 4, vector(1))
        for bits in (0b0010, 0b0100, 0b0100, 0b0001, 0b1000):
            line.run(line.simulated.now_ns + 50_000)
            assert ended(line, SOURCE) == []
            send(line, OTHER, [frame(OTHER, SOURCE, REPLIES, 0, bits)])
        line.run(line.simulated.now_ns + 50_000)
        assert ended(line, SOURCE) == [9]


# ---- A server ----


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), workers=st.integers(1, 5), fragments=st.integers(1, 6))
def test_a_server_adds_up_parts_in_any_order_each_once(seed: int, workers: int, fragments: int) -> None:
    """Of each fragment a random partition of the workers comes summed, and later every worker alone; shuffled, some
    of them twice. Fragments that are further apart than a window allows do not come together."""
    rng = random.Random(seed)
    everybody = (1 << workers) - 1
    inputs = np.random.default_rng(seed).integers(-(2**31), 2**31, (fragments, workers, VALUES), np.int64)
    frames = []
    for number in range(fragments):
        members = list(range(workers))
        rng.shuffle(members)
        cut = rng.randint(0, workers)
        groups = [group for group in (members[:cut], members[cut:]) if group]
        for group in [*groups, *([each] for each in members), *rng.sample(groups, 1)]:
            values = inputs[number, group].sum(axis=0).astype(np.int32)
            bits = sum(1 << each for each in group)
            frames.append(frame(OTHER, SOURCE, FRAGMENTS, number, bits, values))
    rng.shuffle(frames)
    with Line([1, 1], LINK) as line:
        open_end(line, "server", SOURCE, OTHER, window=fragments, everybody=everybody, bits=everybody)
        send(line, OTHER, frames)
        line.run()
        replies = arrived(line.interface(OTHER))
        told = line.open(SOURCE).stream_statistics(1)
    assert sorted(each.number for each in replies) == list(range(fragments))
    for each in replies:
        wanted = inputs[each.number].sum(axis=0).astype(np.int32)
        assert (each.port, each.bits, each.flags, each.values) == (REPLIES, everybody, 0, wanted.tolist())
    assert told["received_fragments"] == len(frames) == told["parts"] + told["duplicates"]


def test_a_server_answers_again_who_asks_again_and_nobody_else() -> None:
    with Line([1, 1], LINK) as line:
        open_end(line, "server", SOURCE, OTHER, everybody=1 << OTHER, bits=1 << OTHER)
        for flags, answers in ((0, [0]), (0, []), (AGAIN, [AGAIN]), (1, [])):
            send(line, OTHER, [frame(OTHER, SOURCE, FRAGMENTS, 0, 1 << OTHER, [3] * VALUES, flags)])
            line.run()
            replies = arrived(line.interface(OTHER))
            assert [(each.flags, each.values) for each in replies] == [(each, [3] * VALUES) for each in answers]


def test_who_lags_a_window_behind_still_gets_the_result() -> None:
    """One worker's replies are lost while another has gone on for a whole window: the server needs two windows."""
    everybody, window = 0b11, 4
    one, two = ([value] * VALUES for value in (1, 2))
    with Line([1, 1], LINK) as line:
        open_end(line, "server", SOURCE, OTHER, window=2 * window, everybody=everybody, bits=everybody)
        first = [frame(OTHER, SOURCE, FRAGMENTS, 0, bits, values) for bits, values in ((1, one), (2, two))]
        ahead = [frame(OTHER, SOURCE, FRAGMENTS, number, 1, one) for number in range(1, window + 1)]
        send(line, OTHER, [*first, *ahead])
        line.run()
        assert [each.number for each in arrived(line.interface(OTHER))] == [0]
        send(line, OTHER, [frame(OTHER, SOURCE, FRAGMENTS, 0, 2, two, AGAIN)])
        line.run()
        assert [each.values for each in arrived(line.interface(OTHER))] == [[3] * VALUES]


@pytest.mark.parametrize("bits", [0, 0b100, 0b101])
def test_parts_of_nobody_or_of_strangers_change_no_sum(bits: int) -> None:
    with Line([1, 1], LINK) as line:
        open_end(line, "server", SOURCE, OTHER, everybody=0b11, bits=0b11)
        strange = frame(OTHER, SOURCE, FRAGMENTS, 0, bits, [100] * VALUES)
        parts = [frame(OTHER, SOURCE, FRAGMENTS, 0, each, [each] * VALUES) for each in (1, 2)]
        send(line, OTHER, [strange, parts[0], strange, parts[1]])
        line.run()
        assert [each.values for each in arrived(line.interface(OTHER))] == [[3] * VALUES]
        assert line.open(SOURCE).stream_statistics(1)["parts"] == 2


# ---- A sink ----


def test_a_sink_that_is_asked_late_takes_what_has_come() -> None:
    values = [vector(3 * VALUES, seed) for seed in (1, 2)]
    targets = [np.zeros(3 * VALUES, np.int32) for _ in values]
    with Line([1, 1], LINK) as line:
        open_end(line, "source", SOURCE, OTHER, reply_payload=0, everybody=1 << OTHER)
        open_end(line, "sink", OTHER, SOURCE, reply_payload=0)
        for tag, each in enumerate(values):
            line.open(SOURCE).stream(1, tag, each.nbytes, each)
        for tag, target in enumerate(targets):
            line.run(line.simulated.now_ns + 1_000_000)
            assert ended(line, OTHER) == ended(line, SOURCE) == list(range(tag))
            line.open(OTHER).stream(1, tag, target.nbytes, None, target)
        line.run()
        told = line.open(OTHER).stream_statistics(1)
    for each, target in zip(values, targets, strict=True):
        np.testing.assert_array_equal(each, target)
    assert told["received_fragments"] == 6 + told["duplicates"]


def test_a_sink_whose_replies_have_a_payload_replies_zeros() -> None:
    values, target, replied = vector(3 * VALUES), np.zeros(3 * VALUES, np.int32), np.ones(3 * VALUES, np.int32)
    with Line([1, 1], LINK) as line:
        open_end(line, "source", SOURCE, OTHER, reply_payload=1, everybody=1 << OTHER)
        open_end(line, "sink", OTHER, SOURCE, reply_payload=1)
        line.open(SOURCE).stream(1, 0, values.nbytes, values, replied)
        line.open(OTHER).stream(1, 0, target.nbytes, None, target)
        line.run()
        assert ended(line, OTHER) == ended(line, SOURCE) == [0]
    np.testing.assert_array_equal(values, target)
    assert not replied.any()


# ---- How they end ----


def test_a_source_gives_up_and_says_so_of_all_its_vectors() -> None:
    with Line([1, 1], LINK) as line:
        open_end(line, "source", SOURCE, OTHER, give_up_after=4, timeout_ns=50_000, window=2)
        for tag in (5, 6):
            line.open(SOURCE).stream(1, tag, 3 * PAYLOAD_BYTES, vector(3 * VALUES))
        line.run()
        assert ended(line, SOURCE, STREAM_FAILED) == [5, 6]
        assert line.simulated.now_ns < 10 * 50_000
        # What comes afterwards is told at once, and late replies are nobody's.
        line.open(SOURCE).stream(1, 7, 4, vector(1))
        send(line, OTHER, [frame(OTHER, SOURCE, REPLIES, number, 1 << SOURCE, [1] * VALUES) for number in range(9)])
        line.run()
        assert ended(line, SOURCE, STREAM_FAILED) == [5, 6, 7]
        numbers = [each.number for each in arrived(line.interface(OTHER))]
        assert sorted(numbers) == [0] * 5 + [1] * (len(numbers) - 5)


def test_a_source_is_patient_with_who_comes_late() -> None:
    """The pauses between tries grow from the fifth on, so that thirty of them last longer than ranks may differ, and
    what waits meanwhile does not fill the network. What is sent later has its own time."""
    with Line([1, 1], LINK) as line:
        open_end(line, "source", SOURCE, OTHER, give_up_after=30, timeout_ns=1_000_000, everybody=1 << SOURCE)
        line.open(SOURCE).stream(1, 0, 4, vector(1))
        line.run(5_000_000_000)
        assert ended(line, SOURCE, STREAM_FAILED) == []
        assert 10 < len(arrived(line.interface(OTHER))) < 30
        line.open(SOURCE).stream(1, 1, 4, vector(1))
        begin_ns = line.simulated.now_ns
        # One pause of 1 ms, and three of up to half longer.
        line.run(begin_ns + 5_500_000)
        assert [each.number for each in arrived(line.interface(OTHER)) if each.number] in ([1] * 5, [1] * 6)
        send(line, OTHER, [frame(OTHER, SOURCE, REPLIES, each, 1 << SOURCE, [0] * VALUES) for each in (0, 1)])
        line.run()
        assert ended(line, SOURCE) == [0, 1]


def test_what_is_sent_again_goes_past_switches_after_a_while() -> None:
    direct = frame(SOURCE, OTHER, 7002, 0, 1 << SOURCE)
    with Line([1, 1], LINK) as line:
        open_end(line, "source", SOURCE, OTHER, direct=direct, direct_after=2, give_up_after=4, timeout_ns=50_000)
        line.open(SOURCE).stream(1, 0, 4, vector(1))
        line.run()
        seen = [(each.port, each.flags) for each in arrived(line.interface(OTHER))]
    assert seen == [(FRAGMENTS, 0), (FRAGMENTS, AGAIN), (FRAGMENTS, AGAIN), (7002, 0), (7002, 0)]


def test_closed_in_the_middle_nothing_more_happens() -> None:
    """At any time: with a timer armed, fragments on their way in both directions, and some that came early."""
    for until_ns in (1_000, 3_000, 5_000, 9_000, 150_000):
        with Line([1, 1], LINK) as line:
            open_end(line, "source", SOURCE, OTHER, reply_payload=0, everybody=1 << OTHER)
            open_end(line, "sink", OTHER, SOURCE, reply_payload=0)
            line.open(SOURCE).stream(1, 0, 100 * PAYLOAD_BYTES, vector(100 * VALUES))
            line.open(OTHER).stream(1, 0, 4 * PAYLOAD_BYTES, None, np.zeros(4 * VALUES, np.int32))
            line.run(until_ns)
            line.open(SOURCE).close()
            if until_ns % 2_000:
                line.open(OTHER).close()
            line.run()
            assert ended(line, SOURCE) == []


def test_two_streams_of_a_host_do_not_meet() -> None:
    targets = [np.zeros(5 * VALUES, np.int32) for _ in range(2)]
    with Line([1, 1, 1], LINK) as line:
        for number, other in ((1, 2), (2, 3)):
            port = 7000 + 10 * number
            back = [(36, 0xFFFF, port + 1)]
            there, here = (frame(a, b, c, 0, 1 << other) for a, b, c in ((1, other, port), (other, 1, port + 1)))
            open_end(line, "source", 1, other, number, templates=[there], words=back, everybody=1 << other)
            open_end(line, "server", other, 1, templates=[here], words=[(36, 0xFFFF, port)])
            values = vector(5 * VALUES, number)
            line.open(1).stream(number, number, values.nbytes, values, targets[number - 1])
        line.run()
        assert sorted(ended(line, 1)) == [1, 2]
    for number in (1, 2):
        np.testing.assert_array_equal(targets[number - 1], vector(5 * VALUES, number))


# ---- What is refused ----


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"window": 65_537},
        {"payload_bytes": 0},
        {"payload_bytes": 6},
        {"payload_bytes": 65_536},
        {"payload_bytes": 2**32 - 4},
        {"everybody": 0},
        {"timeout_ns": 0},
        {"timeout_ns": 2**63},
        {"number_offset": 57},
        {"bits_offset": 53},
        {"magnitude_offset": 57},
        {"flags_offset": 60},
        {"number_offset": NO_OFFSET},
        {"words": [(59, 0xFFFF, 1)]},
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    with Line([1, 1], LINK) as line:
        with pytest.raises(UserError, match="stream 1: its templates, offsets or sizes do not fit each other"):
            open_end(line, "source", SOURCE, OTHER, **wrong)
        open_end(line, "source", SOURCE, OTHER)
        with pytest.raises(UserError, match="there is a stream 1 at this interface already"):
            open_end(line, "source", SOURCE, OTHER)


def test_vectors_that_no_stream_takes_are_refused() -> None:
    with Line([1, 1], LINK) as line:
        open_end(line, "server", SOURCE, OTHER)
        open_end(line, "source", SOURCE, OTHER, 2)
        for number, size_bytes in itertools.product((1, 2, 3), (4, 6)):
            if (number, size_bytes) == (2, 4):
                continue
            with pytest.raises(UserError, match=f"stream {number} takes no vector of {size_bytes} bytes"):
                line.open(SOURCE).stream(number, 0, size_bytes)
        with pytest.raises(UserError, match="there is no stream 3 here"):
            line.open(SOURCE).stream_statistics(3)


@pytest.mark.parametrize("queue_packets", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 4])
def test_sources_in_step_leave_step_once_a_timer_has_run_out(queue_packets: int, window: int) -> None:
    """Twelve sources repeat until the parts of all have come: all of them in one nanosecond, as there is no jitter.
    The queue kept the same ones each time, and the sum was never whole: 6 of 48 parts came, however long."""
    sources = range(1, 13)
    server = len(sources) + 1
    everybody = sum(1 << source for source in sources)
    short = LinkModel(rate_bps=10**9, delay_us=2, queue_packets=queue_packets)
    with Line([1] * len(sources) + [2], LinkModel(rate_bps=10**9, delay_us=2), between=short) as line:
        open_end(line, "server", server, 1, window=2 * window, everybody=everybody, bits=everybody)
        for source in sources:
            open_end(line, "source", source, server, window=window, everybody=everybody)
            line.open(source).stream(1, 9, 4 * VALUES * window)
        line.run(10**9)
        parts = line.open(server).stream_statistics(1)["parts"]
    assert parts == len(sources) * window
