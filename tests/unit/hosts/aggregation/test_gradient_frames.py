"""Scapy's bytes are NumPy's bytes, in both directions; nothing that arrives can hurt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from formats.aggregation import GRADIENT, GRADIENT_PORT, Flags
from formats.datagram import CE, ECT_0, MAX_FRAME_BYTES
from formats.lanes import HEADER_BYTES, LANES_HEADER_BYTES, MAX_LANES, frame_bytes
from hosts.protocols.datagram_frames import as_bytes, met_congestion
from hosts.protocols.lane_frames import lane_frame_type
from hosts.systems.aggregation.gradient import Gradient, gradient_frame
from hosts.systems.aggregation.gradient_frames import (
    magnitudes,
    pack_frames,
    parse_frames,
)

macs = st.binary(min_size=6, max_size=6)
ips = st.integers(0, (1 << 32) - 1)
LANES = 32

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def frame_fields(draw: st.DrawFn, lanes: int | None = None) -> dict[str, object]:
    count = lanes if lanes is not None else 32 * draw(st.integers(1, 4))
    return {
        "src_mac": draw(macs),
        "dst_mac": draw(macs),
        "src_ip": draw(ips),
        "dst_ip": draw(ips),
        "ttl": draw(st.integers(0, 255)),
        "tos": draw(st.integers(0, 255)),
        "flags": draw(st.integers(0, 255)) & (0xFF ^ Flags.NACK) if count else Flags.ACK | Flags.NACK,
        "job": draw(st.integers(0, 0xFFFF)),
        "packet_number": draw(st.integers(0, (1 << 32) - 1)),
        "switch_number": draw(st.integers(0, 0xFFFF)),
        "fan_in": draw(st.integers(0, 0xFFFF)),
        "next_switch": draw(st.integers(0, 0xFFFF)),
        "next_fan_in": draw(st.integers(0, 0xFFFF)),
        "worker_bitmap": draw(st.integers(0, (1 << 64) - 1)),
        "magnitude": draw(st.none() | st.integers(0, (1 << 32) - 1)),
        "lanes": draw(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=count, max_size=count)),
    }


def by_scapy(fields: dict[str, object]) -> bytes:
    text = {name: ":".join(f"{byte:02x}" for byte in fields[name]) for name in ("src_mac", "dst_mac")}  # type: ignore[attr-defined]
    text |= {name: ".".join(map(str, fields[name].to_bytes(4, "big"))) for name in ("src_ip", "dst_ip")}  # type: ignore[attr-defined]
    return bytes(gradient_frame(**{**fields, **text}))


def by_numpy(rows: list[dict[str, object]]) -> np.ndarray:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    lanes = np.array(columns.pop("lanes"), np.int32)
    if None in columns["magnitude"]:
        del columns["magnitude"]
    for name in ("src_mac", "dst_mac"):
        columns[name] = [list(mac) for mac in columns[name]]  # type: ignore[call-overload]
    return pack_frames(lanes, **columns)  # type: ignore[arg-type]


@unhurried
@given(frame_fields() | frame_fields(lanes=0))
def test_numpy_packs_what_scapy_builds(fields: dict[str, object]) -> None:
    assert as_bytes(by_numpy([fields]))[0].tobytes() == by_scapy(fields)


def test_the_largest_frame_in_both_directions() -> None:
    lanes = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, MAX_LANES).tolist()
    fields = {**GOOD_FIELDS, "lanes": lanes}
    frame = by_scapy(fields)
    assert as_bytes(by_numpy([fields]))[0].tobytes() == frame
    assert Ether(frame)[Gradient].lanes == lanes
    assert parse_frames(*filled_buffer([frame]), MAX_LANES).with_lanes["lanes"][0].tolist() == lanes


@unhurried
@given(st.lists(frame_fields(lanes=LANES), min_size=1, max_size=5))
def test_a_batch_is_its_frames_one_by_one(rows: list[dict[str, object]]) -> None:
    rows = [{**row, "magnitude": None} for row in rows]
    assert [row.tobytes() for row in as_bytes(by_numpy(rows))] == [by_scapy(row) for row in rows]


@unhurried
@given(frame_fields())
def test_scapy_dissects_what_numpy_packs(fields: dict[str, object]) -> None:
    frame = Ether(as_bytes(by_numpy([fields]))[0].tobytes())
    header = frame[Gradient]
    for name in HEADER_FIELDS:
        assert getattr(header, name) == fields[name], name
    assert header.lanes == fields["lanes"]
    assert header.magnitude == magnitude_of(fields)
    assert header.version == 2
    assert (frame[IP].ttl, frame[IP].tos) == (fields["ttl"], fields["tos"])
    assert (frame[UDP].sport, frame[UDP].dport, frame[UDP].chksum) == (source_port_of(fields), GRADIENT_PORT, 0)


@unhurried
@given(st.lists(frame_fields(lanes=LANES) | frame_fields(lanes=0), min_size=1, max_size=5))
def test_numpy_parses_what_scapy_builds(rows: list[dict[str, object]]) -> None:
    buffer, lengths = filled_buffer([by_scapy(row) for row in rows])
    parsed = parse_frames(buffer, lengths, LANES)
    assert parsed.malformed == 0
    with_lanes = [row for row in rows if row["lanes"]]
    without = [row for row in rows if not row["lanes"]]
    for frames, sent in ((parsed.with_lanes, with_lanes), (parsed.without_lanes, without)):
        for frame, row in zip(frames, sent, strict=True):
            for name in (*HEADER_FIELDS, "src_ip", "dst_ip", "ttl", "tos"):
                assert int(frame[name]) == row[name], name
            assert frame["magnitude"] == magnitude_of(row)
            assert frame["src_port"] == source_port_of(row)
            assert frame["lanes"].tolist() == row["lanes"]
            assert frame["src_mac"].tobytes() == row["src_mac"]
            assert frame["dst_mac"].tobytes() == row["dst_mac"]


HEADER_FIELDS = (
    "flags",
    "job",
    "packet_number",
    "switch_number",
    "fan_in",
    "next_switch",
    "next_fan_in",
    "worker_bitmap",
)


def magnitude_of(fields: dict[str, Any]) -> int:
    """As it was given; without, a bound of the lanes, or that an ACK's sum is not shifted."""
    if fields["magnitude"] is not None:
        return int(fields["magnitude"])
    return 0 if fields["flags"] & Flags.ACK else max(abs(lane) for lane in fields["lanes"])


