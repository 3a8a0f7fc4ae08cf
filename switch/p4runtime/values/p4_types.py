"""Types that P4Info names: what a user-defined type means for the values that a controller sends.

P4Runtime specification 1.4, sections "User-defined types" and "P4 Type Specifications in p4info.proto".
"""

from __future__ import annotations

from typing import Any, Protocol

from gradbed.switch.p4runtime.values import bytestrings
from gradbed.switch.p4runtime.values.translation import Translations

# Of a value that no program uses, when the controller has no width for it either.
_UNUSED_WIDTH_BITS = 32


class ValueCodec(Protocol):
    """Values of one type: a byte string to the controller, a number to the data plane."""

    def decode(self, data: bytes) -> int:
        """Raises RequestError."""

    def encode(self, value: int) -> bytes: ...


class Number:
    """Values that are numbers to both."""

    encode = staticmethod(bytestrings.encode)

    def __init__(self, width_bits: int) -> None:
        self._width_bits = width_bits

    def decode(self, data: bytes) -> int:
        return bytestrings.decode(data, self._width_bits)


def is_string(described: Any, type_info: Any) -> bool:
    """Whether controllers name the values by strings."""
    translated = _translated_type(described, type_info)
    return translated is not None and translated.HasField("sdn_string")


def controller_width_bits(described: Any, type_info: Any, otherwise_bits: int | None = None) -> int:
    """Width of a match field, action parameter or packet metadata that is a number to the controller.

    `described` has bitwidth and type_name; `otherwise_bits` is for those that P4Info has no width for.
    Raises ValueError.
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
    """For what has bitwidth and type_name; a value has to fit in both widths. Raises ValueError.

    `device_width_bits`: None where the data plane does not have the value.
    """
    if is_string(described, type_info):
        translated: Any = _translated_type(described, type_info)
        return translations.names(described.type_name.name, translated.uri, device_width_bits or _UNUSED_WIDTH_BITS)
    width_bits = controller_width_bits(described, type_info)
    return Number(width_bits if device_width_bits is None else min(width_bits, device_width_bits))


def is_translated(described: Any, type_info: Any) -> bool:
    return _translated_type(described, type_info) is not None


def _translated_type(described: Any, type_info: Any) -> Any | None:
    type_name = described.type_name.name
    if not type_name or type_name not in type_info.new_types:
        return None
    new_type = type_info.new_types[type_name]
    return new_type.translated_type if new_type.HasField("translated_type") else None
