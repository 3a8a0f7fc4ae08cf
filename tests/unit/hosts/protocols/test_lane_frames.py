"""Packets with lanes, of each system that has them: Scapy's bytes are NumPy's bytes, in both directions; nothing that
arrives can hurt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from gradbed.formats.aggregation import GRADIENT, GRADIENT_PORT, Flags
from gradbed.formats.datagram import CE, ECT_0, MAX_FRAME_BYTES
from gradbed.formats.header import Header
from gradbed.formats.lanes import HEADER_BYTES, LANES_HEADER_BYTES, MAX_LANES, frame_bytes
from gradbed.formats.ring import RING, RING_PORT, RingFlags
from gradbed.hosts.collectives.ring import Ring
from gradbed.hosts.protocols.frames import (
    Frames,
    LaneFrames,
    as_bytes,
    lane_frame_type,
    met_congestion,
    pack_lane_frames,
    parse_lane_frames,
)
from gradbed.hosts.protocols.layers import datagram
from gradbed.hosts.systems.aggregation.gradient import Gradient, gradient_frame
from gradbed.hosts.systems.aggregation.gradient_frames import magnitudes, pack_frames, parse_frames
from tests.examples import examples

LANES = 32
Fields = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """numbers: header fields and their bits. never, always: flags of frames with lanes, and of those without."""

    header: Header
    layer: type[Packet]
    version: int
    port: int
    numbers: Mapping[str, int]
    never: int
    always: int
    congestion: int
    build: Callable[..., Packet]
    pack: Callable[..., Frames]
    parse: Callable[[NDArray[np.uint8], NDArray[np.uint32], int], LaneFrames]

    def source_port(self, fields: Fields) -> int:
        """Of gradients the designated switch's number, if there is one."""
        designated = 0 if fields["flags"] & Flags.ACK else fields.get("switch_number", 0)
        return int(designated or self.port)

    def by_scapy(self, fields: Fields) -> bytes:
        text = {name: fields[name].hex(":") for name in ("src_mac", "dst_mac")}
        text |= {name: ".".join(map(str, fields[name].to_bytes(4, "big"))) for name in ("src_ip", "dst_ip")}
        return bytes(self.build(**{**fields, **text}))

    def by_numpy(self, *rows: Fields) -> Frames:
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
        lanes = np.array(columns.pop("lanes"), np.int32).reshape(len(rows), -1)
        for name, bits in self.numbers.items():
            if bits == 64:
                columns[name] = np.array(columns[name], np.uint64)
        for name in ("src_mac", "dst_mac"):
            columns[name] = [list(mac) for mac in columns[name]]
        return self.pack(lanes, **columns)

    def parsed(self, *frames: bytes, lanes: int = LANES) -> LaneFrames:
        return self.parse(*filled_buffer(frames), lanes)

    def good(self, **fields: Any) -> Fields:
        numbers = dict.fromkeys(self.numbers, 0)
        plain = {"src_mac": b"\2\0\0\0\0\1", "dst_mac": b"\2\0\0\0\0\2", "src_ip": 1, "dst_ip": 2, "ttl": 64}
        return {**plain, "tos": ECT_0, "flags": 0, **numbers, "lanes": list(range(LANES)), **fields}


FORMATS = {
    "gradient": Format(
        header=GRADIENT,
        layer=Gradient,
        version=2,
        port=GRADIENT_PORT,
        numbers={
            "job": 16, "packet_number": 32, "switch_number": 16, "fan_in": 16, "next_switch": 16, "next_fan_in": 16,
            "worker_bitmap": 64, "magnitude": 32,
        },
        never=Flags.NACK,
        always=Flags.ACK | Flags.NACK,
        congestion=Flags.CONGESTION,
        build=gradient_frame,
        pack=pack_frames,
        parse=parse_frames,
    ),
    "ring": Format(
        header=RING,
        layer=Ring,
        version=1,
        port=RING_PORT,
        numbers={
            "job": 16, "sequence": 32, "selective": 64, "round": 32, "fragment_number": 32, "step": 16, "shift": 16,
        },
        never=RingFlags.ACK,
        always=RingFlags.ACK,
        congestion=RingFlags.CONGESTION,
        build=lambda **fields: datagram(Ring, **fields),
        pack=lambda lanes, **columns: pack_lane_frames(RING, lanes, **columns),
        parse=lambda *batch: parse_lane_frames(RING, *batch, RingFlags.ACK, RingFlags.ACK),
    ),
}  # fmt: skip


