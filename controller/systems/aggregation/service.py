"""Aggregation's part of the controller: which switches sum a job's gradients, with which slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradbed.common.errors import UserError
from gradbed.controller.core.service import Service
from gradbed.controller.planning.entries import congestion_plan
from gradbed.controller.planning.plan import Plan, TableEntry
from gradbed.controller.systems.aggregation.entries import (
    AGGREGATION_PROGRAM,
    SlotRange,
    free_range,
    plain_designated_route,
)
from gradbed.controller.systems.aggregation.job_plan import AggregationJob, JobPlan, choose_job, job_plan
from gradbed.controller.systems.aggregation.messages import (
    AggregationJobRequest,
    AggregationSettings,
    ListedJob,
    NewJob,
    listed_job,
    new_job,
)
from gradbed.controller.systems.aggregation.placement.planner import SharedPathPlacement
from gradbed.formats.aggregation import SlotPolicy


class AggregationService(Service[AggregationSettings, AggregationJobRequest, AggregationJob, NewJob]):
    """Implements gradbed.controller.core.service.Service."""

    Settings = AggregationSettings
    Request = AggregationJobRequest
    State = AggregationJob
    Answer = NewJob
    Listed = ListedJob
    programs = (AGGREGATION_PROGRAM,)

    def base(self) -> Plan:
        if self.settings.congestion_packets is None:
            return Plan(switches={})
        names = [switch.name for switch in self.topology.switches]
        return congestion_plan(self.topology, names, self.settings.congestion_packets, AGGREGATION_PROGRAM)

    def admit(
        self, number: int, request: AggregationJobRequest, others: Mapping[int, AggregationJob]
    ) -> AggregationJob:
        planner = request.planner() or SharedPathPlacement()
        slots = self.settings.slots
        job = choose_job(self.topology, self.routes, request.workers, request.server, planner, slots)
        _require_same_policy(job, request.slot_policy, others)
        if request.slot_policy == "dynamic":
            if request.slots is not None:
                raise UserError(
                    "with slot policy dynamic all jobs share all slots: ask for policy static to have some"
                )
            return job
        wanted = slots if request.slots is None else request.slots
        if not 1 <= wanted <= slots:
            raise UserError(f"a job can have 1 to {slots} slots of a switch, not {wanted}")
        ranges = {name: free_range(name, slots, wanted, _taken(name, others.values())) for name in job.slot_ranges}
        return job.model_copy(update={"slot_policy": "static", "slot_ranges": ranges})

    def plan(self, number: int, state: AggregationJob) -> Plan:
        return self._job_plan(number, state).plan

    def answer(self, number: int, state: AggregationJob) -> NewJob:
        return new_job(self._job_plan(number, state))

    def listed(self, number: int, state: AggregationJob) -> ListedJob:
        return listed_job(self._job_plan(number, state))

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        if entry.table == "multicast_routes":
            return entry
        if entry.table == "designated_routes":
            return plain_designated_route(entry)
        if entry.table == "congestion_thresholds":
            # Switches that only forward do not mark, whatever their queues hold.
            return None
        raise UserError(f"{switch} is a legacy switch, which cannot sum gradients: choose other switches")

    def _job_plan(self, number: int, job: AggregationJob) -> JobPlan:
        return job_plan(self.topology, self.routes, number, job)


def _require_same_policy(job: AggregationJob, policy: SlotPolicy, others: Mapping[int, AggregationJob]) -> None:
    for name in job.slot_ranges:
        for number, other in others.items():
            if name in other.slot_ranges and other.slot_policy != policy:
                raise UserError(
                    f"{name} serves job {number} with slot policy {other.slot_policy}: all jobs of a switch have "
                    "the same"
                )


def _taken(switch: str, jobs: Iterable[AggregationJob]) -> list[SlotRange]:
    ranges = (job.slot_ranges.get(switch) for job in jobs)
    return [each for each in ranges if each is not None]
