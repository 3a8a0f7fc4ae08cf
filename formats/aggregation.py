"""Aggregation's packet (p4src/include/aggregation/gradient.p4), and what its controller, hosts and experiments share.

    Ethernet / IPv4 / UDP, destination port 0x4742 / Gradient, 28 bytes / lanes

A fragment of a gradient, of a partial sum (PARTIAL) or of the global sum (ACK), or a request (NACK). The packet
carries the whole choice of where it is summed, its designation. The UDP source port repeats switch_number for
switches that can match nothing deeper, and is 0x4742 when there is none and in ACKs of the server. magnitude: no
lane's absolute value is larger. On an ACK: the global sum is lane * 2^magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Annotated, Literal

from pydantic import ConfigDict
from pydantic import Field as Limits

from gradbed.formats.header import Field, Header

GRADIENT_PORT = 0x4742
MAX_WORKERS = 64
"""Of a job: a gradient packet has one bit for each."""
MAX_MAGNITUDE = (1 << 31) - 1
"""Switches add packets as long as the magnitudes of what they add are together no larger: no lane wraps."""

SlotPolicy = Literal["dynamic", "static"]
"""dynamic: all jobs share all slots, and a hash of job and packet number selects one (ATP). static: each job has a
range of its own, in which packet numbers take turns (SwitchML)."""


class Flags(IntFlag):
    """Bits of the gradient header's flags field."""

    ACK = 0x01
    """From the server: the lanes are the global sum."""
    RESEND = 0x02
    """The worker has sent this fragment before and heard nothing, or was asked for it by a NACK. On an ACK: the sum
    is due to such a packet, by which it became complete or was asked for again."""
    PARTIAL = 0x04
    """The lanes are a sum made in a switch."""
    NACK = 0x08
    """Together with ACK, and without lanes: the server asks one worker for its own gradient, past all switches."""
    CONGESTION = 0x10
    """A packet that went into the sum was marked CE on its way. On an ACK: one that went into the global sum was."""
    OVERFLOW = 0x20
    """A switch did not add this packet, since a lane of the sum might have left int32; no other switch tries."""
    RETRY = 0x40
    """The worker sends this fragment again, in case it was lost: switches add it as if it were the first time, and
    send a complete sum again; none gives up an incomplete one, as RESEND demands."""
    LATE = 0x80
    """The worker sends this fragment for the first time, but was held up by the repair of others. No switch looks."""


GRADIENT = Header(
    "Gradient",
    (
        Field("version", 8, 2, constant=True),
        Field("flags", 8, words=Flags),
        Field("job", 16),
        Field("packet_number", 32),
        Field("switch_number", 16),
        Field("fan_in", 16),
        Field("next_switch", 16),
        Field("next_fan_in", 16),
        Field("worker_bitmap", 64),
        Field("magnitude", 32),
    ),
    GRADIENT_PORT,
)

SwitchNumber = Annotated[int, Limits(ge=0, le=0xFFFF)]
FanIn = Annotated[int, Limits(ge=0, le=MAX_WORKERS)]


@dataclass(frozen=True)
class Designation:
    """The switches that sum a gradient on its way: the label of one worker's packet of one fragment."""

    switch_number: SwitchNumber = 0
    """The designated switch; 0: none, the packet goes straight to the server."""
    fan_in: FanIn = 0
    """Number of workers whose gradients that switch waits for."""
    next_switch: SwitchNumber = 0
    """The switch that sums next, for the sum or a packet that the first switch could not take: the server's
    top-of-rack switch, or 0 for the server itself."""
    next_fan_in: FanIn = 0
    """Number of workers whose gradients, alone or in sums, the next switch waits for."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        if self.next_switch and not self.switch_number:
            raise ValueError("a gradient without a designated switch has no second one")
        for switch, fan_in in ((self.switch_number, self.fan_in), (self.next_switch, self.next_fan_in)):
            if (switch == 0) != (fan_in == 0):
                raise ValueError(f"switch {switch} cannot wait for {fan_in} workers")
            if switch == GRADIENT_PORT:
                # Its packets would look like those without a designated switch.
                raise ValueError(f"no switch may have the number {GRADIENT_PORT}, the UDP port of gradients")


DIRECT = Designation()
"""Straight to the server."""
