"""A capture file as a schedule: its frames, at the distances at which they were recorded."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from gradbed.common.capture_files import ETHERNET, Record, read_capture_file
from gradbed.common.errors import UserError
from gradbed.formats.addresses import Mac
from gradbed.hosts.agents.config import AgentConfig

WINDOW_FRAMES = 512
_ETHERNET_BYTES = 14
_IPV4, _IPV6, _VLAN = 0x0800, 0x86DD, 0x8100
_LEAST_ETHERTYPE = 0x0600
_RAW_IP = (101, 228, 229, 12, 14)
"""Link types of packets that begin with IP; the last two are the numbers of some systems."""
_COOKED, _COOKED_2 = 113, 276
"""Of Linux' interface `any`."""
_MOST_NS = 1 << 62

Window = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32]]
"""Times, rows of frames, and their lengths."""


class Replay(AgentConfig):
    """A capture file as traffic."""

    file: Path
    """Capture file, pcap or pcapng."""
    speed: float = Field(default=1.0, gt=0)
    """Factor by which it is faster than it was recorded."""
    mtu_bytes: int = 1500
    """MTU of the network's links; longer frames are refused."""
    src_mac: Mac = "02:00:00:00:00:01"
    """Source of the Ethernet header of packets that have none."""
    dst_mac: Mac = "02:00:00:00:00:02"
    """Destination of the Ethernet header of packets that have none."""
    destination_macs: Mapping[str, Mac] = Field(default_factory=dict)
    """MAC addresses of destinations that are reached without a gateway, by IPv4 address."""


@dataclass(frozen=True)
class RecordedFrames:
    """Frames of a capture in the order of their times."""

    times_ns: NDArray[np.int64]
    """Times since the first frame."""
    frames: list[bytes]
    """Captured bytes of each frame, with an Ethernet header."""
    lengths: NDArray[np.uint32]
    """Lengths of whole frames."""
    notes: tuple[str, ...]
    """In which way the frames differ from the file."""


def read_capture(replay: Replay) -> RecordedFrames:
    """Raises UserError for what is no capture file, and for packets that cannot be sent, with their numbers."""
    capture = read_capture_file(replay.file)
    frames, lengths = [], []
    for number, record in enumerate(capture.records, 1):
        try:
            frame = _ethernet(record, replay)
        except UserError as error:
            raise UserError(f"{replay.file}: packet {number} {error}") from None
        length = record.original_bytes + len(frame) - len(record.data)
        # As the kernel has it: a VLAN tag does not count (packet_extra_vlan_len_allowed of af_packet.c).
        has_tag = frame[12:14] == struct.pack("!H", _VLAN)
        if length > _ETHERNET_BYTES + 4 * has_tag + replay.mtu_bytes:
            raise UserError(
                f"{replay.file}: packet {number} has {length} bytes, more than an MTU of {replay.mtu_bytes} "
                f"lets pass ({_ETHERNET_BYTES + replay.mtu_bytes}): capture without segmentation offload (ethtool -K "
                "IF tso off gso off gro off), or give the links a larger one with --mtu-bytes"
            )
        frames.append(frame)
        lengths.append(length)
    times_ns = _times(capture.records, replay)
    order = np.argsort(times_ns, kind="stable")
    return RecordedFrames(
        times_ns[order],
        [frames[place] for place in order],
        np.array(lengths, np.uint32)[order],
        tuple(_notes(capture.records, times_ns, capture.is_cut, replay)),
    )


def _times(records: list[Record], replay: Replay) -> NDArray[np.int64]:
    """Nanoseconds since the first, in the order of the file; a packet without a time has that of the one before."""
    known = [record.time_ns for record in records if record.time_ns is not None]
    before = known[0] if known else 0
    first, last = min(known, default=0), max(known, default=0)
    if (last - first) / replay.speed >= _MOST_NS:
        raise UserError(f"{replay.file} lasts {(last - first) / replay.speed / 1e9:.3g} s: too long to be replayed")
    times = []
    for record in records:
        before = before if record.time_ns is None else record.time_ns
        times.append(before - first)
    return np.array(times, np.int64)


