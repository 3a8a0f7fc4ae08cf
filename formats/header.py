"""A header as a table of fields, of which gradbed.hosts.protocols makes the Scapy layer and the NumPy dtype.

The P4 programs have the same headers in words of their own; tests/unit/formats holds them to these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any


@dataclass(frozen=True)
class Field:
    """A number, big-endian and unsigned, or bytes if its width is that of no integer.

    default: where nobody says otherwise. constant: in every frame, and those with another value are malformed. words:
    what the bits (IntFlag) or values (IntEnum) are called.
    """

    name: str
    bits: int
    default: int = 0
    constant: bool = False
    words: type[IntFlag] | type[IntEnum] | None = None

    @property
    def is_integer(self) -> bool:
        """The field is as wide as an integer type of NumPy."""
        return self.bits in (8, 16, 32, 64)


@dataclass(frozen=True, eq=False)
class Header:
    """Fields in their order on the wire. udp_port: both ports of datagrams that carry it, if nobody says others."""

    name: str
    fields: Sequence[Field]
    udp_port: int = 0

    @property
    def size_bytes(self) -> int:
        """Length of the header in bytes."""
        return sum(field.bits for field in self.fields) // 8

    def offset_bytes(self, name: str) -> int:
        """Return the offset of a field from the header's first byte. ValueError without such a field."""
        at_bits = 0
        for field in self.fields:
            if field.name == name:
                return at_bits // 8
            at_bits += field.bits
        raise ValueError(f"{self.name} has no field {name}")

    @property
    def columns(self) -> list[Any]:
        """The same for np.dtype."""
        return [
            (field.name, f">u{field.bits // 8}") if field.is_integer else (field.name, "u1", (field.bits // 8,))
            for field in self.fields
        ]