def source_port_of(fields: dict[str, Any]) -> int:
    """The designated switch's number, if there is one."""
    return int(
        GRADIENT_PORT if fields["flags"] & Flags.ACK or not fields["switch_number"] else fields["switch_number"]
    )


def filled_buffer(frames: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """A receive buffer after these frames, with rubbish where they end."""
    buffer = np.full((len(frames) + 1, 2048), 0xA5, np.uint8)
    for row, frame in zip(buffer, frames, strict=False):
        row[: len(frame)] = np.frombuffer(frame, np.uint8)
    return buffer, np.array([len(frame) for frame in frames], np.uint32)


GOOD_FIELDS: dict[str, object] = {
    "src_mac": bytes(6),
    "dst_mac": bytes(6),
    "src_ip": 1,
    "dst_ip": 2,
    "ttl": 64,
    "flags": 0,
    "job": 1,
    "packet_number": 5,
    "switch_number": 0,
    "fan_in": 2,
    "next_switch": 0,
    "next_fan_in": 0,
    "worker_bitmap": 1,
    "magnitude": None,
    "tos": ECT_0,
    "lanes": list(range(LANES)),
}
GOOD = by_scapy(GOOD_FIELDS)


def test_the_parsed_frames_do_not_share_the_receive_buffer() -> None:
    buffer, lengths = filled_buffer([GOOD])
    frames = parse_frames(buffer, lengths, LANES).with_lanes
    buffer[:] = 0
    assert frames["lanes"][0].tolist() == list(range(LANES))


# Offset of a byte, what it becomes, and what is wrong then. The checksum is put right unless it is the point.
@pytest.mark.parametrize(
    ("offset", "value", "what"),
    [
        (12, 0x86, "EtherType"),
        (14, 0x65, "IP version"),
        (14, 0x46, "IP options"),
        (17, 0x00, "IP length"),
        (20, 0x20, "more fragments"),
        (21, 0x01, "fragment offset"),
        (23, 6, "protocol"),
        (36, 0x48, "port"),
        (39, 0x00, "UDP length"),
        (42, 1, "version"),
    ],
)
def test_malformed_frames_are_counted_and_left_out(offset: int, value: int, what: str) -> None:
    bad = bytearray(GOOD)
    assert bad[offset] != value
    bad[offset] = value
    if 14 <= offset < 34:
        bad[24:26] = b"\0\0"
        header = bytes(bad[14:34])
        total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2))
        bad[24:26] = (0xFFFF - (total % 0xFFFF or 0xFFFF)).to_bytes(2, "big")
    buffer, lengths = filled_buffer([GOOD, bytes(bad), GOOD])
    parsed = parse_frames(buffer, lengths, LANES)
    assert (len(parsed.with_lanes), parsed.malformed) == (2, 1), what


