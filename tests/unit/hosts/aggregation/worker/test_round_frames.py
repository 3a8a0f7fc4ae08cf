"""A worker's frames as Scapy reads and writes them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.formats.aggregation import DIRECT, GRADIENT, GRADIENT_PORT, Flags
from gradbed.hosts.protocols.frames import Frames, lane_frame_type
from gradbed.hosts.systems.aggregation.endpoint import label_array
from gradbed.hosts.systems.aggregation.gradient import Gradient, gradient_frame
from gradbed.hosts.systems.aggregation.worker.sender import Sender
from gradbed.hosts.systems.aggregation.worker.server_exchange import RoundFrames
from tests.unit.hosts.aggregation.test_endpoint import JOB, LANES, WORKER_1, FakeSocket, worker_endpoint

FIRST = (1 << 32) - 2
"""Packet number of the first fragment: they go on from 0."""
COUNT = 7
VALUES = COUNT * LANES - 5
"""The last fragment is filled up with zeros."""
MIN_TIMEOUT_US = 1000


def gradient(seed: int) -> np.ndarray:
    """Fragments with the extremes of int32."""
    lanes = np.random.default_rng(seed).integers(-(1 << 31), 1 << 31, (COUNT, LANES), dtype=np.int32)
    lanes[1, :2], lanes[2] = (-(1 << 31), (1 << 31) - 1), 0
    lanes.reshape(-1)[VALUES:] = 0
    return lanes


def a_round(lanes: np.ndarray, window: int = 5) -> tuple[Sender, RoundFrames]:
    sender = Sender(window_fragments=window, min_timeout_us=MIN_TIMEOUT_US, congestion_control="none", retries=1)
    endpoint = worker_endpoint(FakeSocket())
    labels = label_array([*JOB.designations_of(1), DIRECT])
    headers = endpoint.headers(labels, worker_bitmap=2, dst_ip=0x0A000001)
    frames = RoundFrames(sender, headers, lanes.reshape(-1)[:VALUES], LANES)
    sender.begin(FIRST, COUNT, 0)
    return sender, frames


def sent(frames: RoundFrames, now_us: int) -> list[Ether]:
    due = frames.due(now_us)
    return [] if due is None else [Ether(each.tobytes()) for each in due]


def number(fragment: int) -> int:
    return (FIRST + fragment) % (1 << 32)


def ack(fragment: int, lanes: list[int], shift: int = 0, flags: int = 0, tos: int = 0) -> np.ndarray:
    """As it comes."""
    frame = gradient_frame(
        src_mac="02:00:00:00:00:01",
        dst_mac="02:00:00:00:00:03",
        src_ip="10.0.0.1",
        dst_ip=WORKER_1,
        job=5,
        packet_number=number(fragment),
        worker_bitmap=3,
        flags=Flags.ACK | flags,
        magnitude=shift,
        lanes=lanes,
    )
    frame[IP].tos = tos
    return np.frombuffer(bytes(frame), np.uint8)


def batch(*frames: np.ndarray) -> Frames:
    return np.concatenate(frames).view(lane_frame_type(GRADIENT, LANES))


def test_what_leaves_is_the_gradient_under_its_headers() -> None:
    lanes = gradient(1)
    sender, frames = a_round(lanes)
    first = sent(frames, 0)
    sender.request([number(1), number(6)])
    second = sent(frames, 10)
    assert sent(frames, 11) == []
    frames.take(batch(*(ack(fragment, [0] * LANES) for fragment in (0, 2, 3))), 20)
    late = [each for _ in range(3) for each in sent(frames, sender.deadline_us or 0)]
    fragments = [(each[Gradient].packet_number - FIRST) % (1 << 32) for each in (*first, *second, *late)]
    assert fragments[:6] == [0, 1, 2, 3, 4, 1] and set(fragments) == set(range(COUNT))
    flags = {int(each[Gradient].flags) for each in late}
    assert flags >= {int(Flags.RETRY), int(Flags.RESEND)}
    direct = {5, fragments.index(6)}
    for place, (fragment, frame) in enumerate(zip(fragments, (*first, *second, *late), strict=True)):
        is_direct = place in direct
        packet = frame[Gradient]
        assert packet.lanes == lanes[fragment].tolist()
        assert packet.magnitude == max(abs(int(lane)) for lane in lanes[fragment])
        label = DIRECT if is_direct else JOB.designations_of(1)[number(fragment) % 2]
        assert (packet.switch_number, packet.fan_in, packet.next_switch, packet.next_fan_in) == (
            label.switch_number,
            label.fan_in,
            label.next_switch,
            label.next_fan_in,
        )
        assert frame[UDP].sport == (label.switch_number or GRADIENT_PORT)
        assert (packet.job, packet.worker_bitmap, frame[IP].src) == (5, 2, WORKER_1)
        assert is_direct <= (int(packet.flags) == Flags.RESEND)
        assert bytes(Ether(bytes(frame))[IP]) == bytes(frame[IP])
        checked = frame[IP].copy()
        del checked.chksum
        assert IP(bytes(checked)).chksum == frame[IP].chksum


@given(st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=12), st.integers(0, 100))
def test_sums_come_where_they_belong_the_first_of_each(arrivals: list[int], seed: int) -> None:
    chance = np.random.default_rng(seed)
    sender, frames = a_round(gradient(seed), window=COUNT)
    frames.due(0)
    expected: dict[int, np.ndarray] = {}
    for start in range(0, len(arrivals), 3):
        rows = []
        for fragment in arrivals[start : start + 3]:
            lanes, shift = chance.integers(-(1 << 31), 1 << 31, LANES), int(chance.integers(0, 7))
            rows.append(ack(fragment, lanes.tolist(), shift))
            expected.setdefault(fragment, lanes << shift)
        frames.take(batch(*rows), 100)
    assert sender.missing == COUNT - len(expected)
    for fragment in set(range(COUNT)) - set(expected):
        frames.take(batch(ack(fragment, [fragment] * LANES)), 200)
        expected[fragment] = np.full(LANES, fragment)
    assert sender.finished
    assert frames.total().tolist() == np.concatenate([expected[each] for each in range(COUNT)])[:VALUES].tolist()


def test_marks_are_read_from_flags_and_from_the_ip_header() -> None:
    sender, frames = a_round(gradient(1), window=COUNT)
    frames.due(0)
    zeros = [0] * LANES
    frames.take(batch(ack(0, zeros, flags=int(Flags.CONGESTION)), ack(1, zeros, tos=3), ack(2, zeros, tos=2)), 500)
    assert sender.statistics.window.congestion_marks == 2
    # A sum that is due to a repeated packet is no sample: the timer stays as long as at first.
    marked, plain = a_round(gradient(1), window=COUNT), a_round(gradient(1), window=COUNT)
    for (_, each), flags in ((marked, Flags.RESEND), (plain, 0)):
        each.due(0)
        each.take(batch(ack(0, zeros, flags=int(flags))), 500)
    assert marked[0].deadline_us == 500 + 10 * MIN_TIMEOUT_US
    assert plain[0].deadline_us == 500 + 500 + 4 * MIN_TIMEOUT_US
