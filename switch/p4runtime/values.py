"""Values in P4Runtime messages: byte strings, translated and user-defined types, registers and digests as P4Data.

P4Runtime specification 1.4, sections "Bytestrings", "User-defined types" and "P4 Type Specifications in
p4info.proto". What the data plane sees of a type that controllers name by strings, @p4runtime_translation(uri,
string), is the server's choice. Here a decimal number stands for itself, so that ports can be named by their numbers,
and any other string is given the first free value from 1 on when it is first used. The strings of a pipeline mean the
same in all devices that run it, so that their values can travel between switches in packets.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from gradbed.switch.p4runtime.status import exhausted, invalid, out_of_range

# ---- Byte strings: canonical (shortest) when sent, any length when received ----


def decode_unsigned(data: bytes, width_bits: int) -> int:
    """Return the value of a bit<width_bits>.

    Raises INVALID_ARGUMENT for an empty string, OUT_OF_RANGE for a value that is too wide.
    """
    if not data:
        raise invalid("a value is an empty byte string: zero is the byte 00")
    value = int.from_bytes(data, "big")
    if value >> width_bits:
        raise out_of_range(f"{value:#x} does not fit in {width_bits} bits")
    return value


def encode_unsigned(value: int) -> bytes:
    """Return the canonical string of a non-negative integer."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def decode_signed(data: bytes, width_bits: int) -> int:
    """Return the value of an int<width_bits>.

    Raises INVALID_ARGUMENT for an empty string, OUT_OF_RANGE for a value that is too wide.
    """
    if not data:
        raise invalid("a value is an empty byte string: zero is the byte 00")
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << (width_bits - 1)) <= value < 1 << (width_bits - 1):
        raise out_of_range(f"{value} does not fit in int<{width_bits}>")
    return value


def encode_signed(value: int) -> bytes:
    """Return the canonical string of an integer in two's complement."""
    magnitude = value if value >= 0 else ~value
    return value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


# ---- Types that controllers name by strings ----


class TranslatedNames:
    """The strings of one type, as a value codec. Used from several threads."""

    def __init__(self, type_name: str, width_bits: int) -> None:
        self._type_name = type_name
        self._limit = 1 << width_bits
        self._values: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._next = 1
        self._lock = threading.Lock()

    def decode(self, data: bytes) -> int:
        """Return the value that a string stands for, from now on. Raises RequestError."""
        value = self._values.get(data)
        if value is not None:
            return value
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise invalid(f"a name of type {self._type_name} is not UTF-8") from None
        if not text:
            raise invalid(f"an empty name of type {self._type_name}")
        with self._lock:
            if data not in self._values:
                self._give(data, self._number(text))
            return self._values[data]

    def encode(self, value: int) -> bytes:
        return self._names.get(value) or str(value).encode()

    def _number(self, text: str) -> int:
        """Return what a name is to stand for."""
        if text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0") and len(text) < 80:
            number = int(text)
            if number >= self._limit:
                raise out_of_range(f"{text} is too large for type {self._type_name}")
            if number in self._names:
                raise invalid(f"{text} stands for {self._names[number].decode()!r} in type {self._type_name} already")
            return number
        while self._next in self._names:
            self._next += 1
        if self._next >= self._limit:
            raise exhausted(f"type {self._type_name} has room for {self._limit - 1} names, all are in use")
        return self._next

    def _give(self, name: bytes, value: int) -> None:
        self._names[value] = name
        self._values[name] = value


class Translations:
    """The types of one program that controllers name by strings. Types with one URI share their names."""

    def __init__(self) -> None:
        self._types: dict[tuple[str, int], TranslatedNames] = {}

    def names(self, type_name: str, uri: str, width_bits: int) -> TranslatedNames:
        return self._types.setdefault((uri or type_name, width_bits), TranslatedNames(type_name, width_bits))


# ---- Types that P4Info names ----


# Of a value that no program uses, when the controller has no width for it either.
_UNUSED_WIDTH_BITS = 32


class ValueCodec(Protocol):
    """Values of one type: a byte string to the controller, a number to the data plane."""

    def decode(self, data: bytes) -> int:
        """Return the device's value. Raises RequestError."""

    def encode(self, value: int) -> bytes: ...


