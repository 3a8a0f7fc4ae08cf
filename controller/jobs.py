"""The jobs of a network and the plan that they and the routes make together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from controller.journal import Journal, JournalContents
from controller.planning.congestion import congestion_plan
from controller.planning.legacy import LegacyKind, with_legacy_switches
from controller.planning.plan import Plan
from controller.planning.routing import routing_plan, shortest_routes
from controller.southbound.interface import Southbound
from controller.systems.aggregation.job_plan import Job, JobPlan, choose_job, job_plan
from controller.systems.aggregation.placement.planner import AggregationPlanner, SharedPathPlacement
from controller.systems.aggregation.slots import DEFAULT_SLOTS, SlotPolicy, SlotRange, free_range
from switch.errors import UserError
from topo.graph import Topology


class UnknownJob(UserError):
    """No job has this number now."""


class Jobs:
    """Adds and deletes jobs: plans them, has the switches brought to the new plan, tells the listeners.

    Numbers count up from first_job and are never given out twice, since a switch may still hold slots of a job
    that is gone. slots: that every switch has. legacy: the switches that cannot sum. congestion_packets: so many in a
    queue are congestion; None: never. journal: where jobs are written down; those that it holds already are taken
    over. Methods may be called from any thread.
    """

    def __init__(
        self,
        topology: Topology,
        southbound: Southbound,
        planner: AggregationPlanner | None = None,
        first_job: int = 1,
        slots: int = DEFAULT_SLOTS,
        legacy: Mapping[str, LegacyKind] | None = None,
        congestion_packets: int | None = None,
        journal: Journal | None = None,
        on_added: Callable[[JobPlan], None] = lambda job: None,
        on_deleted: Callable[[JobPlan], None] = lambda job: None,
    ) -> None:
        self._topology = topology
        self._southbound = southbound
        self._planner = planner or SharedPathPlacement()
        self._slots = slots
        self._legacy = dict(legacy or {})
        self._journal = journal
        self._on_added = on_added
        self._on_deleted = on_deleted
        self._routes = shortest_routes(topology)
        self._base = routing_plan(topology, self._routes)
        if congestion_packets is not None:
            names = [switch.name for switch in topology.switches]
            self._base = self._base.merged(congestion_plan(topology, names, congestion_packets))
        # Replaced, never changed, so that readers need no lock.
        self._jobs: dict[int, JobPlan] = {}
        self._next_job = first_job
        self._lock = threading.Lock()
        recorded = journal.read() if journal is not None else None
        if recorded is not None:
            self._next_job = max(first_job, recorded.next_job)
            self._jobs = {job.number: job_plan(topology, self._routes, job) for job in recorded.jobs}

    def plan(self) -> Plan:
        """What all switches should hold now."""
        return self._plan_of(list(self._jobs.values()))

    def all(self) -> list[JobPlan]:
        return list(self._jobs.values())

    def add(
        self,
        workers: Sequence[str],
        server: str,
        planner: AggregationPlanner | None = None,
        slot_policy: SlotPolicy = "dynamic",
        slots: int | None = None,
    ) -> JobPlan:
        """Plan a job and install it. planner: None for the controller's own. slots: how many of each of its switches
        the job gets for itself, all if None; with policy static alone. UserError if the job makes no sense,
        SouthboundError if the switches do not take it; nothing has changed then."""
        with self._lock:
            job = self._chosen(workers, server, planner or self._planner, slot_policy, slots)
            added = job_plan(self._topology, self._routes, job)
            together = {**self._jobs, job.number: added}
            plan = self._plan_of(list(together.values()))
            # Written down before a switch hears of it, so that no successor gives the number out again.
            self._write_down(self._jobs, self._next_job + 1)
            self._next_job += 1
            self._southbound.apply(plan)
            self._jobs = together
            self._write_down(self._jobs, self._next_job)
        self._on_added(added)
        return added

    def delete(self, number: int) -> None:
        """Take a job's entries and groups out of the switches, and give its slots back."""
        with self._lock:
            if number not in self._jobs:
                raise UnknownJob(f"there is no job {number}")
            remaining = {other: job for other, job in self._jobs.items() if other != number}
            self._southbound.apply(self._plan_of(list(remaining.values())))
            deleted = self._jobs[number]
            self._jobs = remaining
            self._write_down(self._jobs, self._next_job)
        self._on_deleted(deleted)

    def _chosen(
        self,
        workers: Sequence[str],
        server: str,
        planner: AggregationPlanner,
        slot_policy: SlotPolicy,
        slots: int | None,
    ) -> Job:
        job = choose_job(self._topology, self._routes, self._next_job, workers, server, planner, self._slots)
        self._require_same_policy(job, slot_policy)
        if slot_policy == "dynamic":
            if slots is not None:
                raise UserError(
                    "with slot policy dynamic all jobs share all slots: ask for policy static to have some"
                )
            return job
        wanted = self._slots if slots is None else slots
        if not 1 <= wanted <= self._slots:
            raise UserError(f"a job can have 1 to {self._slots} slots of a switch, not {wanted}")
        ranges = {name: free_range(name, self._slots, wanted, self._taken(name)) for name in job.slot_ranges}
        return replace(job, slot_policy="static", slot_ranges=ranges)

    def _require_same_policy(self, job: Job, policy: SlotPolicy) -> None:
        for name in job.slot_ranges:
            for other in self._jobs.values():
                if name in other.job.slot_ranges and other.job.slot_policy != policy:
                    raise UserError(
                        f"{name} serves job {other.job.number} with slot policy {other.job.slot_policy}: "
                        "all jobs of a switch have the same"
                    )

    def _taken(self, switch: str) -> list[SlotRange]:
        ranges = (other.job.slot_ranges.get(switch) for other in self._jobs.values())
        return [each for each in ranges if each is not None]

    def _write_down(self, jobs: dict[int, JobPlan], next_job: int) -> None:
        if self._journal is not None:
            self._journal.write(JournalContents(next_job=next_job, jobs=tuple(job.job for job in jobs.values())))

    def _plan_of(self, jobs: Sequence[JobPlan]) -> Plan:
        plan = self._base.merged(*(job.plan for job in jobs))
        return with_legacy_switches(plan, self._topology, self._legacy)
