"""The hot path of the compressed gradient's packets: whole frames as NumPy structured arrays.

The layout is that of the Scapy layers in hosts.systems.compression.packets; a test holds the two together.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hosts.compressors.wire import PAYLOAD_BYTES, Written
from hosts.protocols.addresses import AgentAddress, ip_integer, mac_array
from hosts.protocols.datagram_format import CE, ECN_MASK
from hosts.protocols.datagram_frames import DATAGRAM, Frames, as_bytes, only, pack_datagrams, well_formed_datagrams
from hosts.systems.compression.packets.packet_format import UDP_PORT, VERSION, Flags

_HEAD = [("version", "u1"), ("flags", "u1"), ("job", ">u2"), ("sequence", ">u4")]
_PART = [
    *_HEAD,
    ("round", ">u4"),
    ("first", ">u4"),
    ("span", ">u2"),
    ("codes", ">u2"),
    ("form", "u1"),
    ("width_bits", "u1"),
    ("unit", ">u8"),
]
ACKNOWLEDGEMENT = np.dtype(
    [*DATAGRAM, *_HEAD, ("selective", ">u8"), ("active", ">u2"), ("arrived_bytes", ">u4"), ("time_us", ">u4")]
)
_ACK = int(Flags.ACK)
_CONGESTION = int(Flags.CONGESTION)
_END = int(Flags.END)


@functools.cache
def part_dtype(payload_bytes: int) -> np.dtype[np.void]:
    """A whole frame with so long a payload, packed, big-endian."""
    return np.dtype([*DATAGRAM, *_PART, ("payload", "u1", (payload_bytes,))])


@functools.cache
def record_dtype(payload_bytes: int) -> np.dtype[np.void]:
    """What of such a frame is behind UDP."""
    return np.dtype([*_PART, ("payload", "u1", (payload_bytes,))])


HEADER_BYTES = part_dtype(0).itemsize
RECORD_BYTES = record_dtype(0).itemsize
"""Of a record without payload."""
MOST_FRAME_BYTES = part_dtype(PAYLOAD_BYTES).itemsize


@dataclass(frozen=True)
class Route:
    """From an agent to another, or to a group."""

    job: int
    source: AgentAddress
    dst_ip: str
    dst_mac: str

    @functools.cached_property
    def addresses(self) -> dict[str, Any]:
        return {
            "src_mac": mac_array(self.source.mac),
            "dst_mac": mac_array(self.dst_mac),
            "src_ip": ip_integer(self.source.ip),
            "dst_ip": ip_integer(self.dst_ip),
            "src_port": UDP_PORT,
            "dst_port": UDP_PORT,
        }


def part_frames(route: Route, made: Written, round_number: int, first_sequence: int) -> list[NDArray[np.uint8]]:
    """A frame for each packet, as bytes; numbered on from first_sequence."""
    frames: list[NDArray[np.uint8]] = []
    lengths = made.payload_bytes.tolist()
    while len(frames) < len(made):
        start = len(frames)
        length = lengths[start]
        end = next((i for i in range(start, len(made)) if lengths[i] != length), len(made))
        part = slice(start, end)
        packed = pack_datagrams(
            part_dtype(length),
            {
                "version": VERSION,
                "flags": 0,
                "job": route.job,
                "sequence": np.arange(first_sequence + start, first_sequence + end) & 0xFFFFFFFF,
                "round": round_number,
                "first": made.first[part],
                "span": made.span[part],
                "codes": made.codes[part],
                "form": int(made.form),
                "width_bits": made.width_bits,
                "unit": made.unit,
                "payload": made.payload[part, :length],
            },
            end - start,
            **route.addresses,
        )
        frames += list(as_bytes(packed))
    return frames


def end_frame(route: Route, round_number: int, sequence: int, flags: Flags = Flags.END) -> NDArray[np.uint8]:
    """The last packet of a gradient or a sum; without codes."""
    payload: dict[str, ArrayLike] = {
        **dict.fromkeys(("first", "span", "codes", "form"), 0),
        "payload": np.zeros((1, 0), np.uint8),
        "version": VERSION,
        "flags": int(flags),
        "job": route.job,
        "sequence": sequence & 0xFFFFFFFF,
        "round": round_number,
        "width_bits": 32,
        "unit": 1,
    }
    frame: NDArray[np.uint8] = as_bytes(pack_datagrams(part_dtype(0), payload, 1, **route.addresses))[0]
    return frame


def acknowledgement_frame(
    route: Route,
    sequence: int,
    selective: int,
    *,
    congested: bool,
    active: int = 0,
    arrived_bytes: int = 0,
    time_us: int = 0,
) -> NDArray[np.uint8]:
    """One frame, shape (1, length). arrived_bytes, time_us: modulo 2^32."""
    payload: dict[str, ArrayLike] = {
        "version": VERSION,
        "flags": _ACK | (_CONGESTION if congested else 0),
        "job": route.job,
        "sequence": sequence,
        "selective": np.uint64(selective),
        "active": active,
        "arrived_bytes": arrived_bytes & 0xFFFFFFFF,
        "time_us": time_us & 0xFFFFFFFF,
    }
    # Pure acknowledgements take no part in congestion control (RFC 3168, section 6.1.4).
    return as_bytes(pack_datagrams(ACKNOWLEDGEMENT, payload, 1, **route.addresses, tos=0))


def received_parts(buffer: NDArray[np.uint8], lengths: NDArray[np.uint32], job: int) -> Iterator[Frames]:
    """Well-formed parts of a job, frames of one length together; in the order of arrival but for that."""
    for length in dict.fromkeys(lengths.tolist()):
        if length < HEADER_BYTES or length > MOST_FRAME_BYTES:
            continue
        frames = well_formed_datagrams(buffer, lengths, part_dtype(length - HEADER_BYTES), UDP_PORT)
        if len(frames):
            good = (frames["version"] == VERSION) & (frames["flags"] & _ACK == 0) & (frames["job"] == job)
            yield only(frames, good)


def received_acknowledgements(buffer: NDArray[np.uint8], lengths: NDArray[np.uint32], job: int) -> Frames:
    """Well-formed acknowledgements of a job."""
    frames = well_formed_datagrams(buffer, lengths, ACKNOWLEDGEMENT, UDP_PORT)
    if not len(frames):
        return frames
    return only(frames, (frames["version"] == VERSION) & (frames["flags"] & _ACK != 0) & (frames["job"] == job))


def met_congestion(frames: Frames) -> NDArray[np.bool_]:
    """Which were marked on their way, or tell of one that was."""
    marked: NDArray[np.bool_] = (frames["tos"] & ECN_MASK == CE) | (frames["flags"] & _CONGESTION != 0)
    return marked


def is_end(frames: Frames) -> NDArray[np.bool_]:
    ends: NDArray[np.bool_] = frames["flags"] & _END != 0
    return ends