class NumberCodec:
    """Values that are numbers to both."""

    encode = staticmethod(encode_unsigned)

    def __init__(self, width_bits: int) -> None:
        self._width_bits = width_bits

    def decode(self, data: bytes) -> int:
        return decode_unsigned(data, self._width_bits)


def is_string(described: Any, type_info: Any) -> bool:
    """Return whether controllers name the values by strings."""
    translated = _translated_type(described, type_info)
    return translated is not None and translated.HasField("sdn_string")


def controller_width_bits(described: Any, type_info: Any, otherwise_bits: int | None = None) -> int:
    """Return the width of a match field, action parameter or packet metadata that is a number to the controller.

    Raises ValueError.

    `described`: a message with bitwidth and type_name. `otherwise_bits`: width of those that P4Info has none for.
    """
    translated = _translated_type(described, type_info)
    width_bits: int = (translated.sdn_bitwidth if translated is not None else 0) or described.bitwidth
    width_bits = width_bits or otherwise_bits or 0
    if width_bits <= 0:
        raise ValueError(f"{described.name!r} has no bit width in the P4Info")
    return width_bits


def value_codec(
    described: Any, type_info: Any, device_width_bits: int | None, translations: Translations
) -> ValueCodec:
    """Return the codec of what has bitwidth and type_name; a value has to fit in both widths. Raises ValueError.

    `device_width_bits`: None where the data plane does not have the value.
    """
    if is_string(described, type_info):
        translated: Any = _translated_type(described, type_info)
        return translations.names(described.type_name.name, translated.uri, device_width_bits or _UNUSED_WIDTH_BITS)
    width_bits = controller_width_bits(described, type_info)
    return NumberCodec(width_bits if device_width_bits is None else min(width_bits, device_width_bits))


def is_translated(described: Any, type_info: Any) -> bool:
    return _translated_type(described, type_info) is not None


def _translated_type(described: Any, type_info: Any) -> Any | None:
    type_name = described.type_name.name
    if not type_name or type_name not in type_info.new_types:
        return None
    new_type = type_info.new_types[type_name]
    return new_type.translated_type if new_type.HasField("translated_type") else None


# ---- Cells of registers and messages of digests as P4Data ----


class CellCodec:
    """Values of one type: P4Data on the one side, the device's non-negative integer on the other."""

    oneof: str

    def __init__(self, width_bits: int) -> None:
        self.width_bits = width_bits

    def decode(self, data: Any) -> int:
        """Return the device's value.

        Raises INVALID_ARGUMENT for data of another form, OUT_OF_RANGE for a value too wide.
        """
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
        return decode_unsigned(data.bitstring, self.width_bits)

    def encode(self, value: int, data: Any) -> None:
        data.bitstring = encode_unsigned(value)


class SignedCell(CellCodec):
    oneof = "bitstring"

    def _decode(self, data: Any) -> int:
        return decode_signed(data.bitstring, self.width_bits) & ((1 << self.width_bits) - 1)

    def encode(self, value: int, data: Any) -> None:
        negative = value >> (self.width_bits - 1)
        data.bitstring = encode_signed(value - (negative << self.width_bits))


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
        return decode_unsigned(data.enum_value, self.width_bits)

    def encode(self, value: int, data: Any) -> None:
        data.enum_value = encode_unsigned(value)


class NamedCell(CellCodec):
    """A type that controllers name by strings."""

    oneof = "bitstring"

    def __init__(self, width_bits: int, names: TranslatedNames) -> None:
        super().__init__(width_bits)
        self._names = names

    def _decode(self, data: Any) -> int:
        return self._names.decode(data.bitstring)

    def encode(self, value: int, data: Any) -> None:
        data.bitstring = self._names.encode(value)


def cell_codec(spec: Any, type_info: Any, device_width_bits: int, translations: Translations) -> CellCodec:
    """Return the codec of a P4DataTypeSpec and the width of the cells in the BMv2 JSON.

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
    """Return the codec of a P4DataTypeSpec, given the widths of all values that the data plane sends of it.

    Raises ValueError.
    """
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
