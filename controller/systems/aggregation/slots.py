"""Who may use which aggregation slots of a switch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradbed.common.errors import UserError

DEFAULT_SLOTS = 4096
"""SLOTS of p4src/include/aggregation/slots.p4 when nobody says otherwise."""


@dataclass(frozen=True)
class SlotRange:
    """Slots first_slot to first_slot + slots - 1 of a switch."""

    first_slot: int
    slots: int

    @property
    def end(self) -> int:
        return self.first_slot + self.slots


def free_range(switch: str, slots: int, wanted: int, taken: Iterable[SlotRange]) -> SlotRange:
    """The first gap of `wanted` slots among the `slots` of a switch; UserError if there is none."""
    first = 0
    held = sorted(taken, key=lambda each: each.first_slot)
    for each in held:
        if each.first_slot - first >= wanted:
            break
        first = each.end
    if first + wanted > slots:
        free = slots - sum(each.slots for each in held)
        raise UserError(
            f"no slots left at {switch}: the job asks for {wanted} in a row, {free} of {slots} are free; "
            "ask for fewer, end another job, or share them (slot policy dynamic)"
        )
    return SlotRange(first, wanted)
