"""Slots of switches, and the table entries of p4src/aggregation.p4 beside those that all programs share
(controller/planning/entries.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.controller.planning.entries import udp_route
from gradbed.controller.planning.plan import TableEntry
from gradbed.formats.aggregation import GRADIENT_PORT, SlotPolicy

# ---- Who may use which slots of a switch ----


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
    """Return the first gap of `wanted` slots among the `slots` of a switch.

    Raises:
        UserError: There is none.
    """
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


# ---- Entries ----


AGGREGATION_PROGRAM = "aggregation"

RECLAIM_DISTANCE = 4096
"""A fragment this much older than another of its job has been acknowledged: workers have fewer in flight. A slot that
still holds it is given to the newer one; were its ACK only late, workers would resend and the server would sum."""


def designated_route(switch_number: int, port: int) -> TableEntry:
    """Gradient packets whose designated switch is `switch_number` leave by `port`."""
    return TableEntry(
        table="designated_routes",
        match={"hdr.gradient.switch_number": switch_number},
        action="towards_designated",
        params={"port": port},
    )


def plain_designated_route(entry: TableEntry) -> TableEntry:
    """Return what stands for a designated route where gradient headers are not known.

    The number of the designated switch is in the UDP source port, too.
    """
    (switch_number,) = entry.match.values()
    assert isinstance(switch_number, int)
    return udp_route(GRADIENT_PORT, switch_number, entry.params["port"])


def aggregation_role(job: int, switch_number: int, policy: SlotPolicy, slots: SlotRange) -> TableEntry:
    """Let the switch with `switch_number` sum the gradients of `job` that name it, in these slots of its own."""
    # With a static range no worker is further ahead than the range is long.
    distance = slots.slots if policy == "static" else RECLAIM_DISTANCE
    return TableEntry(
        table="roles",
        match={"hdr.gradient.job": job},
        action="aggregate_indexed" if policy == "static" else "aggregate_hashed",
        params={
            "switch_number": switch_number,
            "first_slot": slots.first_slot,
            "slots": slots.slots,
            "reclaim_distance": distance,
        },
    )
