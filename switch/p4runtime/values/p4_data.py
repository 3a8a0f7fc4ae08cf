"""Cells of registers and messages of digests as P4Data.

P4Runtime specification 1.4, section "Representation of Arbitrary P4 Types".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from gradbed.switch.p4runtime.values import bytestrings
from gradbed.switch.p4runtime.values.status import invalid
from gradbed.switch.p4runtime.values.translation import Names, Translations


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


class NamedCell(CellCodec):
    """A type that controllers name by strings."""

    oneof = "bitstring"

    def __init__(self, width_bits: int, names: Names) -> None:
        super().__init__(width_bits)
        self._names = names

    def _decode(self, data: Any) -> int:
        return self._names.decode(data.bitstring)

    def encode(self, value: int, data: Any) -> None:
        data.bitstring = self._names.encode(value)


def cell_codec(spec: Any, type_info: Any, device_width_bits: int, translations: Translations) -> CellCodec:
    """For a P4DataTypeSpec and the width of the cells in the BMv2 JSON.

    A type that is translated for the controller has another width there: a value has to fit in both.
    Raises ValueError for types that do not fit in a cell.
    """
    form = spec.WhichOneof("type_spec")
    if form == "new_type" and spec.new_type.name in type_info.new_types:
        new_type = type_info.new_types[spec.new_type.name]
        translated = new_type.translated_type
        if translated.HasField("sdn_string"):
            names = translations.names(spec.new_type.name, translated.uri, device_width_bits)
            return NamedCell(device_width_bits, names)
        if translated.sdn_bitwidth > 0:
            return UnsignedCell(min(translated.sdn_bitwidth, device_width_bits))
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
        raise ValueError(f"this switch has no values of type {form or 'unknown'}")
    if width_bits != device_width_bits:
        raise ValueError(f"values have {width_bits} bits in the P4Info, {device_width_bits} in the BMv2 JSON")
    return codec(width_bits)


class DataCodec(Protocol):
    """A type that may hold others: the values of its cells, in order, to P4Data."""

    def encode(self, values: Iterator[int], data: Any) -> None: ...


class CellData:
    def __init__(self, cell: CellCodec) -> None:
        self._cell = cell

    def encode(self, values: Iterator[int], data: Any) -> None:
        self._cell.encode(next(values), data)


class MembersData:
    """A struct or tuple."""

    def __init__(self, form: str, members: Sequence[DataCodec]) -> None:
        self._form = form
        self._members = members

    def encode(self, values: Iterator[int], data: Any) -> None:
        holder = getattr(data, self._form)
        holder.SetInParent()
        for member in self._members:
            member.encode(values, holder.members.add())


def data_codec(spec: Any, type_info: Any, device_widths_bits: Iterator[int], translations: Translations) -> DataCodec:
    """For a P4DataTypeSpec, and the widths of all that the data plane sends of it. Raises ValueError."""
    codec = _data_codec(spec, type_info, device_widths_bits, translations)
    if next(device_widths_bits, None) is not None:
        raise ValueError("the type has fewer members in the P4Info than in the BMv2 JSON")
    return codec


def _data_codec(
    spec: Any, type_info: Any, device_widths_bits: Iterator[int], translations: Translations
) -> DataCodec:
    form = spec.WhichOneof("type_spec")
    if form == "struct" and spec.struct.name in type_info.structs:
        members = [member.type_spec for member in type_info.structs[spec.struct.name].members]
    elif form == "tuple":
        members = list(spec.tuple.members)
    else:
        width_bits = next(device_widths_bits, None)
        if width_bits is None:
            raise ValueError("the type has more members in the P4Info than in the BMv2 JSON")
        return CellData(cell_codec(spec, type_info, width_bits, translations))
    return MembersData(form, [_data_codec(m, type_info, device_widths_bits, translations) for m in members])