@pytest.fixture(params=FORMATS, scope="module")
def form(request: pytest.FixtureRequest) -> Format:
    return FORMATS[request.param]


def filled_buffer(frames: tuple[bytes, ...]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """A receive buffer after these frames, with rubbish where they end."""
    buffer = np.full((len(frames) + 1, 2048), 0xA5, np.uint8)
    for row, frame in zip(buffer, frames, strict=False):
        row[: len(frame)] = np.frombuffer(frame, np.uint8)
    return buffer, np.array([len(frame) for frame in frames], np.uint32)


macs = st.binary(min_size=6, max_size=6)
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def drawn(data: st.DataObject, form: Format, lanes: int) -> Fields:
    """Fields of a frame, any but for the flags that say whether it has lanes."""
    flags = data.draw(st.integers(0, 255))
    numbers = {"src_ip": 32, "dst_ip": 32, "ttl": 8, "tos": 8, **form.numbers}
    return {
        "src_mac": data.draw(macs),
        "dst_mac": data.draw(macs),
        "flags": flags & ~form.never if lanes else flags | form.always,
        "lanes": data.draw(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=lanes, max_size=lanes)),
        **{name: data.draw(st.integers(0, (1 << bits) - 1)) for name, bits in numbers.items()},
    }


@pytest.mark.commit_cases(1)
@RELAXED
@given(st.data(), st.sampled_from([0, 32, 64, 128]), st.integers(1, 4))
def test_numpy_packs_what_scapy_builds(form: Format, data: st.DataObject, lanes: int, count: int) -> None:
    rows = [drawn(data, form, lanes) for _ in range(count)]
    assert [row.tobytes() for row in as_bytes(form.by_numpy(*rows))] == [form.by_scapy(row) for row in rows]


@RELAXED
@given(st.data())
def test_scapy_dissects_what_numpy_packs(form: Format, data: st.DataObject) -> None:
    fields = drawn(data, form, LANES)
    frame = Ether(as_bytes(form.by_numpy(fields))[0].tobytes())
    header = frame[form.layer]
    for name in ("flags", "lanes", *form.numbers):
        assert getattr(header, name) == fields[name], name
    assert (header.version, frame[IP].ttl, frame[IP].tos) == (form.version, fields["ttl"], fields["tos"])
    assert (frame[UDP].sport, frame[UDP].dport, frame[UDP].chksum) == (form.source_port(fields), form.port, 0)


@pytest.mark.commit_cases(1)
@RELAXED
@given(st.data(), st.lists(st.sampled_from([0, LANES]), min_size=1, max_size=5))
def test_numpy_parses_what_scapy_builds(form: Format, data: st.DataObject, lanes: list[int]) -> None:
    rows = [drawn(data, form, each) for each in lanes]
    parsed = form.parsed(*map(form.by_scapy, rows))
    assert parsed.malformed == 0
    for frames, sent in (
        (parsed.with_lanes, [row for row in rows if row["lanes"]]),
        (parsed.without_lanes, [row for row in rows if not row["lanes"]]),
    ):
        for frame, row in zip(frames, sent, strict=True):
            for name in ("flags", "src_ip", "dst_ip", "ttl", "tos", *form.numbers):
                assert int(frame[name]) == row[name], name
            assert frame["src_port"] == form.source_port(row)
            assert frame["lanes"].tolist() == row["lanes"]
            assert (frame["src_mac"].tobytes(), frame["dst_mac"].tobytes()) == (row["src_mac"], row["dst_mac"])


def test_the_largest_frame_in_both_directions(form: Format) -> None:
    lanes = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, MAX_LANES).tolist()
    fields = form.good(lanes=lanes)
    frame = form.by_scapy(fields)
    assert as_bytes(form.by_numpy(fields))[0].tobytes() == frame
    assert Ether(frame)[form.layer].lanes == lanes
    assert form.parsed(frame, lanes=MAX_LANES).with_lanes["lanes"][0].tolist() == lanes


def test_sizes(form: Format) -> None:
    assert len(form.layer()) == LANES_HEADER_BYTES
    assert lane_frame_type(form.header, 256).itemsize == frame_bytes(256) == 42 + len(form.layer(lanes=[0] * 256))
    assert frame_bytes(MAX_LANES) <= MAX_FRAME_BYTES < frame_bytes(MAX_LANES + 32)


