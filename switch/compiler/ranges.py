"""Ranges as sets of prefixes."""

from __future__ import annotations


def prefixes_of_range(first: int, last: int, width_bits: int) -> list[tuple[int, int]]:
    """The fewest (value, mask) pairs with prefix masks that together match first..last."""
    ones = (1 << width_bits) - 1
    pairs = []
    while first <= last:
        size = first & -first if first else 1 << width_bits
        while size > last - first + 1:
            size >>= 1
        pairs.append((first, ones & ~(size - 1)))
        first += size
    return pairs
