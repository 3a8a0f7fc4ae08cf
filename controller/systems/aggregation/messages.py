"""What is said of an aggregation job at the REST interface."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gradbed.controller.systems.aggregation.entries import DEFAULT_SLOTS, SlotRange
from gradbed.controller.systems.aggregation.job_plan import Acknowledgement, JobPlan
from gradbed.controller.systems.aggregation.placement.options import PlannerOptions
from gradbed.formats.addresses import MulticastAddress
from gradbed.formats.aggregation import Designation, SlotPolicy

# On star:2.
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
    """slots: that every switch has. congestion_packets: so many in a queue are congestion; null: never."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slots: int = Field(default=DEFAULT_SLOTS, ge=1)
    congestion_packets: int | None = Field(default=None, ge=1)


class AggregationJobRequest(PlannerOptions):
    """A job to add. Without a placement the controller takes its own. slots: how many of each of its switches the job
    gets for itself, all if null; with slot policy static alone."""

    model_config = ConfigDict(json_schema_extra={"example": _REQUEST_EXAMPLE})

    workers: Annotated[list[str], Field(min_length=1)]
    server: str
    slot_policy: SlotPolicy = "dynamic"
    slots: Annotated[int, Field(ge=1)] | None = None


class NewJob(BaseModel):
    """What a job's agents must know of the network.

    designations: for each worker, in the order of the request, the labels that its packets bear in turn.
    designated_switches: the numbers of all switches that sum. slots: the fewest that the job shares or has for itself
    at any of them, null without any. multicast: where the ACKs of fragments go, in turn; none when ACKs are unicast.
    """

    model_config = ConfigDict(json_schema_extra={"example": _ANSWER_EXAMPLE})

    job: int
    designations: list[list[Designation]]
    designated_switches: list[int]
    slot_policy: SlotPolicy
    slots: int | None
    acknowledgement: Acknowledgement
    multicast: list[MulticastAddress]


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
