"""Lanes in a Scapy layer."""

from __future__ import annotations

import struct

from scapy.fields import FieldListField
from scapy.packet import Packet

from hosts.protocols.lanes import LANE_BYTES


class LanesField(FieldListField):  # type: ignore[misc]
    """The rest of the packet as int32. Scapy's own list field refuses more than 100 elements."""

    def getfield(self, pkt: Packet | None, s: bytes) -> tuple[bytes, list[int]]:
        count = len(s) // LANE_BYTES
        end = count * LANE_BYTES
        return s[end:], list(struct.unpack(f">{count}i", s[:end]))
