"""The compressed gradient's packets as Scapy layers (formats/compression.py)."""

from __future__ import annotations

from scapy.packet import Packet

from gradbed.formats.compression import ACKNOWLEDGEMENT, PART, Flags
from gradbed.hosts.protocols.layers import bind_to_udp, layer_fields


class GradientPart(Packet):  # type: ignore[misc]
    """A piece of a gradient, or of the sum on its way back."""

    name = PART.name
    fields_desc = layer_fields(PART)


class Acknowledgement(Packet):  # type: ignore[misc]
    """An acknowledgement of parts that have come."""

    name = ACKNOWLEDGEMENT.name
    fields_desc = layer_fields(ACKNOWLEDGEMENT)


class _Either(Packet):  # type: ignore[misc]
    """A part or an acknowledgement, by the flag ACK."""

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: object, **kargs: object) -> type[Packet]:
        return Acknowledgement if _pkt and len(_pkt) > 1 and _pkt[1] & Flags.ACK else GradientPart


bind_to_udp(PART, [GradientPart, Acknowledgement], _Either)
