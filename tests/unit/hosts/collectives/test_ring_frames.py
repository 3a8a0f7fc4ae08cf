"""Ring packets: Scapy's bytes are NumPy's bytes, in both directions; nothing that arrives can hurt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from formats.datagram import CE, ECT_0, MAX_FRAME_BYTES
from formats.lanes import MAX_LANES, frame_bytes
from formats.ring import RING, RING_PORT, RingFlags
from hosts.collectives.ring import Ring
from hosts.protocols.datagram_frames import as_bytes, met_congestion
from hosts.protocols.lane_frames import LaneFrames, lane_frame_type, pack_lane_frames, parse_lane_frames
from hosts.protocols.layers import datagram

LANES = 32
NUMBERS = {"job": 16, "sequence": 32, "selective": 64, "round": 32, "fragment_number": 32, "step": 16, "shift": 16}
"""Header fields and their bits."""


@st.composite
def frame_fields(draw: st.DrawFn, lanes: int = LANES) -> dict[str, Any]:
    flags = draw(st.integers(0, 255))
    return {
        "src_mac": draw(st.binary(min_size=6, max_size=6)),
        "dst_mac": draw(st.binary(min_size=6, max_size=6)),
        "src_ip": draw(st.integers(0, (1 << 32) - 1)),
        "dst_ip": draw(st.integers(0, (1 << 32) - 1)),
        "ttl": draw(st.integers(0, 255)),
        "tos": draw(st.integers(0, 255)),
        "flags": flags & ~RingFlags.ACK if lanes else flags | RingFlags.ACK,
        "lanes": draw(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=lanes, max_size=lanes)),
        **{name: draw(st.integers(0, (1 << bits) - 1)) for name, bits in NUMBERS.items()},
    }


def by_scapy(fields: dict[str, Any]) -> bytes:
    text = {name: fields[name].hex(":") for name in ("src_mac", "dst_mac")}
    text |= {name: ".".join(map(str, fields[name].to_bytes(4, "big"))) for name in ("src_ip", "dst_ip")}
    return bytes(datagram(Ring, **{**fields, **text}))


def by_numpy(rows: list[dict[str, Any]]) -> np.ndarray:
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    lanes = np.array(columns.pop("lanes"), np.int32).reshape(len(rows), -1)
    columns["selective"] = np.array(columns["selective"], np.uint64)
    for name in ("src_mac", "dst_mac"):
        columns[name] = [list(mac) for mac in columns[name]]
    return pack_lane_frames(RING, lanes, **columns)


def parsed_of(frames: list[bytes]) -> LaneFrames:
    return parse_lane_frames(RING, *received(frames), LANES, RingFlags.ACK, RingFlags.ACK)


def received(frames: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    buffer = np.zeros((len(frames) + 1, 2048), np.uint8)
    for row, frame in zip(buffer, frames, strict=False):
        row[: len(frame)] = np.frombuffer(frame, np.uint8)
    return buffer, np.array([len(frame) for frame in frames], np.uint32)


GOOD: dict[str, Any] = {
    "src_mac": b"\2\0\0\0\0\1", "dst_mac": b"\2\0\0\0\0\2", "src_ip": 0x0A000001, "dst_ip": 0x0A000002, "ttl": 64,
    "tos": ECT_0, "flags": 0, "job": 7, "sequence": 9, "selective": 0, "round": 3, "fragment_number": 4, "step": 2,
    "shift": 0, "lanes": list(range(LANES)),
}  # fmt: skip


@given(st.lists(frame_fields(), min_size=1, max_size=4) | st.lists(frame_fields(lanes=0), min_size=1, max_size=4))
def test_numpy_packs_what_scapy_builds(rows: list[dict[str, Any]]) -> None:
    assert [row.tobytes() for row in as_bytes(by_numpy(rows))] == [by_scapy(row) for row in rows]


@given(frame_fields())
def test_scapy_dissects_what_numpy_packs(fields: dict[str, Any]) -> None:
    frame = Ether(as_bytes(by_numpy([fields]))[0].tobytes())
    header = frame[Ring]
    for name in ("flags", "lanes", *NUMBERS):
        assert getattr(header, name) == fields[name], name
    assert (header.version, frame[IP].ttl, frame[IP].tos) == (1, fields["ttl"], fields["tos"])
    assert (frame[UDP].sport, frame[UDP].dport, frame[UDP].chksum) == (RING_PORT, RING_PORT, 0)


@given(st.lists(frame_fields() | frame_fields(lanes=0), min_size=1, max_size=5))
def test_numpy_parses_what_scapy_builds(rows: list[dict[str, Any]]) -> None:
    parsed = parsed_of([by_scapy(row) for row in rows])
    assert parsed.malformed == 0
    for frames, sent in (
        (parsed.with_lanes, [row for row in rows if row["lanes"]]),
        (parsed.without_lanes, [row for row in rows if not row["lanes"]]),
    ):
        for frame, row in zip(frames, sent, strict=True):
            for name in ("flags", "src_ip", "dst_ip", "tos", *NUMBERS):
                assert int(frame[name]) == row[name], name
            assert frame["lanes"].tolist() == row["lanes"]


def test_the_largest_frame_fits() -> None:
    assert lane_frame_type(RING, MAX_LANES).itemsize == frame_bytes(MAX_LANES) <= MAX_FRAME_BYTES


def test_marks_of_packets_and_of_acknowledgements() -> None:
    cases = [(ECT_0, 0), (CE, 0), (0, 0), (ECT_0, RingFlags.CONGESTION)]
    frames = by_numpy([{**GOOD, "tos": tos, "flags": int(flags)} for tos, flags in cases])
    assert met_congestion(frames, RingFlags.CONGESTION).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("offset", "byte", "what"),
    [
        (12, 0x86, "EtherType"),
        (14, 0x46, "IPv4 options"),
        (20, 0x60, "a fragment"),
        (23, 6, "TCP"),
        (24, 0, "header checksum"),
        (37, 0x42, "port of gradients"),
        (39, 0, "UDP length"),
        (42, 2, "version"),
        (43, RingFlags.ACK, "an ACK with lanes"),
    ],
)
def test_what_is_malformed(offset: int, byte: int, what: str) -> None:
    frame = bytearray(by_scapy(GOOD))
    assert parsed_of([bytes(frame)]).malformed == 0
    frame[offset] = byte
    parsed = parsed_of([bytes(frame)])
    assert (len(parsed.with_lanes), len(parsed.without_lanes), parsed.malformed) == (0, 0, 1), what


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_any_bytes_are_only_malformed(frames: list[bytes]) -> None:
    parsed = parsed_of(frames)
    assert parsed.malformed == len(frames)


@pytest.mark.parametrize("lanes", [0, 64])
def test_other_lengths_are_malformed(lanes: int) -> None:
    frame = by_scapy({**GOOD, "lanes": [0] * lanes})
    assert parsed_of([frame]).malformed == 1
