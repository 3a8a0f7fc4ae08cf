from __future__ import annotations

from collections.abc import Callable

import pytest
from finsy.proto import p4d, p4t
from hypothesis import given
from hypothesis import strategies as st

from gradbed.switch.p4runtime.status import RequestError, StatusCode
from gradbed.switch.p4runtime.values import (
    Translations,
    cell_codec,
    decode_signed,
    decode_unsigned,
    encode_signed,
    encode_unsigned,
)


@given(st.data())
def test_unsigned_round_trip(data: st.DataObject) -> None:
    width_bits = data.draw(st.integers(1, 300))
    value = data.draw(st.integers(0, (1 << width_bits) - 1))
    text = encode_unsigned(value)
    assert len(text) == max(1, -(-value.bit_length() // 8))
    assert decode_unsigned(text, width_bits) == value
    padding = bytes(data.draw(st.integers(0, 40)))
    assert decode_unsigned(padding + text, width_bits) == value


@pytest.mark.parametrize("decode", [decode_unsigned, decode_signed])
def test_no_value_is_empty(decode: Callable[[bytes, int], int]) -> None:
    """P4Runtime specification, "Bytestrings": at least one byte."""
    with pytest.raises(RequestError) as caught:
        decode(b"", 16)
    assert caught.value.code == StatusCode.INVALID_ARGUMENT


@given(st.data())
def test_signed_round_trip(data: st.DataObject) -> None:
    width_bits = data.draw(st.integers(1, 300))
    value = data.draw(st.integers(-(1 << (width_bits - 1)), (1 << (width_bits - 1)) - 1))
    text = encode_signed(value)
    assert decode_signed(text, width_bits) == value
    sign = b"\xff" if value < 0 else b"\x00"
    assert decode_signed(sign * 3 + text, width_bits) == value
    # Shortest: a byte less would change the value.
    assert len(text) == 1 or int.from_bytes(text[1:], "big", signed=True) != value


# The specification's tables "Examples of Valid Bytestring Encoding" and "Examples of Invalid Bytestring Encoding".
@pytest.mark.parametrize(
    ("width_bits", "text", "value"),
    [
        (8, b"\x63", 99),
        (16, b"\x00\x63", 99),
        (16, b"\x30\x64", 12388),
        (16, b"\x00\x30\x64", 12388),
        (12, b"\x00\x00\x63", 99),
        (8, b"\x01\x63", None),
        (16, b"\x01\x00\x63", None),
        (12, b"\x10\x63", None),
        (12, b"\x01\x00\x63", None),
        (12, b"\x00\x40\x63", None),
    ],
)
def test_unsigned_examples(width_bits: int, text: bytes, value: int | None) -> None:
    if value is not None:
        assert decode_unsigned(text, width_bits) == value
        return
    with pytest.raises(RequestError) as caught:
        decode_unsigned(text, width_bits)
    assert caught.value.code == StatusCode.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("width_bits", "text", "value", "canonical"),
    [
        (8, b"\x63", 99, True),
        (8, b"\x9d", -99, True),
        (8, b"\xff\x9d", -99, False),
        (12, b"\xfd\x1d", -739, True),
        (16, b"\x00\x00", 0, False),
        (16, b"\x00", 0, True),
        (8, b"\x00\x9d", None, False),
        (12, b"\x8d\x1d", None, False),
    ],
)
def test_signed_examples(width_bits: int, text: bytes, value: int | None, canonical: bool) -> None:
    if value is not None:
        assert decode_signed(text, width_bits) == value
        assert (encode_signed(value) == text) is canonical
        return
    with pytest.raises(RequestError) as caught:
        decode_signed(text, width_bits)
    assert caught.value.code == StatusCode.OUT_OF_RANGE


def named(kind: str, name: str) -> p4t.P4DataTypeSpec:
    return p4t.P4DataTypeSpec(**{kind: p4t.P4NamedType(name=name)})


def type_info() -> p4t.P4TypeInfo:
    info = p4t.P4TypeInfo()
    info.new_types["Plain"].original_type.bitstring.bit.bitwidth = 9
    info.new_types["Port"].translated_type.sdn_bitwidth = 32
    info.new_types["Loop"].original_type.new_type.name = "Loop"
    info.serializable_enums["Kind"].underlying_type.bitwidth = 8
    return info


def test_cells_of_named_types() -> None:
    for kind, name, width_bits, oneof in (
        ("new_type", "Plain", 9, "bitstring"),
        ("new_type", "Port", 9, "bitstring"),
        ("serializable_enum", "Kind", 8, "enum_value"),
    ):
        cell = cell_codec(named(kind, name), type_info(), width_bits, Translations())
        data = p4d.P4Data()
        cell.encode(0xA5, data)
        assert data == p4d.P4Data(**{oneof: b"\xa5"})
        assert cell.decode(data) == 0xA5
        with pytest.raises(RequestError):
            cell.decode(p4d.P4Data(**{oneof: b"\x02\x00"}))


@pytest.mark.parametrize("name", ["Loop", "Missing"])
def test_types_that_registers_do_not_have(name: str) -> None:
    with pytest.raises(ValueError, match="no values of type"):
        cell_codec(named("new_type", name), type_info(), 9, Translations())
