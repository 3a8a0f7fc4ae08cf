"""The hot path of the compressed gradient's packets: whole frames as NumPy structured arrays."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.addresses import ip_integer
from gradbed.formats.compression import ACKNOWLEDGEMENT, PART, Flags
from gradbed.formats.datagram import NOT_ECT
from gradbed.formats.encoding import PAYLOAD_BYTES
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.compressors.content import Written
from gradbed.hosts.protocols.frames import (
    Frames,
    FrameType,
    as_bytes,
    frame_type,
    mac_array,
    only,
    pack_datagrams,
    well_formed_datagrams,
)

_ACK = int(Flags.ACK)
_CONGESTION = int(Flags.CONGESTION)
_END = int(Flags.END)
_ACKNOWLEDGEMENT = frame_type(ACKNOWLEDGEMENT)


@functools.cache
def part_type(payload_bytes: int) -> FrameType:
    """A whole frame with so long a payload."""
    return frame_type(PART, ("payload", "u1", (payload_bytes,)))


@functools.cache
def record_type(payload_bytes: int) -> FrameType:
    """Return the type of what such a frame has behind UDP."""
    return np.dtype([*PART.columns, ("payload", "u1", (payload_bytes,))])


HEADER_BYTES = part_type(0).itemsize
RECORD_BYTES = PART.size_bytes
"""Of a record without payload."""
MOST_FRAME_BYTES = part_type(PAYLOAD_BYTES).itemsize


@dataclass(frozen=True)
class Route:
    """The route from an agent to another, or to a group."""

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
            PART,
            part_type(length),
            end - start,
            **route.addresses,
            job=route.job,
            sequence=np.arange(first_sequence + start, first_sequence + end) & 0xFFFFFFFF,
            round=round_number,
            first=made.first[part],
            span=made.span[part],
            codes=made.codes[part],
            form=int(made.form),
            width_bits=made.width_bits,
            unit=made.unit,
            payload=made.payload[part, :length],
        )
        frames += list(as_bytes(packed))
    return frames


def end_frame(route: Route, round_number: int, sequence: int, flags: Flags = Flags.END) -> NDArray[np.uint8]:
    """The last packet of a gradient or a sum; without codes."""
    values = {"flags": int(flags), "job": route.job, "sequence": sequence & 0xFFFFFFFF, "round": round_number}
    frame: NDArray[np.uint8] = as_bytes(pack_datagrams(PART, part_type(0), 1, **route.addresses, **values))[0]
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
    """Return one frame, shape (1, length). arrived_bytes, time_us: modulo 2^32."""
    packed = pack_datagrams(
        ACKNOWLEDGEMENT,
        _ACKNOWLEDGEMENT,
        1,
        **route.addresses,
        tos=NOT_ECT,
        flags=_ACK | (_CONGESTION if congested else 0),
        job=route.job,
        sequence=sequence,
        selective=np.uint64(selective),
        active=active,
        arrived_bytes=arrived_bytes & 0xFFFFFFFF,
        time_us=time_us & 0xFFFFFFFF,
    )
    return as_bytes(packed)


def received_parts(buffer: NDArray[np.uint8], lengths: NDArray[np.uint32], job: int) -> Iterator[Frames]:
    """Well-formed parts of a job, frames of one length together; in the order of arrival but for that."""
    for length in dict.fromkeys(lengths.tolist()):
        if length < HEADER_BYTES or length > MOST_FRAME_BYTES:
            continue
        frames = well_formed_datagrams(PART, part_type(length - HEADER_BYTES), buffer, lengths)
        if len(frames):
            yield only(frames, (frames["flags"] & _ACK == 0) & (frames["job"] == job))


def received_acknowledgements(buffer: NDArray[np.uint8], lengths: NDArray[np.uint32], job: int) -> Frames:
    """Well-formed acknowledgements of a job."""
    frames = well_formed_datagrams(ACKNOWLEDGEMENT, _ACKNOWLEDGEMENT, buffer, lengths)
    if not len(frames):
        return frames
    return only(frames, (frames["flags"] & _ACK != 0) & (frames["job"] == job))


def is_end(frames: Frames) -> NDArray[np.bool_]:
    ends: NDArray[np.bool_] = frames["flags"] & _END != 0
    return ends
