"""Capture files as they are found, made here byte by byte as their specifications say, and what is sent of them.

pcap: draft-ietf-opsawg-pcap-04. pcapng: draft-ietf-opsawg-pcapng-02. Link types: https://www.tcpdump.org/linktypes.html.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.traffic.replay import Replay, read_capture, replay_windows

ETHERNET, RAW, COOKED, COOKED_2 = 1, 101, 113, 276
HEADER = bytes.fromhex("0200000000bb0200000000aa0800")
IP = bytes.fromhex("450000140000000040110000c0000201c0000202")


def frame(length: int, fill: int = 0x5A) -> bytes:
    return HEADER + bytes([fill]) * (length - 14)


def pcap(*records: tuple[int, bytes, int], order: str = "<", network: int = ETHERNET) -> bytes:
    """records: microseconds, bytes, original length (0: of the bytes)."""
    data = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 64, network)
    for time_us, packet, original in records:
        data += struct.pack(order + "4I", *divmod(time_us, 10**6), len(packet), original or len(packet)) + packet
    return data


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str = "<", link_type: int = ETHERNET, snap_bytes: int = 0, options: bytes = b"") -> bytes:
    return block(order, 1, struct.pack(order + "HHI", link_type, 0, snap_bytes) + options)


def enhanced(ticks: int, packet: bytes, order: str = "<", number: int = 0, original: int = 0) -> bytes:
    head = struct.pack(order + "5I", number, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), original or len(packet))
    return block(order, 6, head + packet)


def simple(packet: bytes, order: str = "<", original: int = 0) -> bytes:
    return block(order, 3, struct.pack(order + "I", original or len(packet)) + packet)


def sent(path: Path, data: bytes, **replay: Any) -> list[tuple[int, bytes]]:
    """What replay_windows makes of a file: (nanoseconds, frame)."""
    path = path / "in.pcap"
    path.write_bytes(data)
    found = []
    for _, (times_ns, rows, lengths) in replay_windows(Replay(file=path, **replay), 0):
        found += [
            (time, bytes(row[:length]))
            for time, row, length in zip(times_ns.tolist(), rows, lengths.tolist(), strict=True)
        ]
    return found


def notes(path: Path) -> list[str]:
    return list(read_capture(Replay(file=path / "in.pcap")).notes)


def refusal(path: Path, data: bytes, **replay: Any) -> str:
    with pytest.raises(UserError) as caught:
        sent(path, data, **replay)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}/")


# ---- Snapshot lengths ----


@pytest.mark.parametrize("order", "<>")
def test_packets_captured_in_part_have_their_original_length(tmp_path: Path, order: str) -> None:
    records = [(1000 * number, frame(64, number), 642) for number in range(5)]
    expected = [(10**6 * number, frame(64, number) + bytes(642 - 64)) for number in range(5)]
    assert sent(tmp_path, pcap(*records, (5000, frame(60), 0), order=order)) == [*expected, (5 * 10**6, frame(60))]
    (note,) = notes(tmp_path)
    assert "5 of 6 packets" in note and "up to 64 bytes" in note


def test_pcapng_blocks_of_all_kinds_have_their_original_length(tmp_path: Path) -> None:
    old = block("<", 2, struct.pack("<HHIIII", 0, 0, 0, 7, 20, 100) + frame(20))
    file = section() + interface(snap_bytes=24) + enhanced(5, frame(24), original=200) + old
    file += simple(frame(24), original=90) + simple(frame(20))
    assert sent(tmp_path, file) == [
        (0, frame(24) + bytes(176)),
        (2000, frame(20) + bytes(80)),
        (2000, frame(24) + bytes(66)),
        (2000, frame(20)),
    ]
    cut, timeless = notes(tmp_path)
    assert "3 of 4 packets" in cut and timeless.startswith("2 packets of in.pcap have no time")


def test_a_checksum_that_the_capture_includes_is_not_sent(tmp_path: Path) -> None:
    network = ETHERNET | 1 << 26 | 2 << 28  # two units of 16 bits
    assert sent(tmp_path, pcap((0, frame(68), 0), (1, frame(64), 642), network=network)) == [
        (0, frame(64)),
        (1000, frame(64) + bytes(642 - 4 - 64)),
    ]


# ---- Times ----


def test_times_that_go_backwards_are_sorted(tmp_path: Path) -> None:
    times_us = [0, 1000, 3000, 2000, 4000, 6000, 5000, 5000, 7000, 9000]
    records = [(10**7 + time, frame(60, number), 0) for number, time in enumerate(times_us)]
    expected = sorted(enumerate(times_us), key=lambda each: each[1])
    assert sent(tmp_path, pcap(*records)) == [(1000 * time, frame(60, number)) for number, time in expected]
    (note,) = notes(tmp_path)
    assert note.startswith("3 packets of in.pcap, packet 4 first")


def test_the_earliest_packet_need_not_be_the_first(tmp_path: Path) -> None:
    assert sent(tmp_path, pcap((5000, frame(60), 0), (0, frame(61), 0)), speed=2.0) == [
        (0, frame(61)),
        (2_500_000, frame(60)),
    ]


@pytest.mark.parametrize(
    ("resolution", "ticks"), [(b"\x06", 3), (b"\x09", 3000), (b"\x03", 1), (b"\x8a", 1024), (b"\x80", 1)]
)
def test_units_and_offsets_of_time(tmp_path: Path, resolution: bytes, ticks: int) -> None:
    options = struct.pack("<HH", 9, 1) + resolution + bytes(3) + struct.pack("<HHq", 14, 8, 10**9) + bytes(4)
    exponent = resolution[0] & 0x7F
    seconds = ticks / (2**exponent if resolution[0] & 0x80 else 10**exponent)
    file = section() + interface(options=options) + enhanced(0, frame(60)) + enhanced(ticks, frame(61))
    assert sent(tmp_path, file)[1] == (round(seconds * 1e9), frame(61))


def test_times_too_far_apart_are_refused(tmp_path: Path) -> None:
    options = struct.pack("<HH", 9, 1) + bytes(4) + bytes(4)
    file = section() + interface(options=options) + enhanced(0, frame(60)) + enhanced(2**60, frame(60))
    assert "too long to be replayed" in refusal(tmp_path, file)
    assert "too long to be replayed" in refusal(tmp_path, pcap((0, frame(60), 0), (10**9, frame(60), 0)), speed=1e-9)


# ---- Sections, interfaces ----


@pytest.mark.parametrize("orders", ["<<", "<>", "><"])
def test_sections_follow_one_another(tmp_path: Path, orders: str) -> None:
    """As `cat a.pcapng b.pcapng` makes them: each with interfaces and a byte order of its own."""
    file = b""
    for number, order in enumerate(orders):
        file += section(order) + interface(order) + interface(order, RAW)
        file += enhanced(10 + number, frame(60, number), order) + enhanced(20 + number, IP, order, 1)
    raw = bytes.fromhex("0200000000020200000000010800") + IP
    assert sent(tmp_path, file) == [(0, frame(60, 0)), (1000, frame(60, 1)), (10_000, raw), (11_000, raw)]


def test_a_file_without_times_is_sent_at_once(tmp_path: Path) -> None:
    file = section() + interface() + simple(frame(60)) + simple(frame(61))
    assert sent(tmp_path, file) == [(0, frame(60)), (0, frame(61))]


# ---- Long frames ----


def test_frames_longer_than_the_mtu_are_refused_with_their_number(tmp_path: Path) -> None:
    file = pcap((0, frame(1514), 0), (1, frame(20_042), 0))
    message = refusal(tmp_path, file)
    assert message.startswith("in.pcap: packet 2 has 20042 bytes, more than an MTU of 1500 lets pass (1514)")
    assert len(sent(tmp_path, file, mtu_bytes=20_028)) == 2
    # Of the original length, whatever was captured.
    assert "packet 1 has 9000 bytes" in refusal(tmp_path, pcap((0, frame(64), 9000)))


def test_a_vlan_tag_is_not_part_of_the_mtu(tmp_path: Path) -> None:
    tagged = HEADER[:12] + bytes.fromhex("8100000a0800") + bytes(1500)
    assert sent(tmp_path, pcap((0, tagged, 0))) == [(0, tagged)]
    assert "packet 1 has 1519 bytes" in refusal(tmp_path, pcap((0, tagged + b"x", 0)))


# ---- Link types ----


def test_raw_ip_gets_an_ethernet_header(tmp_path: Path) -> None:
    ip6 = b"\x60" + bytes(39)
    macs = {"src_mac": "02:00:00:00:00:0a", "dst_mac": "02:00:00:00:00:0b"}
    known = {"192.0.2.2": "02:00:00:00:00:0c"}
    file = pcap((0, IP, 1500), (1, ip6, 0), network=RAW)
    header = "02000000000b02000000000a"
    assert sent(tmp_path, file, **macs) == [
        (0, bytes.fromhex(header + "0800") + IP + bytes(1480)),
        (1000, bytes.fromhex(header + "86dd") + ip6),
    ]
    assert sent(tmp_path, file, **macs, destination_macs=known)[0][1][:6].hex() == "02000000000c"
    assert "2 packets of in.pcap have no Ethernet header (link type 101)" in notes(tmp_path)[1]


@pytest.mark.parametrize("version", [1, 2])
def test_linux_cooked_captures_get_an_ethernet_header(tmp_path: Path, version: int) -> None:
    sender = bytes.fromhex("0200000000aa")

    def cooked(address: bytes, protocol: int, packet: bytes) -> bytes:
        padded = address.ljust(8, b"\0")
        if version == 1:
            return struct.pack("!HHH", 0, 1, len(address)) + padded + struct.pack("!H", protocol) + packet
        return struct.pack("!HHIHBB", protocol, 0, 3, 1, 0, len(address)) + padded + packet

    network = COOKED if version == 1 else COOKED_2
    file = pcap((0, cooked(sender, 0x0800, IP), 0), (1, cooked(b"", 0x0806, b"arp"), 0), network=network)
    assert sent(tmp_path, file) == [
        (0, bytes.fromhex("0200000000020200000000aa0800") + IP),
        (1000, bytes.fromhex("0200000000020200000000010806") + b"arp"),
    ]
    assert "packet 1 has Linux's protocol 4" in refusal(
        tmp_path, pcap((0, cooked(sender, 4, b"stp"), 0), network=network)
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pcap((0, b"\x10", 0), network=RAW), "packet 1 is no IP packet"),
        (pcap((0, b"", 0), network=RAW), "packet 1 is no IP packet"),
        (pcap((0, bytes(15), 0), network=COOKED), "packet 1 ends in its Linux cooked header"),
        (pcap((0, bytes(40), 0), network=127), "packet 1 is of link type 127"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_link_types_are_refused_with_the_packet(tmp_path: Path, data: bytes, message: str) -> None:
    assert message in refusal(tmp_path, data)


# ---- Damaged files ----


def test_a_file_that_ends_in_the_middle_is_sent_up_to_there(tmp_path: Path) -> None:
    whole = pcap((0, frame(60), 0), (1, frame(61), 0))
    for missing in (1, 30, 61, 70):
        assert sent(tmp_path, whole[:-missing]) == [(0, frame(60))]
        assert notes(tmp_path) == ["in.pcap ends in the middle of packet 2: the packets before it are sent"]
    whole = section() + interface() + enhanced(1, frame(60)) + enhanced(2, frame(61))
    assert sent(tmp_path, whole[:-5]) == [(0, frame(60))]
    assert len(notes(tmp_path)) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no capture file"),
        (b"\x1f\x8b\x08rest", "is compressed: unpack it first"),
        (pcap(), "has no packets"),
        (section() + interface(), "has no packets"),
        (pcap((0, frame(60), 20)), "is damaged at packet 1: 60 bytes were captured of 20"),
        (pcap((0, b"", 1 << 30)), "is damaged at packet 1: it has 1073741824 bytes"),
        (section() + enhanced(0, frame(60)), "packet 1: no interface 0 is described before it"),
        (section() + simple(frame(60)), "packet 1: no interface 0 is described before it"),
        (section() + interface() + section() + enhanced(0, frame(60)), "no interface 0 is described"),
        (section() + interface() + block("<", 3, struct.pack("<I", 60) + bytes(8)), "its block holds 8 of 60 bytes"),
        (section() + interface() + block("<", 6, bytes(8)), "is too short for what it holds"),
        (section() + struct.pack("<III", 6, 13, 13) + bytes(8), "says that it has 13 bytes"),
        (section() + struct.pack("<III", 6, 12, 16), "ends with another length than it begins with"),
        (section()[:8] + bytes(20), "has no byte order"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damage_is_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    assert message in refusal(tmp_path, data)
