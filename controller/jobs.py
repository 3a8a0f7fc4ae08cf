"""The jobs of a network and the plan that they and the routes make together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from controller.planning.aggregation import JobPlan, job_plan
from controller.planning.placement import ExplicitPlacement, NoPlacement, Placement, SharedPathPlacement
from controller.planning.plan import Plan
from controller.planning.routing import routing_plan, shortest_routes
from controller.southbound.interface import Southbound
from switch.errors import UserError
from topo.graph import Topology


class UnknownJob(UserError):
    """No job has this number now."""


class Jobs:
    """Adds and deletes jobs: plans them, has the switches brought to the new plan, tells the listeners.

    Numbers count up from first_job and are never given out twice, since a switch may still hold slots of a job
    that is gone. Methods may be called from any thread.
    """

    def __init__(
        self,
        topology: Topology,
        southbound: Southbound,
        placement: Placement | None = None,
        first_job: int = 1,
        on_added: Callable[[JobPlan], None] = lambda job: None,
        on_deleted: Callable[[JobPlan], None] = lambda job: None,
    ) -> None:
        self._topology = topology
        self._southbound = southbound
        self._placement = placement or SharedPathPlacement()
        self._on_added = on_added
        self._on_deleted = on_deleted
        self._routes = shortest_routes(topology)
        self._base = routing_plan(topology, self._routes)
        # Replaced, never changed, so that readers need no lock.
        self._jobs: dict[int, JobPlan] = {}
        self._next_job = first_job
        self._lock = threading.Lock()

    def plan(self) -> Plan:
        """What all switches should hold now."""
        return self._plan_of(list(self._jobs.values()))

    def all(self) -> list[JobPlan]:
        return list(self._jobs.values())

    def add(
        self,
        workers: Sequence[str],
        server: str,
        aggregation: bool = True,
        aggregation_switches: Sequence[str] | None = None,
    ) -> JobPlan:
        """Plan a job and install it. aggregation_switches: the designated switches by name, in the order in
        which fragments are dealt to them; None lets the placement choose. UserError if the job makes no sense,
        SouthboundError if the switches do not take it; nothing has changed then."""
        with self._lock:
            placement = self._choose_placement(aggregation, aggregation_switches)
            job = job_plan(self._topology, self._routes, self._next_job, workers, server, placement)
            self._southbound.apply(self._plan_of([*self._jobs.values(), job]))
            self._jobs = {**self._jobs, job.job: job}
            self._next_job += 1
        self._on_added(job)
        return job

    def delete(self, number: int) -> None:
        """Take a job's entries and groups out of the switches."""
        with self._lock:
            if number not in self._jobs:
                raise UnknownJob(f"there is no job {number}")
            remaining = {other: job for other, job in self._jobs.items() if other != number}
            self._southbound.apply(self._plan_of(list(remaining.values())))
            job = self._jobs[number]
            self._jobs = remaining
        self._on_deleted(job)

    def _plan_of(self, jobs: Sequence[JobPlan]) -> Plan:
        return self._base.merged(*(job.plan for job in jobs))

    def _choose_placement(self, aggregation: bool, switches: Sequence[str] | None) -> Placement:
        if not aggregation:
            if switches:
                raise UserError("aggregation switches are named, but aggregation is off")
            return NoPlacement()
        return self._placement if switches is None else ExplicitPlacement(tuple(switches))
