"""The controller: services, jobs, and the one plan of all of them, to which a southbound brings the switches.

It depends on neither os-ken nor REST nor a clock, and has no threads: controller/app.py makes it a process, and
simulated networks call it directly.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.controller.core.jobs import Job, Jobs, Journal
from gradbed.controller.core.service import AnyService, LoadedService
from gradbed.controller.planning.legacy import as_switches_hold_it, table_programs
from gradbed.controller.planning.plan import Merger, Plan
from gradbed.controller.planning.routing import (
    LinkName,
    Routes,
    link_name,
    remaining_network,
    routing_plan,
    shortest_routes,
)
from gradbed.controller.southbound.interface import Message, Southbound, SouthboundError, SwitchStatus
from gradbed.topo.graph import Topology

_logger = logging.getLogger(__name__)


class UnknownSystem(UserError):
    """Raised when the controller serves no system of a name."""


class Controller:
    """Add and delete jobs, follow links and messages, and bring the switches to the new plan each time.

    Methods may be called from any thread but those from which the southbound calls its listener, if it has threads of
    its own.

    Args:
        services: The services of the systems; `services` has them by name.
        switches: For every switch the program that it runs, or legacy.OPENFLOW.
        unrouted_programs: Programs without a table ipv4_routes.
        first_job: See `jobs.Jobs`.
        journal: See `jobs.Jobs`.
        on_job_added: Called once the switches hold the plan with a new job.
        on_job_deleted: Called once the switches hold the plan without a job.
    """

    def __init__(
        self,
        topology: Topology,
        southbound: Southbound,
        services: Sequence[LoadedService],
        switches: Mapping[str, str],
        *,
        unrouted_programs: Collection[str] = (),
        first_job: int = 1,
        journal: Journal | None = None,
        on_job_added: Callable[[Job], None] = lambda job: None,
        on_job_deleted: Callable[[Job], None] = lambda job: None,
    ) -> None:
        self.topology = topology
        self.southbound = southbound
        self._switches = dict(switches)
        self._unrouted_programs = frozenset(unrouted_programs)
        self._on_job_added = on_job_added
        self._on_job_deleted = on_job_deleted
        self._lock = threading.Lock()
        self._down: frozenset[LinkName] = frozenset()
        routes = shortest_routes(topology)
        self.services: Mapping[str, AnyService] = {
            service.name: service.service_class(topology, routes, service.settings) for service in services
        }
        self._jobs = Jobs({name: service.State for name, service in self.services.items()}, first_job, journal)
        self._merger = Merger()
        # The parts of the plan are replaced, never changed, so that readers need no lock.
        self._routing = self._routing_plan(topology, routes)
        self._bases = {name: self._held(name, service.base()) for name, service in self.services.items()}
        self._job_plans = {job.number: self._job_plan(job) for job in self._jobs.all()}
        # The switches could not be brought to the plan when it last changed.
        self._overdue = False

    def start(self, ready_timeout_s: float) -> None:
        """Connect to all switches and bring them to the plan; UserError if that cannot be done in time."""
        self.southbound.start(self.plan())
        self.southbound.wait_ready(ready_timeout_s)

    def write_down(self) -> None:
        """Have a successor know that the switches were programmed, though there is no job yet; UserError."""
        self._jobs.write_down()

    def plan(self) -> Plan:
        """Return what all switches should hold now."""
        return self._together(self._job_plans)

    # Jobs

    def jobs(self, system: str | None = None) -> list[Job]:
        """Return the jobs of one system or of all."""
        return self._jobs.all() if system is None else self._jobs.of(self._known(system))

    def add_job(self, system: str, request: BaseModel | Mapping[str, Any]) -> Job:
        """Plan a job and install it. UserError if it makes no sense or cannot be written down, SouthboundError if the
        switches do not take it; nothing has changed then."""
        service = self.services[self._known(system)]
        try:
            request = service.Request.model_validate(request)
        except ValidationError as error:
            raise UserError(first_problem(error)) from None
        with self._lock:
            number = self._jobs.next_number
            others = {job.number: job.state for job in self._jobs.of(system)}
            added = Job(number, system, service.admit(number, request, others))
            job_plans = {**self._job_plans, number: self._job_plan(added)}
            self._together(job_plans)
            self._jobs.take_number()
            self._install(job_plans, lambda: self._jobs.add(added))
        self._on_job_added(added)
        return added

    def delete_job(self, system: str, number: int) -> None:
        """Take what a job has in the switches out of them. Errors as of add_job."""
        self._known(system)
        with self._lock:
            deleted = self._jobs.get(system, number)
            job_plans = {other: plan for other, plan in self._job_plans.items() if other != number}
            self._install(job_plans, lambda: self._jobs.remove(number))
        self._on_job_deleted(deleted)

    def answer(self, job: Job) -> BaseModel:
        """Return the answer to a job's request, for its agents and callers."""
        answer: BaseModel = self.services[job.system].answer(job.number, job.state)
        return answer

    def listed(self, job: Job) -> BaseModel:
        """Return the job as the list of jobs shows it."""
        return self.services[job.system].listed(job.number, job.state)

    # What happens in the network

    def links_down(self) -> frozenset[LinkName]:
        """Return the links that `link_changed` took down."""
        return self._down

    def link_changed(self, a: str, b: str, up: bool) -> None:
        """Handle that a link went down or came up: plan anew on the links that are up, and bring the switches to
        that.

        Raises:
            UserError: There is no such link.
            SouthboundError: The switches do not take the new plan; they get it with the next change, or when a switch
                connects again.
        """
        name = link_name(self.topology.link(a, b))
        with self._lock:
            if up == (name not in self._down):
                return
            down = self._down - {name} if up else self._down | {name}
            try:
                self._plan_anew(down)
            except UserError:
                self._plan_anew(self._down)
                raise
            self._down = down
            self._bring_to_plan()

    def message(self, switch: str, message: Message) -> None:
        """Pass a switch's digest or packet-in to the services whose program it runs.

        Errors are logged, since no caller waits for an answer.
        """
        with self._lock:
            for name, service in self.services.items():
                if self._switches.get(switch) not in service.programs:
                    continue
                try:
                    base = service.on_message(switch, message)
                    if base is None:
                        continue
                    bases = {**self._bases, name: self._held(name, base)}
                    self._together(self._job_plans, bases)
                    self._bases = bases
                    self._bring_to_plan()
                except (UserError, SouthboundError) as error:
                    _logger.warning("%s: a message of %s: %s", name, switch, error)

    def switch_changed(self, status: SwitchStatus) -> None:
        """Handle that a switch came or went: it gets now what it missed."""
        if not status.connected or not self._overdue:
            return
        with self._lock:
            try:
                self._bring_to_plan()
            except SouthboundError as error:
                _logger.warning("the plan is overdue: %s", error)

    # Parts of the plan

    def _plan_anew(self, down: frozenset[LinkName]) -> None:
        topology = remaining_network(self.topology, down)
        routes = shortest_routes(topology)
        for service in self.services.values():
            service.reroute(topology, routes)
        routing = self._routing_plan(topology, routes)
        bases = {name: self._held(name, service.base()) for name, service in self.services.items()}
        job_plans = {job.number: self._job_plan(job) for job in self._jobs.all()}
        self._together(job_plans, bases, routing)
        self._routing, self._bases, self._job_plans = routing, bases, job_plans

    def _install(self, job_plans: Mapping[int, Plan], write_down: Callable[[], None]) -> None:
        """Bring the switches to other jobs, and write these down. If that fails they go back, now or, where some are
        away, when these return."""
        self.southbound.apply(self._together(job_plans))
        try:
            write_down()
        except UserError:
            with contextlib.suppress(SouthboundError):
                self._bring_to_plan()
            raise
        self._job_plans = dict(job_plans)
        self._overdue = False

    def _bring_to_plan(self) -> None:
        self._overdue = True
        self.southbound.apply(self.plan())
        self._overdue = False

    def _routing_plan(self, topology: Topology, routes: Routes) -> Plan:
        programs = table_programs(self._switches)
        unrouted = {switch for service in self.services.values() for switch in service.unrouted()}
        plan = routing_plan(topology, routes, programs, self._unrouted_programs, unrouted)
        return as_switches_hold_it(plan, topology, self._switches, (), lambda switch, entry: entry)

    def _job_plan(self, job: Job) -> Plan:
        return self._held(job.system, self.services[job.system].plan(job.number, job.state))

    def _held(self, system: str, plan: Plan) -> Plan:
        """Return a service's plan as switches of whatever kind hold it."""
        service = self.services[system]
        return as_switches_hold_it(plan, self.topology, self._switches, service.programs, service.plain)

    def _together(
        self, job_plans: Mapping[int, Plan], bases: Mapping[str, Plan] | None = None, routing: Plan | None = None
    ) -> Plan:
        try:
            return self._merger.merged(
                routing or self._routing, *(bases or self._bases).values(), *job_plans.values()
            )
        except ValueError as error:
            raise UserError(f"the systems' plans contradict each other: {error}") from None

    def _known(self, system: str) -> str:
        if system not in self.services:
            known = ", ".join(self.services) or "none"
            raise UnknownSystem(f"this controller serves no system {system!r}; it serves {known}")
        return system
