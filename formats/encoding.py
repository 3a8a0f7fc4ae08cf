"""How a part of a compressed gradient is written into a packet (gradbed.hosts.compressors.content)."""

from __future__ import annotations

from enum import IntEnum

PAYLOAD_BYTES = 1408
"""Of a packet at most."""


class Form(IntEnum):
    """A form of encoding, in the order in which the shorter of two equally long ones is taken."""

    DENSE = 0
    BITMAP = 1
    COORDINATE = 2
