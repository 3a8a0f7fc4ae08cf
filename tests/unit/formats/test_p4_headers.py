"""The headers and numbers of the P4 programs are those of the tables in formats/, bit by bit."""

from __future__ import annotations

import re
from enum import IntFlag
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gradbed.formats import aggregation, compression, datagram, encoding, lanes, ndn, shuffle, tlv
from gradbed.formats.header import Header
from gradbed.switch.compiler import compile_p4

SOURCES = Path(__file__).parents[3] / "p4src"
Bits = list[tuple[str, int]]
"""Names and widths of fields, in the order on the wire."""


@cache
def compiled(program: str) -> Any:
    return compile_p4(SOURCES / f"{program}.p4", defines={"LANES": "64"} if program in ("aggregation", "ndn") else {})


def of_program(program: str, name: str) -> Bits:
    (found,) = (each for each in compiled(program).json["header_types"] if each["name"] == name)
    return [(field, bits) for field, bits, _ in found["fields"]]


IN_P4 = {"ACK": "acknowledgement", "NACK": "negative"}


def of_table(header: Header) -> Bits:
    """A byte of flags as the bits that have a name, and what is in front of them."""
    found: Bits = []
    for field in header.fields:
        if field.words is None or not issubclass(field.words, IntFlag):
            found.append((field.name, field.bits))
            continue
        flags = sorted(field.words, reverse=True)
        assert [flag.value for flag in flags] == [1 << bit for bit in reversed(range(len(flags)))]
        found += [("", field.bits - len(flags))] if len(flags) < field.bits else []
        found += [(IN_P4.get(str(flag.name), str(flag.name).lower()), 1) for flag in flags]
    return found


@pytest.mark.parametrize(
    ("program", "name", "header", "behind"),
    [
        ("aggregation", "gradient_t", aggregation.GRADIENT, []),
        ("multicast", "coded_t", shuffle.CODED, [("bit_string", 128)]),
    ],
)
def test_fields_have_the_same_names_and_widths(program: str, name: str, header: Header, behind: Bits) -> None:
    table = of_table(header)
    found = [("" if field in ("reserved", "unused") else field, bits) for field, bits in of_program(program, name)]
    assert found == [*table, *behind]


@pytest.mark.parametrize("header", [compression.PART, compression.ACKNOWLEDGEMENT])
def test_switches_know_what_parts_and_acknowledgements_begin_with(header: Header) -> None:
    found = [("" if field == "unused" else field, bits) for field, bits in of_program("compression", "part_t")]
    assert found == of_table(header)[: len(found)] and len(found) == 7


@pytest.mark.parametrize("program", ["aggregation", "compression", "multicast", "ndn"])
@pytest.mark.parametrize(
    ("name", "header"), [("ethernet_t", datagram.ETHERNET), ("ipv4_t", datagram.IPV4), ("udp_t", datagram.UDP)]
)
def test_a_field_is_one_or_several_of_the_programs(program: str, name: str, header: Header) -> None:
    """Such as version and header length, which are one byte in the table."""
    if (program, name) == ("ndn", "udp_t"):
        return
    widths = [bits for _, bits in of_program(program, name)]
    for field in header.fields:
        bits = 0
        while bits < field.bits:
            bits += widths.pop(0)
        assert bits == field.bits, field.name
    assert widths == []


NUMBERS = {
    ".": {
        "ETHER_TYPE_IPV4": datagram.ETHER_TYPE_IPV4,
        "PROTOCOL_UDP": datagram.PROTOCOL_UDP,
        "ECN_NOT_ECT": datagram.NOT_ECT,
        "ECN_CE": datagram.CE,
    },
    "aggregation": {
        "GRADIENT_PORT": aggregation.GRADIENT.udp_port,
        "GRADIENT_VERSION": aggregation.GRADIENT.fields[0].default,
        "MAX_MAGNITUDE": aggregation.MAX_MAGNITUDE,
    },
    "compression": {
        "PART_PORT": compression.PART.udp_port,
        "PART_VERSION": compression.PART.fields[0].default,
    },
    "shuffle": {"CODED_PORT": shuffle.CODED.udp_port, "CODED_VERSION": shuffle.CODED.fields[0].default},
    "ndn": {
        "ETHER_TYPE_NDN": ndn.ETHER_TYPE,
        "TYPE_INTEREST": tlv.INTEREST,
        "TYPE_DATA": tlv.DATA,
        "TYPE_NAME": tlv.NAME,
        "MOST_COMPONENT_BYTES": ndn.MOST_COMPONENT_BYTES,
        "COMPONENT_INSERT": int.from_bytes(ndn.INSERT, "big"),
        "COMPONENT_DELETE": int.from_bytes(ndn.DELETE, "big"),
        "COMPONENT_DISTRIBUTE": int.from_bytes(ndn.DISTRIBUTE, "big"),
        "NULL_SIGNATURE": int.from_bytes(tlv.NULL_SIGNATURE, "big"),
        "EMPTY_CONTENT": tlv.CONTENT << 8,
        "SEGMENT": tlv.SEGMENT << 8,
        "VERSION": tlv.VERSION << 8,
        "NONCE_TYPE_AND_LENGTH": tlv.NONCE << 8 | 4,
    },
}
"""Constants of the files in a folder of p4src/include."""


@pytest.mark.parametrize("folder", NUMBERS)
def test_constants_are_the_same_numbers(folder: str) -> None:
    text = "".join(file.read_text() for file in sorted((SOURCES / "include" / folder).glob("*.p4")))
    found = {name: int(number, 0) for name, number in re.findall(r"const bit<\d+> (\w+) = (\w+);", text)}
    assert {name: found.get(name) for name in NUMBERS[folder]} == NUMBERS[folder]


def test_lengths_and_limits_are_those_of_the_programs() -> None:
    text = (SOURCES / "include" / "lanes.p4").read_text()
    assert f"#define LANES {lanes.MAX_LANES}\n" in text
    multiple = lanes.LANE_MULTIPLE
    assert f"#if LANES < {multiple} || LANES > {lanes.MAX_LANES} || LANES % {multiple} != 0" in text
    assert aggregation.GRADIENT.size_bytes == lanes.LANES_HEADER_BYTES
    assert dict(of_program("aggregation", "gradient_t"))["worker_bitmap"] == aggregation.MAX_WORKERS
    components = [each for each in compiled("ndn").json["headers"] if each["header_type"] == "component_t"]
    assert len(components) == ndn.MOST_COMPONENTS
    assert encoding.PAYLOAD_BYTES + compression.PART.size_bytes + datagram.DATAGRAM_BYTES <= datagram.MAX_FRAME_BYTES
