"""The shuffle's part of the controller: makes the schedule of a shuffle, and what switches hold for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gradbed.common.errors import UserError
from gradbed.controller.core.service import Service
from gradbed.controller.planning.multicast import GROUPS_PER_JOB, LAST_GROUP
from gradbed.controller.planning.plan import Plan, TableEntry
from gradbed.controller.systems.shuffle.delivery import (
    MAX_BIFT_ID,
    PROGRAM,
    choose_deliveries,
    shuffle_plan,
)
from gradbed.controller.systems.shuffle.messages import (
    ListedShuffle,
    NewShuffle,
    ShuffleJob,
    ShuffleRequest,
    ShuffleSettings,
)
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.schedule import check_schedule, with_trees_chosen
from gradbed.controller.systems.shuffle.scheduling.schedulers import scheduler_named
from gradbed.controller.systems.shuffle.scheduling.trees import Trees


class ShuffleService(Service[ShuffleSettings, ShuffleRequest, ShuffleJob, NewShuffle]):
    """Implements gradbed.controller.core.service.Service."""

    Settings = ShuffleSettings
    Request = ShuffleRequest
    State = ShuffleJob
    Answer = NewShuffle
    Listed = ListedShuffle
    programs: Collection[str] = (PROGRAM,)

    def admit(self, number: int, request: ShuffleRequest, others: Mapping[int, ShuffleJob]) -> ShuffleJob:
        instance = ShuffleInstance(
            request.workers, request.sizes_bytes, request.stored, request.needed, request.master
        )
        if request.multicast == "bit-string" and len(instance.workers) > self.settings.bits:
            raise UserError(
                f"{len(instance.workers)} workers do not fit bit strings of {self.settings.bits} bits: take longer "
                "ones, or multicast by groups"
            )
        trees = Trees(self.topology, instance.hosts, request.variants)
        schedule = scheduler_named(request.scheduler, request.timing).schedule(instance, trees, request.seed)
        schedule = with_trees_chosen(schedule, instance, trees, request.tree_choice, request.seed)
        check_schedule(instance, schedule, self.topology)
        first_bift_id = max((job.first_bift_id + len(job.schedule.trees) for job in others.values()), default=1)
        if first_bift_id + len(schedule.trees) - 1 > MAX_BIFT_ID:
            raise UserError(f"there are no {len(schedule.trees)} numbers of trees left: end a shuffle first")
        first_address = max((job.first_address + job.addresses for job in others.values()), default=0)
        deliveries, addresses = choose_deliveries(
            self.topology,
            self.routes,
            instance,
            schedule,
            request.multicast,
            request.unicast,
            first_bift_id,
            first_address,
        )
        groups = len(schedule.trees) + addresses
        first_group = min((job.first_group - job.groups for job in others.values()), default=LAST_GROUP)
        if first_group - groups < GROUPS_PER_JOB * (number + 1):
            raise UserError(
                f"{groups} multicast groups are more than are left: choose multicast by bit string, or end a shuffle"
            )
        return ShuffleJob(
            instance=instance,
            schedule=schedule,
            deliveries=deliveries,
            first_bift_id=first_bift_id,
            first_address=first_address,
            addresses=addresses,
            first_group=first_group,
            groups=groups,
        )

    def plan(self, number: int, state: ShuffleJob) -> Plan:
        return shuffle_plan(self.topology, state)

    def answer(self, number: int, state: ShuffleJob) -> NewShuffle:
        return NewShuffle(
            job=number,
            bits=self.settings.bits,
            hops=state.schedule.hops,
            schedule=state.schedule,
            deliveries=state.deliveries,
            first_bift_id=state.first_bift_id,
        )

    def listed(self, number: int, state: ShuffleJob) -> ListedShuffle:
        return ListedShuffle(
            job=number,
            workers=state.instance.workers,
            scheduler=state.schedule.scheduler,
            transmissions=len(state.schedule.transmissions),
            hops=state.schedule.hops,
        )

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        if entry.table == "multicast_routes":
            return entry
        raise UserError(f"{switch} only forwards, so it cannot send copies by bit string: take multicast by groups")
