"""Sets of small numbers as the bits of an int."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def members(bits: int) -> Iterator[int]:
    """The numbers in a set, in ascending order."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def bits_of(numbers: Iterable[int]) -> int:
    """The set of some numbers."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found
