"""What differs in a packet, by the names of fields."""

from __future__ import annotations

import functools
import struct
from pathlib import Path

import pytest

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.compiler import compile_p4
from gradbed.switch.stf.frame_fields import named_differences
from tests.unit.compiler.programs import HEAD, compile_text

P4_SOURCES = Path(__file__).resolve().parents[3] / "p4src"
ETHERNET = bytes.fromhex("0200000000010200000000020800")
IPV4 = struct.pack(">BBHHHBBHII", 0x45, 0, 28, 7, 0x4000, 64, 17, 0x1234, 0x0A000001, 0x0A000002)
FRAME = ETHERNET + IPV4 + b"payload!"


@functools.cache
def router() -> ProgramModel:
    return load_program(compile_p4(P4_SOURCES / "router.p4").json)


def changed(*changes: tuple[int, bytes]) -> str:
    frame = bytearray(FRAME)
    for at, new in changes:
        frame[at : at + len(new)] = new
    return frame.hex()


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (changed((24, b"\x43\x21")), "ipv4.header_checksum: 0x1234 instead of 0x4321"),
        (changed((22, b"\x3f")), "ipv4.ttl: 0x40 instead of 0x3f"),
        (changed((14, b"\x46")), "ipv4.ihl: 0x5 instead of 0x6"),
        (changed((20, b"\x80")), "ipv4.flags: 0x2 instead of 0x4"),
        (
            changed((0, b"\xff"), (30, b"\x0b")),
            "ethernet.dst_addr: 0x020000000001 instead of 0xff0000000001, "
            "ipv4.dst_addr: 0x0a000002 instead of 0x0b000002",
        ),
        (changed((0, bytes(14)))[:12] + "**" * 24, "ethernet.dst_addr: 0x020000000001 instead of 0x000000000000"),
        (changed((24, b"\x43"))[:50] + "*" * 10, "ipv4.header_checksum: 0x1234 instead of 0x43**"),
        (changed((20, b"\x80"))[:41] + "*", "ipv4.flags: 0x2 instead of 0x4"),
        (
            changed((14, b"\x66" * 20)),
            "ipv4.version: 0x4 instead of 0x6, ipv4.ihl: 0x5 instead of 0x6, ipv4.dscp_ecn: 0x00 instead of 0x66, "
            "ipv4.total_length: 0x001c instead of 0x6666, and 8 more",
        ),
        # With another type the rest is another header: only what both have in common is told.
        (changed((12, b"\x86\xdd")), "ethernet.ether_type: 0x0800 instead of 0x86dd"),
        (changed((12, b"\x86\xdd"), (30, b"\x0b")), ""),
        (changed((40, b"P")), ""),
        (changed((24, b"\x43\x21"), (40, b"P")), ""),
        (FRAME.hex(), ""),
    ],
)
def test_fields_of_a_router(expected: str, said: str) -> None:
    assert named_differences(router(), expected, FRAME) == said


STACK = (
    HEAD
    + """
header one_t { bit<4> kind; bit<4> more; varbit<32> v; }
struct headers_t { one_t[3] all; }
struct meta_t { bit<8> left; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { meta.left = packet.lookahead<bit<8>>(); transition next; }
    state next {
        packet.extract(hdr.all.next, (bit<32>)8 * (bit<32>)(meta.left & 3));
        transition select(hdr.all.last.more) { 0: accept; default: next; }
    }
}
control N(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), N(), I(), I(), N(), D()) main;
"""
)


def test_stacks_and_varbits() -> None:
    model = load_program(compile_text(STACK).json)
    frame = bytes.fromhex("a1aab1ccd0eeff00")
    assert named_differences(model, "a1aab1ccd1", frame) == "all[2].more: 0x0 instead of 0x1"
    assert named_differences(model, "a100b1c", frame) == "all[0].v: 0xaa instead of 0x00"
    # Where the second header is the last, the bytes behind it are no header's.
    assert named_differences(model, "a1aab0ccd1", frame) == ""


def test_a_program_that_asks_for_more_than_the_packet() -> None:
    text = STACK.replace("meta.left = packet.lookahead<bit<8>>();", "meta.left = (bit<8>)std.ingress_port;")
    assert named_differences(load_program(compile_text(text).json), "a2", b"\xa1\xaa\xbb") == ""
