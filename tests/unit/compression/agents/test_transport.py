"""Group acknowledgements, rates that follow marks, packets, and gradients that are cut while they are sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.formats.compression import Flags
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.compressors.content import Content, read, written
from gradbed.hosts.protocols.frames import met_congestion
from gradbed.hosts.systems.compression.frames import (
    HEADER_BYTES,
    Route,
    acknowledgement_frame,
    end_frame,
    part_frames,
    received_acknowledgements,
    received_parts,
)
from gradbed.hosts.systems.compression.layers import Acknowledgement, GradientPart
from gradbed.hosts.systems.compression.rate import Finding, Pace, RateReading
from gradbed.hosts.systems.compression.transport import GradientMessage, StreamOutput, fitting
from gradbed.hosts.transport.pacing import AimdRate
from gradbed.hosts.transport.stream_receiver import GroupAcknowledgement
from gradbed.hosts.transport.stream_sender import StreamSender
from tests.unit.compression.jobs import job_of
from tests.unit.compression.trials import run

OWN = AgentAddress(name="h2", ip="10.0.0.2", mac="02:00:00:00:00:02", gateway_mac="02:00:00:00:01:00")
ROUTE = Route(7, OWN, "10.0.0.1", OWN.gateway_mac)


# ---- Several receivers ----


@pytest.mark.parametrize("first", [0, 2**32 - 3])
def test_a_group_has_what_all_its_members_have(first: int) -> None:
    group = GroupAcknowledgement("abc", first)

    def after(packets: int) -> int:
        return (first + packets) % 2**32

    assert group.acknowledgement == (first, 0)
    group.take("a", after(5), 0)
    group.take("b", after(4), 0b10)  # 0 to 3, and 6
    assert group.acknowledgement == (first, 0)
    group.take("c", after(2), 0b10110)  # 0, 1, and 4, 5, 7
    assert group.acknowledgement == (after(2), 0)
    group.take("b", after(7), 0)
    assert group.acknowledgement == (after(2), 0b10)  # 4: a has no more
    group.take("b", after(1), 0)  # old
    group.take("x", after(9), 0)  # a stranger
    assert group.acknowledgement == (after(2), 0b10)
    group.leave("c")
    assert group.acknowledgement == (after(5), 0)
    group.leave("a")
    group.leave("b")
    assert group.acknowledgement is None


def test_a_rate_grows_step_by_step_and_is_halved_once_in_a_round_trip() -> None:
    rate = AimdRate(1000, 100, 1250, step_bps=100, period_us=10)
    for now_us in (0, 5, 10, 20, 30):
        rate.acknowledged(now_us, now_us + 50, marked=False, now_us=now_us)
    assert rate.rate_bps == 1250
    rate.acknowledged(40, 90, marked=True, now_us=40)
    assert rate.rate_bps == 625
    rate.acknowledged(90, 95, marked=True, now_us=41)  # sent before that was known
    assert rate.rate_bps == 625
    rate.acknowledged(91, 99, marked=True, now_us=42)
    for number in range(100, 110):
        rate.acknowledged(number, number, marked=True, now_us=43)
    assert rate.rate_bps == 100 and rate.decreases > 3


def found(rate_bps: float, *, backlog: bool, grew: bool = False) -> Finding:
    return Finding(RateReading(0, rate_bps), backlog, grew)


@pytest.mark.parametrize("pacing", ["even", "active"])
def test_a_pace_is_a_share_of_the_link_and_less_while_less_arrives(pacing: str) -> None:
    """Somewhat less than that, until queues are short again; then it grows back by sixteenths."""
    pace = Pace(job_of(4, server_link_bps=6_400_000, pacing=pacing), 0, 0)
    assert pace.bucket is not None and pace.bucket.rate_bps == 1_600_000
    rates = []
    for finding in (
        found(1_000_000, backlog=False, grew=True),
        found(800_000, backlog=True, grew=True),
        found(700_000, backlog=True),
        *[found(760_000, backlog=False)] * 9,
    ):
        pace.read(finding, 0)
        rates.append(pace.bucket.rate_bps)
    assert rates == [1_600_000, 760_000, 760_000, *range(860_000, 1_600_000, 100_000), 1_600_000]
    pace.read(found(800_000, backlog=True, grew=True), 0)
    pace.acknowledged(1, 2, 2, 0, marked=True)
    assert pace.bucket.rate_bps == (1_520_000 if pacing == "active" else 760_000)
    pace.begin(0)
    assert pace.bucket.rate_bps == 1_600_000


def test_each_gradient_of_each_worker_begins_at_another_of_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spread evenly: twelve turns, of which none is further than a sixth from the next."""
    turns: list[float] = []
    init = GradientMessage.__init__

    def noted(self: GradientMessage, *arguments: Any, turn: float = 0.0) -> None:
        turns.append(turn)
        init(self, *arguments, turn=turn)

    monkeypatch.setattr(GradientMessage, "__init__", noted)
    sections: dict[str, Any] = {
        "topology": {"kind": "star:5"},
        "workload": {"workers": 4, "rounds": 3, "values": 704},
    }
    assert run(**sections).failures == []
    assert len(turns) == 12 and max(np.diff([*sorted(turns), min(turns) + 1])) < 1 / 6
    turns.clear()
    assert run(**sections, ratio={"rule": "none"}).failures == [] and set(turns) == {0}


# ---- Packets ----


