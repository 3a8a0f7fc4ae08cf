"""The packet of ring all-reduce as a Scapy layer. Import this module, and Scapy dissects such packets by itself."""

from __future__ import annotations

from scapy.packet import Packet

from gradbed.formats.ring import RING
from gradbed.hosts.protocols.layers import LanesField, bind_to_udp, layer_fields


class Ring(Packet):  # type: ignore[misc]
    """A fragment on its way to the next worker, or an acknowledgement on its way back (formats/ring.py)."""

    name = RING.name
    fields_desc = [*layer_fields(RING), LanesField()]  # noqa: RUF012 - Scapy's own idiom


bind_to_udp(RING, [Ring], Ring)
