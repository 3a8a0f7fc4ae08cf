"""The aggregation service: which switches sum a job's gradients, and with which slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gradbed.common.errors import UserError
from gradbed.controller.core.service import Service
from gradbed.controller.planning.entries import congestion_plan
from gradbed.controller.planning.plan import Plan, TableEntry
from gradbed.controller.systems.aggregation.job_plan import (
    AGGREGATION_PROGRAM,
    DEFAULT_SLOTS,
    Acknowledgement,
    AggregationJob,
    JobPlan,
    SlotRange,
    choose_job,
    free_range,
    job_plan,
    plain_designated_route,
)
from gradbed.controller.systems.aggregation.placement.options import PlannerOptions
from gradbed.controller.systems.aggregation.placement.planner import SharedPathPlacement
from gradbed.formats.addresses import MulticastAddress
from gradbed.formats.aggregation import Designation, SlotPolicy

# ---- Requests and answers of the REST interface; the examples are on star:2 ----

_REQUEST_EXAMPLE: dict[str, Any] = {"workers": ["h2"], "server": "h1", "placement": "shared-path"}
_ANSWER_EXAMPLE: dict[str, Any] = {
    "job": 1,
    "designations": [[{"switch_number": 1, "fan_in": 1, "next_switch": 0, "next_fan_in": 0}]],
    "designated_switches": [1],
    "slot_policy": "dynamic",
    "slots": 4096,
    "acknowledgement": "multicast",
    "multicast": [{"ip": "239.66.0.16", "mac": "01:00:5e:42:00:10"}],
}
_LISTED_EXAMPLE: dict[str, Any] = {
    **_ANSWER_EXAMPLE,
    "workers": _REQUEST_EXAMPLE["workers"],
    "server": _REQUEST_EXAMPLE["server"],
    "slot_ranges": {"s1": {"first_slot": 0, "slots": 4096}},
}


class AggregationSettings(BaseModel):
    """Settings of the service."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slots: int = Field(default=DEFAULT_SLOTS, ge=1)
    """Slots of every switch."""
    congestion_packets: int | None = Field(default=None, ge=1)
    """Packets in a queue from which on switches mark congestion; null: they never do."""


class AggregationJobRequest(PlannerOptions):
    """A job to add. Without a placement the controller uses shared-path."""

    model_config = ConfigDict(json_schema_extra={"example": _REQUEST_EXAMPLE})

    workers: Annotated[list[str], Field(min_length=1)]
    server: str
    slot_policy: SlotPolicy = "dynamic"
    slots: Annotated[int, Field(ge=1)] | None = None
    """With slot policy static, the slots that the job has for itself in each of its switches; null: all."""


class NewJob(BaseModel):
    """The answer to a new job: what its agents need to know."""

    model_config = ConfigDict(json_schema_extra={"example": _ANSWER_EXAMPLE})

    job: int
    designations: list[list[Designation]]
    """For each worker, in the order of the request, the labels that its packets take in turn."""
    designated_switches: list[int]
    """Numbers of all switches that sum."""
    slot_policy: SlotPolicy
    slots: int | None
    """The smallest number of slots that the job has, or shares, in any of these switches; null without any."""
    acknowledgement: Acknowledgement
    multicast: list[MulticastAddress]
    """Multicast addresses of the fragments' ACKs, taken in turn; empty if ACKs are unicast."""


class ListedJob(NewJob):
    """A job in the list of jobs, with the hosts that take part and its slots by switch."""

    model_config = ConfigDict(json_schema_extra={"example": _LISTED_EXAMPLE})

    workers: list[str]
    server: str
    slot_ranges: dict[str, SlotRange]


def new_job(plan: JobPlan) -> NewJob:
    """Return the answer to a new job."""
    job = plan.job
    return NewJob(
        job=plan.number,
        designations=[list(job.designations[worker]) for worker in job.workers],
        designated_switches=list(job.designated_switches),
        slot_policy=job.slot_policy,
        slots=min((each.slots for each in job.slot_ranges.values()), default=None),
        acknowledgement=plan.acknowledgement,
        multicast=[ack.address for ack in plan.ack_trees],
    )


def listed_job(plan: JobPlan) -> ListedJob:
    """Return a job as the list of jobs shows it."""
    job = plan.job
    return ListedJob(
        **dict(new_job(plan)), workers=list(job.workers), server=job.server, slot_ranges=dict(job.slot_ranges)
    )


# ---- The service ----


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
