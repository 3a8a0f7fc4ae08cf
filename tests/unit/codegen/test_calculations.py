"""Hashes and checksums against Python's, over fields at odd bit offsets and over the payload."""

from __future__ import annotations

import binascii
import functools
import random
import zlib
from collections.abc import Callable

import pytest

from gradbed.switch.codegen import build_program
from tests.unit.codegen import program_maker as make
from tests.unit.codegen.bare_switch import BareSwitch, field_bits

WIDTHS = [3, 13, 32, 100, 7, 1, 48]


def csum16(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def crc_bitwise(data: bytes, width: int, polynomial: int, reflected: bool) -> int:
    """One bit at a time, most significant first, with initial value 0 and no final exclusive or."""
    rest, top = 0, 1 << (width - 1)
    for byte in data:
        bits = range(8) if reflected else range(7, -1, -1)
        for bit in bits:
            carry = bool(rest & top) ^ (byte >> bit & 1)
            rest = (rest << 1) & ((1 << width) - 1)
            rest ^= polynomial if carry else 0
    return int(f"{rest:0{width}b}"[::-1], 2) if reflected else rest


def exclusive_or(data: bytes, size: int) -> int:
    data += bytes(-len(data) % size)
    parts = [int.from_bytes(data[i : i + size], "big") for i in range(0, len(data), size)]
    return functools.reduce(lambda a, b: a ^ b, parts, 0)


ALGORITHMS: dict[str, Callable[[bytes], int]] = {
    "csum16": csum16,
    "crc16": functools.partial(crc_bitwise, width=16, polynomial=0x8005, reflected=True),
    "crc16_custom": functools.partial(crc_bitwise, width=16, polynomial=0x8005, reflected=True),
    "crc32": zlib.crc32,
    "crc32_custom": zlib.crc32,
    "crcCCITT": lambda data: binascii.crc_hqx(data, 0xFFFF),
    "crc8_custom": functools.partial(crc_bitwise, width=8, polynomial=0x07, reflected=False),
    "crc64_custom": functools.partial(crc_bitwise, width=64, polynomial=0x1B, reflected=True),
    "xor16": functools.partial(exclusive_or, size=2),
    "xor32": functools.partial(exclusive_or, size=4),
    "identity": lambda data: int.from_bytes(data[:8], "big"),
}
ROUNDS = [("csum16", True), *((name, False) for name in ALGORITHMS)]


@functools.cache
def hash_switch() -> BareSwitch:
    """All algorithms over the fields of h, then those of g if it is there, then a constant; results one by one."""
    maker = make.ProgramMaker()
    maker.add_header("kind", [["g_follows", 8, False]])
    maker.add_header("h", [[f"f{i}", w, i == 2] for i, w in enumerate(WIDTHS)] + [["pad", -sum(WIDTHS) % 8, False]])
    maker.add_header("g", [["a", 24, False]])
    maker.add_header("results", [[f"r{i}", 64, False] for i in range(len(ROUNDS))])
    inputs = [make.field("h", f"f{i}") for i in range(len(WIDTHS))]
    inputs += [make.field("g", "a"), {"type": "hexstr", "value": "0x2a5", "bitwidth": 11}]
    for i, (name, payload) in enumerate(ROUNDS):
        with_payload = [{"type": "payload", "value": None}] if payload else []
        maker.add("calculations", name=f"c{i}", algo=name, input=[*inputs, *with_payload])
    follows = {"type": "hexstr", "value": "0x01", "mask": None, "next_state": "g"}
    maker.states = [
        make.state(
            "start",
            [make.extract("kind"), make.extract("h")],
            [make.field("kind", "g_follows")],
            [follows, make.default()],
        ),
        make.state("g", [make.extract("g")]),
    ]
    primitives = [make.call("add_header", make.header("results"))]
    for i in range(len(ROUNDS)):
        primitives.append(
            make.call(
                "modify_field_with_hash_based_offset",
                make.field("results", f"r{i}"),
                make.constant(0),
                make.named("calculation", f"c{i}"),
                make.constant(2**64 - 1),
            )
        )
    maker.run(primitives)
    maker.order = ["results"]
    return BareSwitch(build_program(maker.json()))


@pytest.mark.parametrize("with_g", [False, True])
def test_hashes_over_bits_in_order(with_g: bool) -> None:
    switch = hash_switch()
    rng = random.Random(4)
    for length in (*range(18), 64):
        values = [(rng.getrandbits(w), w) for w in WIDTHS]
        g = [(rng.getrandbits(24), 24)] if with_g else []
        payload = rng.randbytes(length)
        frame = bytes([with_g]) + field_bits([*values, (0, -sum(WIDTHS) % 8), *g]) + payload
        bits = [*values, *g, (0x2A5, 11)]
        total = sum(w for _, w in bits)
        data = field_bits([*bits, (0, -total % 8)])
        out = switch.through(frame).frame
        for i, (name, over_payload) in enumerate(ROUNDS):
            wanted = ALGORITHMS[name](data + (payload if over_payload else b"")) % (2**64 - 1)
            assert int.from_bytes(out[8 * i : 8 * i + 8], "big") == wanted, (name, over_payload, length)


def test_hashes_over_whole_bytes() -> None:
    """1 to 17 bytes, then three of another header, so that what follows begins anywhere in a word."""
    most, names = 17, ("crc16", "crc32", "csum16")
    rounds = [(n, name) for n in range(1, most + 1) for name in names]
    maker = make.ProgramMaker()
    maker.add_header("h", [[f"f{i}", 8, False] for i in range(most)])
    maker.add_header("g", [["a", 24, False]])
    maker.add_header("results", [[f"r{i}", 32, False] for i in range(len(rounds))])
    maker.states = [make.state("start", [make.extract("h"), make.extract("g")])]
    primitives = [make.call("add_header", make.header("results"))]
    for i, (n, name) in enumerate(rounds):
        first = [make.field("h", f"f{i}") for i in range(n)]
        inputs = [*first, make.field("g", "a"), make.field("h", "f0"), make.field("h", "f1")]
        maker.add("calculations", name=f"c{i}", algo=name, input=inputs)
        target, calculation = make.field("results", f"r{i}"), make.named("calculation", f"c{i}")
        hashed = [target, make.constant(0), calculation, make.constant(1 << 32)]
        primitives.append(make.call("modify_field_with_hash_based_offset", *hashed))
    maker.run(primitives)
    maker.order = ["results"]
    frame = random.Random(5).randbytes(most + 3)
    out = BareSwitch(build_program(maker.json())).through(frame).frame
    wanted = [ALGORITHMS[name](frame[:n] + frame[most:] + frame[:2]) for n, name in rounds]
    assert [int.from_bytes(out[i : i + 4], "big") for i in range(0, len(out), 4)] == wanted


def test_xxh64_reference_values() -> None:
    """Test vectors of the xxHash project: empty input, and 'Nobody inspects the spammish repetition'."""
    text = b"Nobody inspects the spammish repetition"
    for data, digest in ((b"", 0xEF46DB3751D8E999), (text, 0xFBCEA83C8A378BF1)):
        maker = make.ProgramMaker()
        maker.add_header("h", [["a", 8 * len(data), False], ["r", 64, False]])
        maker.add("calculations", name="c", algo="xxh64", input=[make.field("h", "a")])
        maker.states = [make.state("start", [make.extract("h")])]
        target = make.field("h", "r")
        size = make.constant(2**64 - 1)
        name = make.named("calculation", "c")
        maker.run([make.call("modify_field_with_hash_based_offset", target, make.constant(0), name, size)])
        maker.order = ["h"]
        out = BareSwitch(build_program(maker.json())).through(data + bytes(8)).frame
        assert int.from_bytes(out[-8:], "big") == digest


def test_base_and_maximum() -> None:
    maker = make.ProgramMaker()
    maker.add_header("h", [["a", 16, False], ["max", 16, False], ["r", 32, False]])
    maker.add("calculations", name="c", algo="identity", input=[make.field("h", "a")])
    maker.states = [make.state("start", [make.extract("h")])]
    name = make.named("calculation", "c")
    maker.run(
        [
            make.call(
                "modify_field_with_hash_based_offset",
                make.field("h", "r"),
                make.constant(100),
                name,
                make.field("h", "max"),
            )
        ]
    )
    maker.order = ["h"]
    switch = BareSwitch(build_program(maker.json()))
    for value, maximum, wanted in ((77, 10, 107), (77, 1, 100), (77, 0, 100), (77, 1000, 177)):
        out = switch.through(field_bits([(value, 16), (maximum, 16), (0, 32)])).frame
        assert int.from_bytes(out[4:], "big") == wanted
