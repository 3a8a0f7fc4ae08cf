"""Packet numbers, which wrap around after 2^32."""

from __future__ import annotations

PACKET_NUMBERS = 1 << 32


def forward_distance(start: int, number: int) -> int:
    """How far `number` lies ahead of `start`, in 0 .. 2^32 - 1."""
    return (number - start) % PACKET_NUMBERS
