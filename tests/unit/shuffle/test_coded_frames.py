"""Scapy's bytes are NumPy's bytes, in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradbed.formats.datagram import MAX_FRAME_BYTES
from gradbed.formats.shuffle import (
    COMPONENTS,
    MULTICAST_IP,
    MULTICAST_MAC,
    REQUEST_BITS,
    CodedFlags,
    frame_overhead_bytes,
    most_fragment_bytes,
)
from gradbed.hosts.agents.config import WorkerAddress
from gradbed.hosts.protocols.frames import Frames, as_bytes
from gradbed.hosts.systems.shuffle.coded import Request, coded_frame, repair
from gradbed.hosts.systems.shuffle.coded_frames import Packer, Parsed, repair_dtype

BITS, FRAGMENT_BYTES, JOB, INDEX = 64, 40, 5, 6
OWN = WorkerAddress(name="h1", ip="10.0.0.2", mac="02:00:00:00:00:01", gateway_mac="02:01:00:00:00:01", index=INDEX)
DST = "10.1.2.3"
PACKER = Packer(JOB, INDEX, OWN, BITS, FRAGMENT_BYTES)
ADDRESSES = {"src_mac": OWN.mac, "dst_mac": OWN.gateway_mac, "src_ip": OWN.ip, "dst_ip": DST}

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
u16, u32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
payloads = st.binary(min_size=FRAGMENT_BYTES, max_size=FRAGMENT_BYTES)


def number(ip: str) -> int:
    return int.from_bytes(bytes(map(int, ip.split("."))), "big")


def scapy_bytes(**fields: Any) -> bytes:
    return bytes(coded_frame(**{**ADDRESSES, "bits": BITS, "job": JOB, "bfir_id": INDEX + 1, **fields}))


def parsed(*frames: bytes) -> Parsed:
    buffer = np.zeros((len(frames) + 1, 2048), np.uint8)
    for row, frame in zip(buffer, frames, strict=False):
        row[: len(frame)] = np.frombuffer(frame, np.uint8)
    return Parsed(buffer, np.array(list(map(len, frames)), np.uint32), JOB, BITS, FRAGMENT_BYTES)


def only_frame(frames: Frames) -> bytes:
    return as_bytes(frames)[0].tobytes()


@unhurried
@given(payloads, u16, u16, u32, u16, st.integers(0, (1 << BITS) - 1), st.booleans())
def test_scheduled(
    payload: bytes, fragment: int, fragments: int, transmission: int, tree: int, receivers: int, loan: bool
) -> None:
    by_numpy = PACKER.scheduled(
        np.frombuffer(payload, np.uint8)[None],
        fragment=np.array([fragment]),
        fragments=fragments,
        transmission=transmission,
        dst_ip=number(DST),
        bift_id=tree,
        receivers=receivers,
        flags=CodedFlags.LOAN if loan else 0,
    )
    flags = (CodedFlags.LOAN if loan else 0) | (CodedFlags.BY_BIT_STRING if receivers else 0)
    by_scapy = scapy_bytes(
        flags=int(flags),
        bift_id=tree,
        transmission=transmission,
        fragment=fragment,
        fragments=fragments,
        bit_string=receivers,
        carries=payload,
    )
    assert only_frame(by_numpy) == by_scapy
    found = parsed(by_scapy)
    (frame,) = found.scheduled
    assert (len(found.repairs), len(found.requests), found.foreign) == (0, 0, 0)
    assert (frame["transmission"], frame["fragment"], frame["payload"].tobytes()) == (transmission, fragment, payload)


@unhurried
@given(payloads, st.lists(st.tuples(u32, u16), min_size=1, max_size=COMPONENTS), st.integers(0, (1 << BITS) - 1))
def test_repair(payload: bytes, components: list[tuple[int, int]], receivers: int) -> None:
    by_numpy = PACKER.repair(
        np.frombuffer(payload, np.uint8), components, dst_ip=number(DST), transmission=0, receivers=receivers
    )
    flags = CodedFlags.REPAIR | (CodedFlags.BY_BIT_STRING if receivers else 0)
    by_scapy = scapy_bytes(flags=int(flags), bit_string=receivers, carries=repair(components, payload))
    assert only_frame(by_numpy) == by_scapy
    (frame,) = parsed(by_scapy).repairs
    assert [tuple(map(int, each)) for each in frame["components"][: frame["count"]]] == components
    assert frame["payload"].tobytes() == payload


@unhurried
@given(u32, u32, u16, st.lists(st.booleans(), min_size=1, max_size=REQUEST_BITS))
def test_request(sample: int, transmission: int, first: int, missing: list[bool]) -> None:
    by_numpy = PACKER.request(
        sample, np.array(missing), fragment=first, transmission=transmission, dst_ip=number(DST)
    )
    bits = "".join("01"[each] for each in missing).ljust(REQUEST_BITS, "0")
    carries = bytes(Request(sample=sample, missing=int(bits, 2).to_bytes(REQUEST_BITS // 8, "big")))
    by_scapy = scapy_bytes(flags=int(CodedFlags.REQUEST), transmission=transmission, fragment=first, carries=carries)
    assert only_frame(by_numpy) == by_scapy
    (frame,) = parsed(by_scapy).requests
    assert np.unpackbits(frame["missing"])[: len(missing)].tolist() == missing
    assert (frame["sample"], frame["fragment"]) == (sample, first)


@pytest.mark.parametrize("change", [{"job": JOB + 1}, {"version": 2}])
def test_packets_of_others_are_foreign(change: dict[str, int]) -> None:
    found = parsed(scapy_bytes(carries=bytes(FRAGMENT_BYTES), **change))
    assert (len(found.scheduled), found.foreign) == (0, 1)


@unhurried
@given(st.lists(st.binary(max_size=200), max_size=4))
def test_whatever_arrives_is_foreign(frames: list[bytes]) -> None:
    found = parsed(*frames)
    assert (len(found.scheduled), len(found.repairs), len(found.requests)) == (0, 0, 0)
    assert found.foreign == len(frames)


@pytest.mark.parametrize("bits", [8, 128, 256])
def test_the_longest_fragment_fits_a_frame(bits: int) -> None:
    assert repair_dtype(bits, most_fragment_bytes(bits)).itemsize == MAX_FRAME_BYTES
    assert frame_overhead_bytes(bits) == len(coded_frame(**ADDRESSES, bits=bits))


def test_the_multicast_mac_is_that_of_the_address() -> None:
    low = number(MULTICAST_IP) & 0x7FFFFF
    assert int(MULTICAST_MAC.replace(":", ""), 16) == 0x01005E000000 | low
