"""All schedulers by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.baselines import LargestCluster, UncodedMulticast, Unicast
from gradbed.controller.systems.shuffle.scheduling.clusters import Exact, Improved
from gradbed.controller.systems.shuffle.scheduling.hop_aware import HopAware
from gradbed.controller.systems.shuffle.scheduling.queues import Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Scheduler

SCHEDULERS: Mapping[str, Scheduler] = {
    scheduler.name: scheduler
    for scheduler in (
        Unicast(nearest=False),
        Unicast(nearest=True),
        UncodedMulticast(),
        LargestCluster(master=True),
        LargestCluster(),
        HopAware(),
        HopAware(count_loans=True),
        Improved(),
        Exact(),
    )
}


def scheduler_named(name: str, timing: Timing | None = None) -> Scheduler:
    """timing: for those that let packets wait for loans. UserError if there is none of that name."""
    try:
        found = SCHEDULERS[name]
    except KeyError:
        raise UserError(f"there is no scheduler {name!r}: choose of {', '.join(SCHEDULERS)}") from None
    return replace(found, timing=timing) if timing and isinstance(found, HopAware) else found
