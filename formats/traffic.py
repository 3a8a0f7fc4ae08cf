"""The trailer of every frame of the traffic (gradbed.hosts.traffic): sender, receiver, number and send time.

It is at the end, since headers may come, go and change on the way.
"""

from __future__ import annotations

from gradbed.formats.header import Field, Header

TAG = 0x7A6B
WARM_UP = 1 << 15
"""In `source`: the packet is not measured."""

TRAILER = Header(
    "Trailer",
    (
        Field("tag", 16, TAG, constant=True),
        Field("source", 16),
        Field("receiver", 16),
        Field("flow", 32),
        Field("sequence", 32),
        Field("sent_ns", 64),
    ),
)
"""source, receiver: numbers of hosts. flow: of its source. sequence: in its flow, from 0. sent_ns: of the sender's
clock; the context writes it."""

TRAILER_BYTES = TRAILER.size_bytes

DISSECTED = {"warm_up": WARM_UP}
"""What the dissector has to know besides (wireshark/traffic.lua)."""
