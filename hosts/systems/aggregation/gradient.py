"""The gradient packet as a Scapy layer. Import this module, and Scapy dissects such packets (sniff, rdpcap)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scapy.packet import Packet

from gradbed.formats.aggregation import GRADIENT, GRADIENT_PORT, Flags
from gradbed.hosts.protocols.layers import LanesField, bind_to_udp, datagram, layer_fields


class Gradient(Packet):  # type: ignore[misc]
    """A fragment of a gradient, of a partial sum or of the global sum, or a request (formats/aggregation.py)."""

    name = GRADIENT.name
    fields_desc = [*layer_fields(GRADIENT), LanesField()]  # noqa: RUF012 - Scapy's own idiom


bind_to_udp(GRADIENT, [Gradient], Gradient)


def gradient_frame(
    *,
    lanes: Sequence[int] = (),
    flags: int = 0,
    switch_number: int = 0,
    magnitude: int | None = None,
    **values: Any,
) -> Packet:
    """A whole frame as agents send it; bytes() of it gives the wire format. values: of the other fields, and
    addresses, as gradbed.hosts.protocols.layers.datagram takes them.

    magnitude: without one, the largest absolute value of the lanes, and 0 with the flag ACK.
    """
    if magnitude is None:
        magnitude = 0 if flags & Flags.ACK else max(map(abs, lanes), default=0)
    return datagram(
        Gradient,
        src_port=source_port(flags, switch_number),
        flags=flags,
        switch_number=switch_number,
        magnitude=magnitude,
        lanes=list(lanes),
        **values,
    )


def source_port(flags: int, switch_number: int) -> int:
    """The UDP source port of a packet with these flags and this designated switch."""
    return GRADIENT_PORT if flags & Flags.ACK or switch_number == 0 else switch_number