def test_the_parsed_frames_do_not_share_the_receive_buffer(form: Format) -> None:
    buffer, lengths = filled_buffer((form.by_scapy(form.good()),))
    frames = form.parse(buffer, lengths, LANES).with_lanes
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
        (22, 63, "header checksum"),
        (23, 6, "protocol"),
        (36, 0x49, "port"),
        (39, 0x00, "UDP length"),
        (42, 7, "version"),
    ],
)
def test_malformed_frames_are_counted_and_left_out(form: Format, offset: int, value: int, what: str) -> None:
    good = form.by_scapy(form.good())
    bad = bytearray(good)
    assert bad[offset] != value
    bad[offset] = value
    if 14 <= offset < 34 and what != "header checksum":
        bad[24:26] = b"\0\0"
        total = sum(int.from_bytes(bad[i : i + 2], "big") for i in range(14, 34, 2))
        bad[24:26] = (0xFFFF - (total % 0xFFFF or 0xFFFF)).to_bytes(2, "big")
    parsed = form.parsed(good, bytes(bad), good)
    assert (len(parsed.with_lanes), len(parsed.without_lanes), parsed.malformed) == (2, 0, 1), what


@pytest.mark.parametrize(
    ("name", "flags", "lanes"),
    [
        ("gradient", Flags.NACK | Flags.ACK, LANES),
        ("gradient", Flags.NACK, LANES),
        ("gradient", Flags.NACK, 0),
        ("gradient", Flags.ACK, 0),
        ("gradient", 0, 0),
        ("ring", RingFlags.ACK, LANES),
        ("ring", 0, 0),
        ("gradient", 0, 2 * LANES),
        ("ring", 0, 2 * LANES),
    ],
)
def test_flags_say_whether_there_are_lanes_and_all_have_as_many(name: str, flags: int, lanes: int) -> None:
    form = FORMATS[name]
    bad = form.by_scapy(form.good(flags=flags, lanes=[1] * lanes))
    parsed = form.parsed(bad, form.by_scapy(form.good()))
    assert (len(parsed.with_lanes), len(parsed.without_lanes), parsed.malformed) == (1, 0, 1)


def test_congestion_is_the_mark_or_the_flag(form: Format) -> None:
    marks = [(0, 0), (ECT_0, 0), (CE, 0), (0xB8 | CE, 0), (ECT_0, form.congestion), (1, Flags.ACK)]
    frames = form.by_numpy(*(form.good(tos=tos, flags=int(flags)) for tos, flags in marks))
    assert met_congestion(frames, form.congestion).tolist() == [False, False, True, True, True, False]


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, frame_bytes(LANES) - 1])
def test_wrong_lengths_are_malformed(form: Format, length: int) -> None:
    good = form.by_scapy(form.good())
    assert len(good) == frame_bytes(LANES)
    for frame in (good[:length], good + bytes(1)):
        parsed = form.parsed(frame)
        assert (len(parsed.with_lanes), len(parsed.without_lanes), parsed.malformed) == (0, 0, 1)


@settings(RELAXED, max_examples=examples(200))
@given(st.lists(st.binary(max_size=160), max_size=4), st.data())
def test_nothing_that_arrives_raises(form: Format, rubbish: list[bytes], data: st.DataObject) -> None:
    mutated = bytearray(form.by_scapy(form.good()))
    for _ in range(data.draw(st.integers(0, 3))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    parsed = form.parsed(*rubbish, bytes(mutated))
    found = len(parsed.with_lanes) + len(parsed.without_lanes)
    assert found + parsed.malformed == len(rubbish) + 1
    assert found <= 1


def test_magnitudes_are_the_largest_of_lanes_unless_they_are_given() -> None:
    """Not in ACKs, whose sums are not shifted then."""
    form = FORMATS["gradient"]
    lanes = np.array([[0, 0], [-(1 << 31), 5], [(1 << 31) - 1, -((1 << 31) - 1)], [-3, 2]], np.int32)
    assert magnitudes(lanes).tolist() == [0, 1 << 31, (1 << 31) - 1, 3]
    random = np.random.default_rng(2).integers(-(1 << 31), 1 << 31, (4, LANES)).tolist()
    rows = [form.good(flags=int(flags), lanes=row) for flags, row in zip((0, Flags.ACK, 0, 0), random, strict=True)]
    for row in rows:
        del row["magnitude"]
    frames = form.by_numpy(*rows)
    assert frames["magnitude"].tolist() == [max(map(abs, row)) * (n != 1) for n, row in enumerate(random)]
    assert [row.tobytes() for row in as_bytes(frames)] == [form.by_scapy(row) for row in rows]


def test_scapy_names_the_flags() -> None:
    assert str(Gradient(flags=Flags.RESEND | Flags.PARTIAL).flags) == "RESEND+PARTIAL"