def test_frames_are_those_of_the_scapy_layers() -> None:
    made = written(Content(5000, np.arange(1, 6), 32, 3, np.array([2, 70, 71, 900, 4999])), HEADER_BYTES)
    (frame,) = part_frames(ROUTE, made, 9, 2**32 - 1)
    layers = (
        Ether(src=OWN.mac, dst=OWN.gateway_mac)
        / IP(src="10.0.0.2", dst="10.0.0.1", tos=2, id=0, flags="DF")
        / UDP()
        / GradientPart(job=7, sequence=2**32 - 1, round=9, first=2, span=0, codes=5, form="COORDINATE", unit=3)
        / made.payload[0, : made.payload_bytes[0]].tobytes()
    )
    assert frame.tobytes() == bytes(layers)
    assert Ether(frame.tobytes())[GradientPart].codes == 5

    layers = layers.copy()
    layers[IP].tos = 0
    layers[UDP].remove_payload()
    layers = layers / Acknowledgement(flags=Flags.ACK | Flags.CONGESTION, job=7, sequence=4, selective=5, active=6)
    layers[Acknowledgement].arrived_bytes, layers[Acknowledgement].time_us = 8, 2**32 - 9
    frames = acknowledgement_frame(ROUTE, 4, 5, congested=True, active=6, arrived_bytes=2**32 + 8, time_us=2**32 - 9)
    assert frames[0].tobytes() == bytes(layers)
    assert Ether(frames[0].tobytes())[Acknowledgement].active == 6


def buffer_of(*frames: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    buffer = np.zeros((len(frames), 2048), np.uint8)
    for row, frame in zip(buffer, frames, strict=True):
        row[: len(frame)] = frame
    return buffer, np.array([len(frame) for frame in frames], np.uint32)


def test_parts_and_acknowledgements_are_told_apart_and_other_jobs_are_left_aside() -> None:
    other = Route(8, OWN, "10.0.0.1", OWN.gateway_mac)
    received = buffer_of(
        end_frame(ROUTE, 3, 11), acknowledgement_frame(ROUTE, 4, 5, congested=True)[0], end_frame(other, 3, 12)
    )
    (parts,) = received_parts(*received, 7)
    assert parts["sequence"].tolist() == [11] and parts["round"].tolist() == [3]
    acknowledgements = received_acknowledgements(*received, 7)
    assert acknowledgements["sequence"].tolist() == [4] and met_congestion(acknowledgements, Flags.CONGESTION).all()


def test_a_damaged_frame_is_left_aside() -> None:
    frame = end_frame(ROUTE, 3, 11)
    frame[20] ^= 1  # of the IPv4 header
    assert [len(each) for each in received_parts(*buffer_of(frame), 7)] in ([], [0])


# ---- A gradient on its way ----


class Wire:
    """gradbed.hosts.agents.context.Interface that keeps what is sent."""

    def __init__(self) -> None:
        self.frames: list[NDArray[np.uint8]] = []

    def send(self, frames: NDArray[Any]) -> int:
        self.frames += list(frames)
        return len(frames)


def decoded(frames: list[NDArray[np.uint8]], length: int) -> NDArray[np.int64]:
    found = np.zeros(length, np.int64)
    for parts in received_parts(*buffer_of(*frames), 7):
        for part in parts[parts["flags"] & Flags.END == 0]:
            numbers = [int(part[name]) for name in ("form", "width_bits", "unit", "first", "span", "codes")]
            made = read(*numbers, part["payload"], length)  # type: ignore[arg-type,call-arg]
            assert made is not None
            found[made[0]] += made[1]
    return found


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("handed", [0, 3, 10])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("turn", [0.0, 0.8, 0.9999])
def test_a_gradient_that_is_cut_ends_with_its_largest_values(
    sparse: bool, handed: int, share: float, turn: float
) -> None:
    values = np.random.default_rng(5).integers(-(2**20), 2**20, 9000)
    places = np.arange(0, 18_000, 2) if sparse else None
    content = Content(18_000 if sparse else 9000, values, 32, 1, places)
    wire = Wire()
    sender = StreamSender(window_packets=64, min_timeout_us=1000, congestion_control="none")
    outgoing = StreamOutput(wire, sender, 0, None)  # type: ignore[arg-type]
    message = GradientMessage(content, ROUTE, 0, outgoing, turn=turn)
    total = message.total_bytes
    outgoing._send(sender.transmissions(0, most=handed), 0)
    early = decoded(wire.frames, content.length)
    assert message.cut(share * total) == (share < 1)
    outgoing.transmit(0)
    assert sum(map(len, wire.frames)) == message.planned_bytes == outgoing.handed_bytes
    assert message.planned_bytes <= max(share * total, sum(map(len, wire.frames[:handed])) + HEADER_BYTES)
    if share:
        assert message.planned_bytes > 0.97 * share * total
    found = decoded(wire.frames, content.length)
    told = sum((each.decoded() for each in message.sent()), np.zeros(content.length, np.int64))
    assert np.array_equal(found, told)
    late, left = found - early, content.decoded() - found
    if share < 1 and late.any():
        assert np.abs(late[late != 0]).min() >= np.abs(left).max()


def test_an_empty_gradient_is_an_end_marker() -> None:
    wire = Wire()
    sender = StreamSender(window_packets=64, min_timeout_us=1000, congestion_control="none")
    outgoing = StreamOutput(wire, sender, 0, None)  # type: ignore[arg-type]
    message = GradientMessage(Content(0, np.zeros(0, np.int64)), ROUTE, 0, outgoing, turn=0.5)
    assert message.total_bytes == HEADER_BYTES and not message.cut(0.5 * HEADER_BYTES + HEADER_BYTES)
    outgoing.transmit(0)
    ((end,),) = received_parts(*buffer_of(*wire.frames), 7)
    assert end["flags"] == Flags.END


def test_what_fits_is_not_cut() -> None:
    content = Content(100, np.arange(100))
    assert fitting(content, 10_000) is content
    assert len(fitting(content, HEADER_BYTES).codes) == 0
    assert len(fitting(Content(0, np.zeros(0, np.int64)), 0).codes) == 0
