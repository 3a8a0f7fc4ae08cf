"""Packet numbers: fragments counted over all rounds of a job, modulo 2^32."""

from __future__ import annotations

from hosts.systems.aggregation.gradient_format import PACKET_NUMBERS


def forward_distance(start: int, number: int) -> int:
    """How far `number` lies ahead of `start`, in 0 .. 2^32 - 1."""
    return (number - start) % PACKET_NUMBERS
