"""Every format's bytes on the wire, written down: whoever makes frames, by Scapy or by NumPy, makes these.

Each field has a value of its own, so that one in another's place, or of another width, shows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scapy.packet import Raw

from gradbed.formats.addresses import ip_integer, mac_bytes
from gradbed.formats.aggregation import Flags
from gradbed.formats.encoding import Form
from gradbed.formats.ring import RING, RingFlags
from gradbed.formats.shuffle import CodedFlags
from gradbed.formats.tlv import generic
from gradbed.hosts.agents.config import WorkerAddress
from gradbed.hosts.collectives.ring import Ring
from gradbed.hosts.compressors.content import Content, written
from gradbed.hosts.protocols.frames import as_bytes, mac_array, pack_lane_frames
from gradbed.hosts.protocols.layers import datagram
from gradbed.hosts.systems.aggregation.gradient import gradient_frame
from gradbed.hosts.systems.aggregation.gradient_frames import pack_frames
from gradbed.hosts.systems.compression.frames import (
    HEADER_BYTES,
    Route,
    acknowledgement_frame,
    end_frame,
    part_frames,
)
from gradbed.hosts.systems.compression.layers import Acknowledgement, GradientPart
from gradbed.hosts.systems.compression.tcp import records
from gradbed.hosts.systems.ndn.packets import VersionHead, data_frame, ethernet, interest_frame, version_frames
from gradbed.hosts.systems.shuffle.coded import Request, coded_frame
from gradbed.hosts.systems.shuffle.coded import repair as repair_by_scapy
from gradbed.hosts.systems.shuffle.coded_frames import Packer
from gradbed.hosts.traffic.frames import TRAILER_TYPE

SOURCE = WorkerAddress(name="h1", ip="10.0.0.2", mac="02:00:0a:00:00:02", gateway_mac="02:01:00:00:00:07", index=3)
DST_IP = "10.1.2.3"
TEXT = {"src_mac": SOURCE.mac, "dst_mac": SOURCE.gateway_mac, "src_ip": SOURCE.ip, "dst_ip": DST_IP}
NUMBERS: dict[str, Any] = {
    **{name: mac_array(TEXT[name]) for name in ("src_mac", "dst_mac")},
    **{name: ip_integer(TEXT[name]) for name in ("src_ip", "dst_ip")},
}
ROUTE = Route(0x0102, SOURCE, DST_IP, SOURCE.gateway_mac)
ETHERNET = ethernet(mac_bytes(SOURCE.mac))
NAME = (generic("t-1"), generic("h1"))
PACKER = Packer(0x0102, SOURCE.index, SOURCE, 16, 2)

GRADIENT_VALUES = {
    "flags": int(Flags.RESEND | Flags.CONGESTION),
    "job": 0x0102,
    "packet_number": 0x03040506,
    "switch_number": 0x0708,
    "fan_in": 0x090A,
    "next_switch": 0x0B0C,
    "next_fan_in": 0x0D0E,
    "worker_bitmap": 0x1112131415161718,
    "tos": 3,
}
NACK_VALUES = {**GRADIENT_VALUES, "flags": int(Flags.ACK | Flags.NACK), "tos": 2, "ttl": 9}
RING_VALUES = {
    "flags": int(RingFlags.HIGH),
    "job": 0x0102,
    "sequence": 0x03040506,
    "selective": 0x1112131415161718,
    "round": 0x21222324,
    "fragment_number": 0x25262728,
    "step": 0x292A,
    "shift": 0x2B2C,
}
LANES = [-2, 0x31323334]


def part() -> np.ndarray:
    """Three codes of 32 bits by coordinate."""
    content = Content(5000, np.array([1, -2, 3]), 32, 0x41, np.array([2, 70, 4999]))
    (frame,) = part_frames(ROUTE, written(content, HEADER_BYTES), 0x21222324, 0x03040506)
    return frame


def trailer() -> bytes:
    made = np.zeros(1, TRAILER_TYPE)
    made[0] = (0x7A6B, 0x8001, 0x0203, 0x04050607, 0x08090A0B, 0x1112131415161718)
    return made.tobytes()


def of_numpy(frames: np.ndarray) -> bytes:
    return as_bytes(frames)[0].tobytes()


def gradient_data() -> bytes:
    head = VersionHead(0.5, (3, -4), last=True)
    (frames,) = version_frames(ETHERNET, NAME, 7, head, np.array([[-2, 5]], np.int32))
    return frames[0].tobytes()


BUILT: Mapping[str, Callable[[], bytes]] = {
    "gradient, scapy": lambda: bytes(gradient_frame(**TEXT, **GRADIENT_VALUES, lanes=LANES)),
    "gradient, numpy": lambda: of_numpy(pack_frames(np.array([LANES], np.int32), **NUMBERS, **GRADIENT_VALUES)),
    "nack, scapy": lambda: bytes(gradient_frame(**TEXT, **NACK_VALUES)),
    "nack, numpy": lambda: of_numpy(pack_frames(np.zeros((1, 0), np.int32), **NUMBERS, **NACK_VALUES)),
    "ring, scapy": lambda: bytes(datagram(Ring, **TEXT, **RING_VALUES, lanes=LANES)),
    "ring, numpy": lambda: of_numpy(pack_lane_frames(RING, np.array([LANES], np.int32), **NUMBERS, **RING_VALUES)),
    "scheduled, scapy": lambda: bytes(
        coded_frame(
            **TEXT, bits=16, bit_string=0x8001, carries=b"\xab\xcd", flags=int(CodedFlags.BY_BIT_STRING), job=0x0102,
            bift_id=0x0304, bfir_id=4, transmission=0x05060708, fragment=0x090A, fragments=0x0B0C,
        )
    ),
    "scheduled, numpy": lambda: of_numpy(
        PACKER.scheduled(
            np.array([[0xAB, 0xCD]], np.uint8), fragment=0x090A, fragments=0x0B0C, transmission=0x05060708,
            dst_ip=ip_integer(DST_IP), bift_id=0x0304, receivers=0x8001,
        )
    ),
    "repair, scapy": lambda: bytes(
        coded_frame(
            **TEXT, bits=16, carries=repair_by_scapy([(0x01020304, 0x0506), (7, 8)], b"\xab\xcd"),
            flags=int(CodedFlags.REPAIR), job=0x0102, bfir_id=4,
        )
    ),
    "repair, numpy": lambda: of_numpy(
        PACKER.repair(
            np.array([0xAB, 0xCD], np.uint8), [(0x01020304, 0x0506), (7, 8)], dst_ip=ip_integer(DST_IP),
            transmission=0,
        )
    ),
    "request, numpy": lambda: of_numpy(
        PACKER.request(
            0x01020304, np.array([True, False, True]), fragment=0x090A, transmission=5, dst_ip=ip_integer(DST_IP)
        )
    ),
    "request, scapy": lambda: bytes(
        coded_frame(
            **TEXT, bits=16, carries=bytes(Request(sample=0x01020304, missing=b"\xa0" + bytes(63))),
            flags=int(CodedFlags.REQUEST), job=0x0102, bfir_id=4, transmission=5, fragment=0x090A,
        )
    ),
    "part, scapy": lambda: bytes(
        datagram(
            GradientPart, **TEXT,
            job=0x0102, sequence=0x03040506, round=0x21222324, first=2, codes=3, form=Form.COORDINATE, unit=0x41
        ) / Raw(struct.pack(">6i", 2, 70, 4999, 1, -2, 3))
    ),
    "part, numpy": lambda: part().tobytes(),
    "part, record": lambda: records([part()]),
    "end, numpy": lambda: end_frame(ROUTE, 0x21222324, 0x03040506).tobytes(),
    "end, scapy": lambda: bytes(
        datagram(GradientPart, **TEXT, flags="END", job=0x0102, sequence=0x03040506, round=0x21222324)
    ),
    "acknowledgement, scapy": lambda: bytes(
        datagram(
            Acknowledgement, **TEXT, tos=0, flags="ACK+CONGESTION", job=0x0102, sequence=0x03040506,
            selective=0x1112131415161718, active=0x0708, arrived_bytes=0x090A0B0C, time_us=0x0D0E0F10,
        )
    ),
    "acknowledgement, numpy": lambda: acknowledgement_frame(
        ROUTE, 0x03040506, 0x1112131415161718, congested=True, active=0x0708, arrived_bytes=0x090A0B0C,
        time_us=0x0D0E0F10,
    ).tobytes(),
    "trailer, numpy": trailer,
    "interest": lambda: interest_frame(ETHERNET, NAME, 0x01020304, 5000, must_be_fresh=True),
    "data": lambda: data_frame(ETHERNET, NAME),
    "gradient data": gradient_data,
}  # fmt: skip

STORED: Mapping[str, str] = {
    "gradient": """
        020100000007 02000a000002 0800 45 03 0040 0000 4000 40 11 24a5 0a000002 0a010203 0708 4742 002c 0000
        02 12 0102 03040506 0708 090a 0b0c 0d0e 1112131415161718 31323334 fffffffe 31323334
    """,
    "nack": """
        020100000007 02000a000002 0800 45 02 0038 0000 4000 09 11 5bae 0a000002 0a010203 4742 4742 0024 0000
        02 09 0102 03040506 0708 090a 0b0c 0d0e 1112131415161718 00000000
    """,
    "ring": """
        020100000007 02000a000002 0800 45 02 0040 0000 4000 40 11 24a6 0a000002 0a010203 4752 4752 002c 0000
        01 08 0102 03040506 1112131415161718 21222324 25262728 292a 2b2c fffffffe 31323334
    """,
    "scheduled": """
        020100000007 02000a000002 0800 45 00 0030 0000 4000 40 11 24b8 0a000002 0a010203 4743 4743 001c 0000
        01 08 0102 0304 0004 05060708 090a 0b0c 8001 abcd
    """,
    "repair": """
        020100000007 02000a000002 0800 45 00 0062 0000 4000 40 11 2486 0a000002 0a010203 4743 4743 004e 0000
        01 01 0102 0000 0004 00000000 0000 0001 0000 0002 01020304 0506 00000007 0008 00000000 0000 00000000 0000
        00000000 0000 00000000 0000 00000000 0000 00000000 0000 abcd
    """,
    "request": """
        020100000007 02000a000002 0800 45 00 0072 0000 4000 40 11 2476 0a000002 0a010203 4743 4743 005e 0000
        01 02 0102 0000 0004 00000005 090a 0001 0000 01020304
        a000000000000000000000000000000000000000000000000000000000000000
        0000000000000000000000000000000000000000000000000000000000000000
    """,
    "part": """
        020100000007 02000a000002 0800 45 02 0052 0000 4000 40 11 2494 0a000002 0a010203 4743 4743 003e 0000
        01 00 0102 03040506 21222324 00000002 0000 0003 02 20 0000000000000041 00000002 00000046 00001387 00000001
        fffffffe 00000003
    """,
    "part, record": """
        0036 01 00 0102 03040506 21222324 00000002 0000 0003 02 20 0000000000000041 00000002 00000046 00001387
        00000001 fffffffe 00000003
    """,
    "end": """
        020100000007 02000a000002 0800 45 02 003a 0000 4000 40 11 24ac 0a000002 0a010203 4743 4743 0026 0000
        01 04 0102 03040506 21222324 00000000 0000 0000 00 20 0000000000000001
    """,
    "acknowledgement": """
        020100000007 02000a000002 0800 45 00 0036 0000 4000 40 11 24b2 0a000002 0a010203 4743 4743 0022 0000
        01 03 0102 03040506 1112131415161718 0708 090a0b0c 0d0e0f10
    """,
    "trailer": """
        7a6b 8001 0203 04050607 08090a0b 1112131415161718
    """,
    "interest": """
        01005e0017aa 02000a000002 8624 051a07090803742d310802683112000a04010203040c021388220120
    """,
    "data": """
        01005e0017aa 02000a000002 8624 061407090803742d3108026831150016031b01c81700
    """,
    "gradient data": """
        01005e0017aa 02000a000002 8624
        0632070f0803742d310802683136010732010015183fe000000000000003fc000000010000fffffffe0000000516031b01c81700
    """,
}


@pytest.mark.parametrize("name", BUILT)
def test_bytes_are_those_that_were_written_down(name: str) -> None:
    assert BUILT[name]() == bytes.fromhex(STORED[name.removesuffix(", scapy").removesuffix(", numpy")])
