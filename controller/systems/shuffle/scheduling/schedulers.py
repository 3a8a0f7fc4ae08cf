"""All schedulers by name: gradbed's own, and those of other packages (plug-ins of the group gradbed.schedulers)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gradbed.common.errors import UserError
from gradbed.common.plugins import load_plugin, plugin_failures, plugins
from gradbed.controller.systems.shuffle.scheduling.baselines import LargestCluster, UncodedMulticast, Unicast
from gradbed.controller.systems.shuffle.scheduling.clusters import Exact, Improved
from gradbed.controller.systems.shuffle.scheduling.hop_aware import HopAware
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, SendQueues, Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Scheduler, check_schedule
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, bits_of

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
"""gradbed's own schedulers by name."""


@dataclass(frozen=True)
class PluginScheduler:
    """A scheduler of another package: a function that yields a sender and its packet's receivers, one after the
    other.

    Each packet takes the sender's shortest tree to its receivers, and packets leave in the order in which they come.
    """

    name: str

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        plugin = load_plugin("schedulers", self.name)
        queues = SendQueues(instance, trees)
        with plugin_failures("schedulers", self.name):
            for sender, receivers in plugin(instance, trees, seed):
                hops, tree = trees.best(sender, bits_of(worker for worker, _ in receivers))
                queues.add(CodedPacket(sender, tuple(receivers), tree, hops))
            schedule = queues.schedule(self.name)
            check_schedule(instance, schedule, trees.topology)
        return schedule


def scheduler_named(name: str, timing: Timing | None = None) -> Scheduler:
    """Return the scheduler of a name. timing: for those that let packets wait for loans.

    Raises:
        UserError: There is none of that name, or the plug-in cannot be loaded.
    """
    found = SCHEDULERS.get(name)
    if found is None:
        if name not in plugins("schedulers"):
            raise UserError(
                f"there is no scheduler {name!r}: choose of {', '.join([*SCHEDULERS, *plugins('schedulers')])}"
            )
        load_plugin("schedulers", name)
        return PluginScheduler(name)
    return replace(found, timing=timing) if timing and isinstance(found, HopAware) else found
