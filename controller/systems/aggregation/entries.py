"""The table entries of p4src/aggregation.p4 beside those that all programs share (controller/planning/entries.py)."""

from __future__ import annotations

from gradbed.controller.planning.entries import udp_route
from gradbed.controller.planning.plan import TableEntry
from gradbed.controller.systems.aggregation.slots import SlotRange
from gradbed.formats.aggregation import GRADIENT_PORT, SlotPolicy

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
    """What stands for a designated route where gradient headers are not known: the number of the designated switch is
    in the UDP source port, too."""
    (switch_number,) = entry.match.values()
    assert isinstance(switch_number, int)
    return udp_route(GRADIENT_PORT, switch_number, entry.params["port"])


def aggregation_role(job: int, switch_number: int, policy: SlotPolicy, slots: SlotRange) -> TableEntry:
    """The switch that bears `switch_number` sums the gradients of `job` that name it, in these slots of its own."""
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