def test_a_wrong_header_checksum_is_malformed() -> None:
    bad = bytearray(GOOD)
    bad[22] -= 1  # TTL
    parsed = parse_frames(*filled_buffer([bytes(bad)]), LANES)
    assert (len(parsed.with_lanes), parsed.malformed) == (0, 1)


@pytest.mark.parametrize(
    ("flags", "lanes"),
    [
        (Flags.NACK | Flags.ACK, LANES),
        (Flags.NACK, LANES),
        (Flags.NACK, 0),
        (Flags.ACK, 0),
        (0, 0),
    ],
)
def test_requests_have_no_lanes_and_all_others_have(flags: int, lanes: int) -> None:
    bad = by_scapy({**GOOD_FIELDS, "flags": flags, "lanes": [1] * lanes})
    parsed = parse_frames(*filled_buffer([bad, GOOD]), LANES)
    assert (len(parsed.with_lanes), len(parsed.without_lanes), parsed.malformed) == (1, 0, 1)


def test_magnitudes_of_extreme_lanes() -> None:
    lanes = np.array([[0, 0], [-(1 << 31), 5], [(1 << 31) - 1, -((1 << 31) - 1)], [-3, 2]], np.int32)
    assert magnitudes(lanes).tolist() == [0, 1 << 31, (1 << 31) - 1, 3]


def test_congestion_is_the_mark_or_the_flag() -> None:
    marks = [(0, 0), (ECT_0, 0), (CE, 0), (0xB8 | CE, 0), (ECT_0, Flags.CONGESTION), (1, Flags.ACK)]
    frames = by_numpy([{**GOOD_FIELDS, "tos": tos, "flags": flags} for tos, flags in marks])
    assert met_congestion(frames, Flags.CONGESTION).tolist() == [False, False, True, True, True, False]


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, len(GOOD) - 1, len(GOOD) + 1])
def test_wrong_lengths_are_malformed(length: int) -> None:
    buffer, _ = filled_buffer([GOOD])
    parsed = parse_frames(buffer, np.array([length], np.uint32), LANES)
    assert (len(parsed.with_lanes), parsed.malformed) == (0, 1)


def test_frames_with_another_number_of_lanes_are_malformed() -> None:
    assert parse_frames(*filled_buffer([GOOD]), 2 * LANES).malformed == 1


@settings(unhurried, max_examples=200)
@given(st.lists(st.binary(max_size=160), max_size=4), st.data())
def test_nothing_that_arrives_raises(rubbish: list[bytes], data: st.DataObject) -> None:
    mutated = bytearray(GOOD)
    for _ in range(data.draw(st.integers(0, 3))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    frames = [*rubbish, bytes(mutated)]
    parsed = parse_frames(*filled_buffer(frames), LANES)
    found = len(parsed.with_lanes) + len(parsed.without_lanes)
    assert found + parsed.malformed == len(frames)
    assert found <= 1


def test_sizes() -> None:
    assert len(Gradient()) == LANES_HEADER_BYTES
    assert lane_frame_type(GRADIENT, 256).itemsize == frame_bytes(256) == len(by_scapy_lanes(256))
    assert frame_bytes(MAX_LANES) <= MAX_FRAME_BYTES < frame_bytes(MAX_LANES + 32)


def by_scapy_lanes(lanes: int) -> bytes:
    return GOOD[:42] + bytes(Gradient(lanes=[0] * lanes))


def test_scapy_names_the_flags() -> None:
    assert str(Gradient(flags=Flags.RESEND | Flags.PARTIAL).flags) == "RESEND+PARTIAL"
