"""All schedulers by name."""

from __future__ import annotations

from collections.abc import Mapping

from controller.systems.shuffle.scheduling.exact import Exact
from controller.systems.shuffle.scheduling.hop_aware import HopAware
from controller.systems.shuffle.scheduling.improved import Improved
from controller.systems.shuffle.scheduling.largest_cluster import LargestCluster
from controller.systems.shuffle.scheduling.schedule import Scheduler
from controller.systems.shuffle.scheduling.unicast import Unicast
from switch.errors import UserError

SCHEDULERS: Mapping[str, Scheduler] = {
    scheduler.name: scheduler
    for scheduler in (
        Unicast(nearest=False),
        Unicast(nearest=True),
        LargestCluster(master=True),
        LargestCluster(),
        HopAware(),
        HopAware(count_loans=True),
        Improved(),
        Exact(),
    )
}


def scheduler_named(name: str) -> Scheduler:
    """UserError if there is none of that name."""
    try:
        return SCHEDULERS[name]
    except KeyError:
        raise UserError(f"there is no scheduler {name!r}: choose of {', '.join(SCHEDULERS)}") from None
