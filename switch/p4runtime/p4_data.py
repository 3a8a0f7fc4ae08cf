"""Cells of registers as P4Data. P4Runtime specification 1.4, section "Representation of Arbitrary P4 Types"."""

from __future__ import annotations

from typing import Any

from switch.p4runtime import bytestrings
from switch.p4runtime.status import invalid


class CellCodec:
    """Values of one type: P4Data on the one side, the device's non-negative integer on the other."""

    oneof: str

    def __init__(self, width_bits: int) -> None:
        self.width_bits = width_bits

    def decode(self, data: Any) -> int:
        """Raises INVALID_ARGUMENT for data of another form, OUT_OF_RANGE for a value that is too wide."""
        form = data.WhichOneof("data")
        if form != self.oneof:
            raise invalid(f"the data is to be a {self.oneof}, got {form or 'nothing'}")
        return self._decode(data)

    def _decode(self, data: Any) -> int:
        raise NotImplementedError

    def encode(self, value: int, data: Any) -> None:
        raise NotImplementedError


class UnsignedCell(CellCodec):
    oneof = "bitstring"

    def _decode(self, data: Any) -> int:
        return bytestrings.decode(data.bitstring, self.width_bits)

    def encode(self, value: int, data: Any) -> None:
        data.bitstring = bytestrings.encode(value)


class SignedCell(CellCodec):
    oneof = "bitstring"

    def _decode(self, data: Any) -> int:
        return bytestrings.decode_signed(data.bitstring, self.width_bits) & ((1 << self.width_bits) - 1)

    def encode(self, value: int, data: Any) -> None:
        negative = value >> (self.width_bits - 1)
        data.bitstring = bytestrings.encode_signed(value - (negative << self.width_bits))


class BoolCell(CellCodec):
    oneof = "bool"

    def _decode(self, data: Any) -> int:
        return int(data.bool)

    def encode(self, value: int, data: Any) -> None:
        data.bool = bool(value)


class EnumCell(CellCodec):
    """A serializable enum: any value of the underlying type, named or not."""

    oneof = "enum_value"

    def _decode(self, data: Any) -> int:
        return bytestrings.decode(data.enum_value, self.width_bits)

    def encode(self, value: int, data: Any) -> None:
        data.enum_value = bytestrings.encode(value)


def cell_codec(spec: Any, type_info: Any, device_width_bits: int) -> CellCodec:
    """For a P4DataTypeSpec and the width of the cells in the BMv2 JSON.

    A type that is translated for the controller has another width there: a value has to fit in both.
    Raises ValueError for types that registers cannot hold.
    """
    form = spec.WhichOneof("type_spec")
    if form == "new_type" and spec.new_type.name in type_info.new_types:
        new_type = type_info.new_types[spec.new_type.name]
        if new_type.translated_type.sdn_bitwidth > 0:
            return UnsignedCell(min(new_type.translated_type.sdn_bitwidth, device_width_bits))
        spec = new_type.original_type
        form = spec.WhichOneof("type_spec")
    width_bits = 0
    codec: type[CellCodec] = UnsignedCell
    if form == "bool":
        width_bits, codec = 1, BoolCell
    elif form == "bitstring" and spec.bitstring.WhichOneof("type_spec") == "bit":
        width_bits = spec.bitstring.bit.bitwidth
    elif form == "bitstring" and spec.bitstring.WhichOneof("type_spec") == "int":
        width_bits, codec = spec.bitstring.int.bitwidth, SignedCell
    elif form == "serializable_enum" and spec.serializable_enum.name in type_info.serializable_enums:
        enum = type_info.serializable_enums[spec.serializable_enum.name]
        width_bits, codec = enum.underlying_type.bitwidth, EnumCell
    else:
        raise ValueError(f"this switch has no registers of type {form or 'unknown'}")
    if width_bits != device_width_bits:
        raise ValueError(f"cells have {width_bits} bits in the P4Info, {device_width_bits} in the BMv2 JSON")
    return codec(width_bits)