def _notes(records: list[Record], times_ns: NDArray[np.int64], is_cut: bool, replay: Replay) -> Iterator[str]:
    name = replay.file.name
    cut = [record for record in records if len(record.data) < record.original_bytes]
    if cut:
        longest = max(len(record.data) for record in cut)
        yield (
            f"{len(cut)} of {len(records)} packets of {name} were captured in part (up to {longest} bytes): they are "
            "sent in their original length, with zeros for what is missing"
        )
    early = np.flatnonzero(times_ns < np.maximum.accumulate(times_ns))
    if len(early):
        yield (
            f"{len(early)} packets of {name}, packet {early[0] + 1} first, have earlier times than packets before "
            "them: all are sent in the order of their times"
        )
    timeless = sum(record.time_ns is None for record in records)
    if timeless:
        yield f"{timeless} packets of {name} have no time (simple packet blocks): they are sent with the one before"
    bare = sum(record.link_type != ETHERNET for record in records)
    if bare:
        yield (
            f"{bare} packets of {name} have no Ethernet header (link type {_types(records)}): they get one, to "
            f"{replay.dst_mac} where nothing else is known"
        )
    if is_cut:
        yield f"{name} ends in the middle of packet {len(records) + 1}: the packets before it are sent"


def _types(records: list[Record]) -> str:
    return ", ".join(map(str, sorted({record.link_type for record in records if record.link_type != ETHERNET})))


# ---- Ethernet headers ----


def _ethernet(record: Record, replay: Replay) -> bytes:
    """The packet with an Ethernet header, as far as it was captured. UserError, which follows "packet N"."""
    if record.link_type == ETHERNET:
        return record.data
    if record.link_type in _RAW_IP:
        return _with_header(record.data, _ip_type(record.data), None, replay)
    cooked = _COOKED_HEADERS.get(record.link_type)
    if cooked is None:
        raise UserError(
            f"is of link type {record.link_type}: captures of Ethernet, raw IP (101) and Linux cooked captures "
            "(113, 276) can be replayed"
        )
    return cooked(record.data, replay)


def _ip_type(packet: bytes) -> int:
    found = {4: _IPV4, 6: _IPV6}.get(packet[0] >> 4) if packet else None
    if found is None:
        raise UserError("is no IP packet, though its link type says so")
    return found


def _with_header(packet: bytes, ethertype: int, sender: bytes | None, replay: Replay) -> bytes:
    destination = replay.dst_mac
    if ethertype == _IPV4 and len(packet) >= 20:
        destination = replay.destination_macs.get(str(IPv4Address(packet[16:20])), destination)
    return _mac(destination) + (sender or _mac(replay.src_mac)) + struct.pack("!H", ethertype) + packet


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _linux_cooked(data: bytes, replay: Replay) -> bytes:
    """Packet type, ARPHRD, length and bytes of the sender's address, protocol."""
    if len(data) < 16:
        raise UserError("ends in its Linux cooked header")
    address_bytes, protocol = struct.unpack_from("!4xH8xH", data)
    return _cooked(data[16:], protocol, data[6:12] if address_bytes == 6 else None, replay)


def _linux_cooked_2(data: bytes, replay: Replay) -> bytes:
    """Protocol, 2 bytes, interface, ARPHRD, packet type, length and bytes of the sender's address."""
    if len(data) < 20:
        raise UserError("ends in its Linux cooked header")
    protocol, address_bytes = struct.unpack_from("!H9xB", data)
    return _cooked(data[20:], protocol, data[12:18] if address_bytes == 6 else None, replay)


def _cooked(packet: bytes, protocol: int, sender: bytes | None, replay: Replay) -> bytes:
    if protocol < _LEAST_ETHERTYPE:
        raise UserError(f"has Linux's protocol {protocol}, which Ethernet has no type for")
    return _with_header(packet, protocol, sender, replay)


_COOKED_HEADERS: Mapping[int, Callable[[bytes, Replay], bytes]] = {
    _COOKED: _linux_cooked,
    _COOKED_2: _linux_cooked_2,
}


# ---- Windows ----


def replay_windows(replay: Replay, begin_ns: int) -> Iterator[tuple[int, Window]]:
    """The time at which each window begins, and its frames."""
    recorded = read_capture(replay)
    times_ns = begin_ns + (recorded.times_ns / replay.speed).astype(np.int64)
    for first in range(0, len(recorded.frames), WINDOW_FRAMES):
        window = slice(first, first + WINDOW_FRAMES)
        lengths = recorded.lengths[window]
        rows = np.zeros((len(lengths), int(lengths.max())), np.uint8)
        for row, frame in zip(rows, recorded.frames[window], strict=True):
            row[: len(frame)] = np.frombuffer(frame, np.uint8)
        times = times_ns[window]
        yield int(times[0]), (times, rows, lengths)
