"""What a gradient packet is told about its way: where it is summed, and where the sum is summed again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Designation:
    """The labels of one fragment's packet from one worker, as they stand in the gradient header.

    switch_number: the switch that sums the fragment; 0: none, the packet goes straight to the server.
    fan_in: how many workers' gradients that switch waits for.
    next_switch: where the sum, or a packet that the first switch could not take, is summed next: the server's
    top-of-rack switch, or 0 for the server itself.
    next_fan_in: how many workers' gradients, alone or in sums, the next switch waits for.
    """

    switch_number: int
    fan_in: int
    next_switch: int = 0
    next_fan_in: int = 0


STRAIGHT_TO_SERVER = Designation(switch_number=0, fan_in=0)
