"""When packets of queue pairs come, to the nanosecond, against a model that is written here."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.virtual.transport.network import RECEIVED, SENT, Line, contents

HEADERS_BYTES, RETH_BYTES, IMMEDIATE_BYTES, ICRC_BYTES, ACK_BYTES = 14 + 20 + 8 + 12, 16, 4, 4, 62


def frame_bytes(payload_bytes: int, first: bool, last: bool) -> int:
    padded = -(-payload_bytes // 4) * 4
    return HEADERS_BYTES + RETH_BYTES * first + IMMEDIATE_BYTES * last + padded + ICRC_BYTES


def packets_of(size_bytes: int, mtu_bytes: int) -> list[int]:
    """Frames of a message."""
    parts = [min(mtu_bytes, size_bytes - at) for at in range(0, size_bytes, mtu_bytes)] or [0]
    return [frame_bytes(part, i == 0, i == len(parts) - 1) for i, part in enumerate(parts)]


@dataclass
class Cable:
    """One direction. Times in nanoseconds; what is left of one is carried over to the next frame that follows at
    once."""

    rate_bps: int
    delay_ns: int
    busy_until_ns: int = 0
    left: int = 0

    def send(self, at_ns: int, length: int) -> int:
        """When it arrives."""
        begin_ns = max(at_ns, self.busy_until_ns)
        work = 8 * length * 10**9 + (self.left if begin_ns == self.busy_until_ns else 0)
        self.busy_until_ns, self.left = begin_ns + work // self.rate_bps, work % self.rate_bps
        return self.busy_until_ns + self.delay_ns


def times_of(messages: list[int], mtu_bytes: int, every: int, hops: int, rate_bps: int, delay_us: int) -> list[int]:
    """Of one pair without a window: when each message has come, and when the sender knows that."""
    forth = [Cable(rate_bps, 1000 * delay_us) for _ in range(hops)]
    back = [Cable(rate_bps, 1000 * delay_us) for _ in range(hops)]
    received, acknowledgements, since = [], [], 0
    for message in messages:
        frames = packets_of(message, mtu_bytes)
        for i, length in enumerate(frames):
            at_ns = 0
            for cable in forth:
                at_ns = cable.send(at_ns, length)
            since += 1
            if i == len(frames) - 1:
                received.append(at_ns)
            if since == every or i == len(frames) - 1:
                acknowledgements.append((at_ns, i == len(frames) - 1))
                since = 0
    sent = []
    for at_ns, last in acknowledgements:
        # One that waits for the NIC's transmitter is overtaken by the news.
        assert at_ns >= back[0].busy_until_ns
        for cable in back:
            at_ns = cable.send(at_ns, ACK_BYTES)
        if last:
            sent.append(at_ns)
    return received + sent


@pytest.mark.parametrize("hops", [2, 3, 5])
@pytest.mark.parametrize("rate_bps", [10**9, 25 * 10**9, 100 * 10**9, 400 * 10**9])
def test_messages_of_a_pair_take_as_long_as_by_formula(hops: int, rate_bps: int) -> None:
    messages, mtu_bytes = [1_000_000, 1, 4096, 4097, 3], 4096
    link = LinkModel(rate_bps=rate_bps, delay_us=2)
    with Line([1, hops - 1], link) as line:
        line.connect(1, 2)
        for tag, size_bytes in enumerate(messages):
            line.open(1).send(1, tag, size_bytes, contents(size_bytes) if tag % 2 else None)
        line.run()
        received = [each.time_ns for each in line.done[2] if each.kind == RECEIVED]
        sent = [each.time_ns for each in line.done[1] if each.kind == SENT]
    assert received + sent == times_of(messages, mtu_bytes, 4, hops, rate_bps, 2)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(
    messages=st.lists(st.integers(0, 40_000), min_size=1, max_size=8),
    mtu_bytes=st.sampled_from([256, 1000, 4096]),
    every=st.integers(1, 9),
    hops=st.integers(2, 4),
)
def test_any_messages(messages: list[int], mtu_bytes: int, every: int, hops: int) -> None:
    with Line([1, hops - 1], LinkModel(rate_bps=10**9, delay_us=3)) as line:
        line.connect(1, 2, mtu_bytes=mtu_bytes, acknowledge_every=every)
        for tag, size_bytes in enumerate(messages):
            line.open(1).send(1, tag, size_bytes)
        line.run()
        found = [each.time_ns for each in (*line.done[2], *line.done[1])]
    assert found == times_of(messages, mtu_bytes, every, hops, 10**9, 3)


# ---- A window ----


def windowed_ns(packets: int, window: int, every: int, rate_bps: int, delay_us: int) -> int:
    """When the last of equal packets has come to the host across one switch; the window in packets. Event by
    event."""
    forth = [Cable(rate_bps, 1000 * delay_us) for _ in range(2)]
    back = [Cable(rate_bps, 1000 * delay_us) for _ in range(2)]
    events: list[tuple[int, int]] = [(0, 0)]
    sent = acknowledged = since = came_ns = 0
    lengths = packets_of(4096 * packets, 4096)
    while events:
        now_ns, told = heapq.heappop(events)
        acknowledged = max(acknowledged, told)
        while sent < packets and sent - acknowledged < window:
            start_ns = max(now_ns, forth[0].busy_until_ns)
            came_ns = forth[1].send(forth[0].send(start_ns, lengths[sent]), lengths[sent])
            sent, since = sent + 1, since + 1
            asked = window < 2 * every or sent - acknowledged >= window or sent == packets
            if asked or since == every:
                since = 0
                heapq.heappush(events, (back[1].send(back[0].send(came_ns, ACK_BYTES), ACK_BYTES), sent))
    return came_ns


@pytest.mark.parametrize("window", [1, 2, 5, 8, 13, 40])
def test_a_window_lets_so_much_be_under_way(window: int) -> None:
    with Line([1, 1], LinkModel(rate_bps=10**10, delay_us=10)) as line:
        line.connect(1, 2, window_bytes=4096 * window)
        line.open(1).send(1, 7, 4096 * 100)
        line.run()
        assert line.received(2)[0].time_ns == windowed_ns(100, window, 4, 10**10, 10)
