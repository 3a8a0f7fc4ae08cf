"""Packets of queue pairs: bytes that are written down, those of the tables in formats/, and what Wireshark says."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradbed.formats import roce
from gradbed.formats.roce import IMMEDIATE, RETH, Opcode
from gradbed.switch.simple_switch.packet_files import read_pcap
from gradbed.topo.link import LinkModel
from tests.unit.formats.tshark import dissected, found, needs_tshark, numbers
from tests.unit.virtual.transport import roce_frames as rf
from tests.unit.virtual.transport.network import RECEIVED, Line

LINK = LinkModel(rate_bps=10**10, delay_us=1)
TAG = 0x1112131415161718
PAIR, PEER = 0x010203, 0x040506
DATA = np.frombuffer(b"\xa1\xa2\xa3\xa4\xa5\xa6\xa7", np.uint8)


def sent(
    folder: Path, act: Callable[[Line], None], frames: list[bytes], outgoing: int = 1, **options: Any
) -> list[bytes]:
    """What host 1's NIC sends, with the queue pair PAIR to PEER at host 2: a host without a NIC, which sends some
    frames after `act`."""
    file = folder / "sent.pcap"
    with Line([1, 1], LINK) as line:
        line.simulated.engine.capture(file, [(1, 1, "in")])
        line.connect_end(1, 2, PAIR, PEER, mtu_bytes=4, give_up_after=1, first_psn=2**24 - 1, **options)
        act(line)
        line.run(10_000)
        for frame in frames:
            line.interface(2).send(np.frombuffer(frame, np.uint8)[None])
            line.run(line.simulated.now_ns + 5_000)
    with file.open("rb") as stream:
        return [frame for _, frame in read_pcap(stream)]


def message(line: Line) -> None:
    line.open(1).send(PAIR, TAG, 7, DATA)


def short_message(line: Line) -> None:
    line.open(1).send(PAIR, TAG, 3, np.ascontiguousarray(DATA[:3]))


def hollow_message(line: Line) -> None:
    line.open(1).send(PAIR, TAG, 9)


def nothing(line: Line) -> None: ...


def numbered(psn: int, **more: Any) -> dict[str, Any]:
    return {"psn": psn, **TO_PEER, **more}


SOURCE_PORT = 0xC000 | ((PAIR << 24 | PEER) * 0x9E3779B97F4A7C15 % 2**64 >> 50)
TO_PEER: dict[str, Any] = {"pair": PEER, "source_port": SOURCE_PORT}
REQUEST = {"acknowledge": roce.ACKNOWLEDGE_REQUEST}
IMMEDIATE_BYTES = rf.header(IMMEDIATE, immediate=0x15161718)
HOLLOW_RETH = rf.header(RETH, tag=TAG, r_key=roce.LENGTH_ALONE, dma_length=9)
COMING = {"pair": PAIR, "tos": 3}
"""To host 1, and marked on its way."""

CASES: Mapping[str, tuple[Callable[[Line], None], list[bytes], dict[str, Any], list[bytes]]] = {
    "first and last": (
        message,
        [],
        {"congestion_control": "dcqcn", "priority": 5},
        [
            rf.write(1, 2, DATA[:4].tobytes(), tag=TAG, size=7, tos=0xA2, **numbered(-1)),
            rf.frame(
                1, 2, Opcode.WRITE_LAST_WITH_IMMEDIATE, IMMEDIATE_BYTES + DATA[4:].tobytes() + b"\0",
                flags=1 << 4, tos=0xA2, **REQUEST, **numbered(0),
            ),
        ],
    ),
    "only": (short_message, [], {}, [rf.write(1, 2, DATA[:3].tobytes(), tag=TAG, **REQUEST, **numbered(-1))]),
    "hollow": (
        hollow_message,
        [],
        {},
        [
            rf.frame(1, 2, Opcode.WRITE_FIRST, HOLLOW_RETH + bytes(4), **numbered(-1)),
            rf.frame(1, 2, Opcode.WRITE_MIDDLE, bytes(4), **numbered(0)),
            rf.frame(
                1, 2, Opcode.WRITE_LAST_WITH_IMMEDIATE, IMMEDIATE_BYTES + bytes(4), flags=3 << 4, **REQUEST,
                **numbered(1),
            ),
        ],
    ),
    "acknowledgement": (
        nothing,
        [rf.write(2, 1, b"abc", pair=PAIR, psn=-1)],
        {},
        [rf.acknowledgement(1, 2, 0, messages=1, **TO_PEER)],
    ),
    "one that is missing": (
        nothing,
        [rf.write(2, 1, b"abc", pair=PAIR, psn=-1), rf.write(2, 1, b"def", pair=PAIR, psn=1)],
        {},
        [
            rf.acknowledgement(1, 2, 0, messages=1, **TO_PEER),
            rf.acknowledgement(1, 2, 0, messages=1, missing=True, **TO_PEER),
        ],
    ),
    "selective": (
        nothing,
        [rf.write(2, 1, b"abc", psn=psn, **COMING) for psn in (-1, 1, 3)],
        {"recovery": "selective-repeat"},
        [
            rf.acknowledgement(1, 2, 0, messages=1, selective={"marked_bytes": 3}, **TO_PEER),
            rf.acknowledgement(
                1, 2, 0, messages=1, missing=True, selective={"marked_bytes": 6, "selective": 0b10}, **TO_PEER
            ),
            rf.acknowledgement(
                1, 2, 0, messages=1, missing=True, selective={"marked_bytes": 9, "selective": 0b1010}, **TO_PEER
            ),
        ],
    ),
    "notification": (
        nothing,
        [rf.write(2, 1, b"abc", psn=-1, **COMING)],
        {"congestion_control": "dcqcn", "priority": 1},
        [
            rf.notification(1, 2, tos=0x20, **numbered(0)),
            rf.acknowledgement(1, 2, 0, messages=1, tos=0x20, **TO_PEER),
        ],
    ),
}  # fmt: skip


def of_case(name: str, folder: Path) -> list[bytes]:
    act, frames, options, _ = CASES[name]
    return sent(folder, act, frames, **options)


@pytest.mark.parametrize("name", CASES)
def test_packets_are_those_of_the_tables(name: str, tmp_path: Path) -> None:
    assert [frame.hex() for frame in of_case(name, tmp_path)] == [frame.hex() for frame in CASES[name][3]]


STORED = {
    "first and last": """
        020100000001 020000000001 0800 45 a2 0040 0000 4000 40 11 2609 0a000001 0a000002 SSSS 12b7 002c 0000
        06 00 ffff 00 040506 00 ffffff 1112131415161718 00000001 00000007 a1a2a3a4 00000000
        020100000001 020000000001 0800 45 a2 0034 0000 4000 40 11 2615 0a000001 0a000002 SSSS 12b7 0020 0000
        09 10 ffff 00 040506 80 000000 15161718 a5a6a700 00000000
    """,
    "selective": """
        020100000001 020000000001 0800 45 00 0040 0000 4000 40 11 26ab 0a000001 0a000002 SSSS 12b7 002c 0000
        11 00 ffff 00 040506 00 ffffff 00 000001 00000003 00000000 0000000000000000 00000000
        020100000001 020000000001 0800 45 00 0040 0000 4000 40 11 26ab 0a000001 0a000002 SSSS 12b7 002c 0000
        11 00 ffff 00 040506 00 000000 60 000001 00000006 00000000 0000000000000002 00000000
        020100000001 020000000001 0800 45 00 0040 0000 4000 40 11 26ab 0a000001 0a000002 SSSS 12b7 002c 0000
        11 00 ffff 00 040506 00 000000 60 000001 00000009 00000000 000000000000000a 00000000
    """,
    "notification": """
        020100000001 020000000001 0800 45 20 003c 0000 4000 40 11 268f 0a000001 0a000002 SSSS 12b7 0028 0000
        81 00 ffff 40 040506 00 000000 00000000000000000000000000000000 00000000
        020100000001 020000000001 0800 45 20 0030 0000 4000 40 11 269b 0a000001 0a000002 SSSS 12b7 001c 0000
        11 00 ffff 00 040506 00 ffffff 00 000001 00000000
    """,
}
"""SSSS: the source port, which is a hash."""


@pytest.mark.parametrize("name", STORED)
def test_bytes_are_those_that_were_written_down(name: str, tmp_path: Path) -> None:
    stored = bytes.fromhex(STORED[name].replace("SSSS", f"{SOURCE_PORT:04x}"))
    assert b"".join(of_case(name, tmp_path)) == stored


@needs_tshark
@pytest.mark.parametrize("name", CASES)
def test_wireshark_reads_them(name: str, tmp_path: Path) -> None:
    frames = of_case(name, tmp_path)
    for frame, layers in zip(frames, dissected(frames, tmp_path), strict=True):
        bth, behind = rf.bth_of(frame), rf.behind_bth(frame)
        assert not [key for key in layers if key.startswith("_ws.malformed")]
        assert found(layers, "ip.checksum.status") in ([], ["1"], ["2"])
        assert numbers(layers, "infiniband.bth.opcode") == [bth["opcode"]]
        assert numbers(layers, "infiniband.bth.psn") == [bth["psn"]]
        assert numbers(layers, "infiniband.bth.destqp") == [PEER]
        assert numbers(layers, "infiniband.bth.padcnt") == [bth["flags"] >> 4]
        assert numbers(layers, "infiniband.bth.a") == [bth["acknowledge"] >> 7]
        if bth["opcode"] in (Opcode.WRITE_FIRST, Opcode.WRITE_ONLY_WITH_IMMEDIATE):
            reth = rf.read(RETH, behind)
            assert numbers(layers, "infiniband.reth.va") == [reth["tag"]] == [TAG]
            assert numbers(layers, "infiniband.reth.r_key") == [reth["r_key"]]
            assert numbers(layers, "infiniband.reth.dmalen") == [reth["dma_length"]]
        if bth["opcode"] in (Opcode.WRITE_LAST_WITH_IMMEDIATE, Opcode.WRITE_ONLY_WITH_IMMEDIATE):
            assert set(found(layers, "infiniband.immdt")) == {"15:16:17:18"}
        if bth["opcode"] == Opcode.ACKNOWLEDGE:
            assert numbers(layers, "infiniband.aeth.syndrome") == [behind[0]]
            assert numbers(layers, "infiniband.aeth.msn") == [1]


def test_what_is_broken_or_for_nobody_is_counted_and_dropped() -> None:
    good = rf.write(2, 1, b"abc", psn=0)
    broken = [
        rf.write(2, 1, b"abc", psn=0, pair=9),  # no such pair
        rf.write(3, 1, b"abc", psn=0),  # not from its peer
        good[:-4],  # cut
        good + b"\0" * 4,  # longer than it says
        rf.frame(2, 1, Opcode.WRITE_ONLY_WITH_IMMEDIATE, b"\0" * 3),
        rf.frame(2, 1, Opcode.ACKNOWLEDGE, b""),
        rf.frame(2, 1, Opcode.ACKNOWLEDGE, struct.pack(">I", 0x20000000)),  # receiver not ready: we never say that
        rf.frame(2, 1, 0x0C, b""),  # type: ignore[arg-type]  # RDMA READ request
    ]
    with Line([1, 1, 1], LINK) as line:
        line.connect_end(1, 2, 1, 1)
        for frame in broken:
            line.interface(2).send(np.frombuffer(frame, np.uint8)[None])
        line.run()
        assert line.open(1).counts()["unknown"] == len(broken)
        assert line.done[1] == []
        # Those that belong to no message are as lost.
        line.interface(2).send(np.frombuffer(rf.frame(2, 1, Opcode.WRITE_MIDDLE, b"abcd"), np.uint8)[None])
        line.interface(2).send(np.frombuffer(rf.write(2, 1, b"abcd", size=3), np.uint8)[None])
        line.run()
        assert line.done[1] == []
        line.interface(2).send(np.frombuffer(good, np.uint8)[None])
        line.run()
        assert [(each.kind, each.size_bytes) for each in line.done[1]] == [(RECEIVED, 3)]
        assert line.open(1).counts()["unknown"] == len(broken)


def test_a_host_without_a_nic_receives_the_packets_as_frames() -> None:
    with Line([1, 1], LINK) as line:
        line.connect_end(1, 2, 1, 1, give_up_after=1)
        line.open(1).send(1, TAG, 100)
        line.run()
        frames, lengths = line.interface(2).receive()
        assert lengths.tolist() == [54 + 16 + 4 + 100 + 4]
        assert rf.bth_of(frames[0].tobytes())["opcode"] == Opcode.WRITE_ONLY_WITH_IMMEDIATE
