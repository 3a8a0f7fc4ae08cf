"""Packets as hosts take them apart: each input is a batch of one frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gradbed.formats import tlv
from gradbed.formats.aggregation import GRADIENT
from gradbed.formats.compression import PART
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.header import Header
from gradbed.formats.ring import RING, RingFlags
from gradbed.formats.shuffle import CODED
from gradbed.hosts.collectives.ring_all_reduce import messages_of
from gradbed.hosts.protocols.frames import (
    FrameType,
    as_bytes,
    frame_type,
    lane_frame_type,
    pack_datagrams,
    parse_lane_frames,
)
from gradbed.hosts.systems.aggregation.gradient_frames import parse_frames
from gradbed.hosts.systems.compression.frames import part_type, received_acknowledgements, received_parts
from gradbed.hosts.systems.compression.gradients import Assembly
from gradbed.hosts.systems.compression.tcp import RecordReader
from gradbed.hosts.systems.ndn.endpoint import FragmentReader
from gradbed.hosts.systems.ndn.packets import VersionHead, data_frame, ethernet, interest_frame, version_frames
from gradbed.hosts.systems.shuffle.coded_frames import Parsed, repair_dtype, request_dtype, scheduled_dtype
from gradbed.hosts.traffic.frames import trailers
from tests.fuzz.parsers.target import Target

_LANES, _BITS, _FRAGMENT_BYTES, _GRADIENT = 8, 32, 32, 500
_NAME = (tlv.generic("t"), tlv.generic("a"))
_ETHERNET = ethernet(bytes(6))
_CAPACITY_BYTES = 9216

Frame = tuple[NDArray[np.uint8], NDArray[np.uint32]]


def _frame(data: bytes) -> Frame:
    """A receive buffer with one frame, and how long that is."""
    kept = data[:_CAPACITY_BYTES]
    buffer = np.zeros((1, _CAPACITY_BYTES), np.uint8)
    buffer[0, : len(kept)] = np.frombuffer(kept, np.uint8)
    return buffer, np.array([len(kept)], np.uint32)


def _mended(data: bytes, header: Header) -> bytes:
    """With everything right that stands before our header: most of what is random would not get past that."""
    dtype: FrameType = frame_type(header, ("rest", "u1", (max(0, len(data) - header.size_bytes),)))
    usual = pack_datagrams(header, dtype, 1, src_mac=0, dst_mac=0, src_ip=1, dst_ip=2, rest=0)
    return as_bytes(usual)[0].tobytes()[:DATAGRAM_BYTES] + data


def _datagrams(take: Callable[[Frame], object], header: Header, *dtypes: FrameType) -> Target:
    """Inputs are what is behind UDP."""

    def read(data: bytes) -> object:
        take(_frame(data))
        return take(_frame(_mended(data, header)))

    def seeds() -> list[bytes]:
        return [bytes(dtype.itemsize - DATAGRAM_BYTES) for dtype in dtypes]

    return Target(read, seeds, ())


def _gradient(frame: Frame) -> object:
    return parse_frames(*frame, _LANES)


def _ring(frame: Frame) -> object:
    return list(messages_of(parse_lane_frames(RING, *frame, _LANES, RingFlags.ACK, RingFlags.ACK).with_lanes))


def _compressed(frame: Frame) -> object:
    assembly = Assembly(_GRADIENT)
    for job in (0, 1):
        for parts in received_parts(*frame, job):
            assembly.add(parts)
        received_acknowledgements(*frame, job)
    return assembly.values.sum()


def _records(data: bytes) -> object:
    assembly = Assembly(_GRADIENT)
    reader = RecordReader()
    for begin in range(0, len(data), 100):
        for record in reader.take(data[begin : begin + 100]):
            assembly.add(record)
    return assembly.values.sum()


def _data(frame: bytes) -> object:
    prefix = b"".join(_NAME)
    return FragmentReader({tlv.generic("distribute") + prefix: 0}, {prefix: 0}, _LANES).read(frame)


def _elements(data: bytes) -> object:
    """All that there are, at every depth."""
    return [_inner(data, begin, end) for _, begin, end in tlv.elements(data, 0, len(data))]


def _inner(data: bytes, begin: int, end: int) -> object:
    try:
        return [tlv.component_number(each, tlv.VERSION) for each in tlv.read_name(data, begin, end)]
    except tlv.MalformedError:
        return None


def _ndn_packets() -> list[bytes]:
    lanes = np.arange(2 * _LANES, dtype=np.int32).reshape(2, _LANES)
    made = [
        frame.tobytes() for batch in version_frames(_ETHERNET, _NAME, 300, VersionHead(0.5), lanes) for frame in batch
    ]
    return [*made, data_frame(_ETHERNET, _NAME), interest_frame(_ETHERNET, _NAME, 7, 300, True)]


TARGETS = {
    "gradient": _datagrams(_gradient, GRADIENT, lane_frame_type(GRADIENT, _LANES), lane_frame_type(GRADIENT, 0)),
    "ring": _datagrams(_ring, RING, lane_frame_type(RING, _LANES), lane_frame_type(RING, 0)),
    "compressed": _datagrams(_compressed, PART, part_type(0), part_type(64)),
    "coded": _datagrams(
        lambda frame: Parsed(*frame, 0, _BITS, _FRAGMENT_BYTES),
        CODED,
        scheduled_dtype(_BITS, _FRAGMENT_BYTES),
        repair_dtype(_BITS, _FRAGMENT_BYTES),
        request_dtype(_BITS),
    ),
    "tcp-records": Target(
        _records, lambda: [b"\x00\x40" + bytes([1]) + bytes(63), b"\x00\x20" + bytes(32)], (ValueError,)
    ),
    "ndn-data": Target(_data, _ndn_packets, (tlv.MalformedError,)),
    "tlv": Target(_elements, lambda: [each[14:] for each in _ndn_packets()], (tlv.MalformedError,)),
    "trailer": Target(lambda data: trailers(*_frame(data)), lambda: [bytes(64)], ()),
}
