"""Whatever links lose, double and overtake: every message arrives once, whole, in order."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.virtual.transport.network import FAILED, SENT, Line, contents

RELIABLE = LinkModel(rate_bps=10**10, delay_us=2, queue_packets=10_000)
RECOVERIES = ("go-back-n", "selective-repeat")
MESSAGES = st.lists(
    st.tuples(st.sampled_from([1, 2]), st.integers(0, 30_000), st.booleans()), min_size=1, max_size=12
)
"""Which host sends, how many bytes, and whether they are contents."""


def check(messages: list[tuple[int, int, bool]], link: LinkModel, **options: Any) -> Line:
    """Hosts across two switches; the line is closed, its completions stay."""
    sent: dict[int, list[tuple[int, int, np.ndarray[Any, Any] | None]]] = {1: [], 2: []}
    with Line([1, 2], link) as line:
        line.connect(1, 2, number_a=17, number_b=0xFFFFFF, **options)
        for tag, (host, size_bytes, with_contents) in enumerate(messages):
            data = contents(size_bytes, tag) if with_contents else None
            sent[host].append((2**63 + tag, size_bytes, data))
            line.open(host).send({1: 17, 2: 0xFFFFFF}[host], 2**63 + tag, size_bytes, data)
        line.run()
        for host, peer in ((1, 2), (2, 1)):
            received = line.received(peer)
            assert [(each.tag, each.size_bytes) for each in received] == [each[:2] for each in sent[host]]
            for each, (_, _, data) in zip(received, sent[host], strict=True):
                assert (each.data is None) == (data is None)
                assert data is None or (each.data is not None and np.array_equal(each.data, data))
            done = [each for each in line.done[host] if each.kind == SENT]
            assert [each.tag for each in done] == [each[0] for each in sent[host]]
            assert not any(each.kind == FAILED for each in line.done[host])
        for host in (1, 2):
            line.interface(host).close()
        assert line.simulated.engine.statistics().live_packets == 0
    return line


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(
    messages=MESSAGES,
    recovery=st.sampled_from(RECOVERIES),
    loss=st.sampled_from([0.01, 0.05, 0.2]),
    duplicate=st.sampled_from([0, 0.1]),
    jitter_us=st.sampled_from([0, 2]),
    options=st.fixed_dictionaries(
        {
            "mtu_bytes": st.sampled_from([64, 1000, 4096]),
            "window_bytes": st.sampled_from([0, 1, 5000, 100_000]),
            "acknowledge_every": st.integers(1, 8),
            "reordering_packets": st.sampled_from([0, 3]),
            "congestion_control": st.sampled_from(["none", "dcqcn"]),
        }
    ),
)
def test_every_message_arrives_once_whole_and_in_order(
    messages: list[tuple[int, int, bool]],
    recovery: str,
    loss: float,
    duplicate: float,
    jitter_us: int,
    options: dict[str, Any],
) -> None:
    link = dataclasses.replace(RELIABLE, loss=loss, duplicate=duplicate, jitter_us=jitter_us, reorder=jitter_us > 0)
    check(messages, link, recovery=recovery, timeout_ns=100_000, give_up_after=1000, **options)


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_contents_arrive_byte_for_byte_through_losses(recovery: str) -> None:
    link = dataclasses.replace(RELIABLE, loss=0.02, duplicate=0.02)
    check([(1, 3_000_001, True), (2, 1_234_567, True)], link, recovery=recovery, window_bytes=200_000)


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("before", [0, 1, 40, 64, 500])
def test_packet_numbers_begin_anew(recovery: str, before: int) -> None:
    """They have 24 bits."""
    link = dataclasses.replace(RELIABLE, loss=0.02, duplicate=0.02)
    options = {"recovery": recovery, "first_psn": 2**24 - before, "mtu_bytes": 256, "window_bytes": 30_000}
    check([(1, 300_001, True), (2, 234_567, True)], link, **options)


@pytest.mark.parametrize("window", [4, 8])
@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("control", ["none", "dctcp"])
def test_a_queue_that_is_longer_than_timeouts_does_not_fill_with_copies(
    control: str, recovery: str, window: int
) -> None:
    """Eight windows of four packets are 3.5 ms of the slow link, which marks nothing, and timeouts of 1 ms are asked
    for. As long as all were as short every pair with selective repeat gave up."""
    pairs, packets = range(1, 9), 1024
    slow = LinkModel(rate_bps=3 * 10**8, delay_us=1, queue_packets=10**6)
    with Line([1, 2], LinkModel(rate_bps=10**10, delay_us=1), between=slow) as line:
        for pair in pairs:
            line.connect(
                1, 2, pair, pair, recovery=recovery, give_up_after=100, window_bytes=window * 4096,
                congestion_control=control,
            )  # fmt: skip
            line.open(1).send(pair, pair, packets * 4096)
        line.run()
        assert sorted(each.tag for each in line.received(2)) == list(pairs)
        assert {each.kind for each in line.done[1]} == {SENT}
        for pair in pairs:
            assert 0 < line.open(1).statistics(pair)["retransmissions"] < packets


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("messages", [1, 40])
def test_timeouts_after_losses_are_no_round_trips(recovery: str, messages: int) -> None:
    """The first packet after a timeout finds the queue empty, so no packet takes more than one timeout. As long as
    the wait for a timeout was a round trip, each made the next one twice as long: 53 of 10 ms took 192 s."""
    packets, mtu_bytes, timeout_ns, window = 160, 1000, 10_000_000, 16
    fast = LinkModel(rate_bps=2 * 10**8, delay_us=100)
    with Line([1, 2], fast, between=LinkModel(rate_bps=10**8, delay_us=1, queue_packets=1)) as line:
        line.connect(
            1, 2, recovery=recovery, timeout_ns=timeout_ns, window_bytes=window * mtu_bytes, mtu_bytes=mtu_bytes,
            reordering_packets=12,
        )  # fmt: skip
        for tag in range(messages):
            line.open(1).send(1, tag, packets // messages * mtu_bytes)
        line.run()
        assert [each.tag for each in line.received(2)] == list(range(messages))
        assert {each.kind for each in line.done[1]} == {SENT}
        assert max(each.time_ns for each in line.done[1]) <= packets * (timeout_ns + window * mtu_bytes * 80)


def test_pairs_in_step_leave_step_once_a_timer_has_run_out() -> None:
    """Eight pairs whose peer is gone: the first timeouts are equal, the later ones up to half longer, another one for
    each pair, and the same each time."""

    def ends_us() -> list[float]:
        hosts = range(1, 9)
        with Line([1] * 8 + [2], RELIABLE) as line:
            for host in hosts:
                line.connect_end(host, 9, 1, host, timeout_ns=1_000_000, give_up_after=10)
                line.open(host).send(1, 1, 100)
            line.run()
            return [line.done[host][-1].time_ns / 1e3 for host in hosts]

    found = ends_us()
    assert len(set(found)) == 8 and all(10_000 < each < 14_500 for each in found)
    assert ends_us() == found
