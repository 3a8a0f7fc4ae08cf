"""The plan of one aggregation job.

A gradient packet that names a designated switch follows that switch's designated routes to it; the sum, and
whatever the switch could not sum, goes on from there along the IPv4 routes to the server. Both are the routes in
force (routing.py): a job adds entries towards its designated switches and changes no path. The server's ACKs run
down a multicast tree that passes through every designated switch, so that each one can free its slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from controller.planning.entries import AGGREGATION_PROGRAM, aggregation_role, designated_route
from controller.planning.multicast import MulticastTree, multicast_address, multicast_plan, multicast_tree
from controller.planning.placement import Placement
from controller.planning.plan import Plan, SwitchPlan
from controller.planning.routing import Routes
from switch.errors import UserError
from topo.graph import Topology

MAX_WORKERS = 64
"""A gradient packet has one bit for each worker."""

MAX_JOB = 0xFFFF
"""Jobs are numbered from 1 in 16 bits; a job's number is also its multicast group."""

Acknowledgement = Literal["multicast", "unicast"]


@dataclass(frozen=True)
class JobPlan:
    """A job's part of the network's plan, and what its agents must know of it.

    designated_switches: switch numbers; fragment n belongs to number n modulo their count. Without any, the
    server sums alone and acknowledges each worker by unicast: tree and multicast addresses are None.
    """

    job: int
    workers: tuple[str, ...]
    server: str
    designated_switches: tuple[int, ...]
    tree: MulticastTree | None
    multicast_ip: str | None
    multicast_mac: str | None
    plan: Plan

    @property
    def fan_in(self) -> int:
        return len(self.workers)

    @property
    def acknowledgement(self) -> Acknowledgement:
        return "unicast" if self.tree is None else "multicast"


def job_plan(
    topology: Topology,
    routes: Routes,
    job: int,
    workers: Sequence[str],
    server: str,
    placement: Placement,
    program: str = AGGREGATION_PROGRAM,
) -> JobPlan:
    """Plan job number `job`; UserError if workers, server or placement make no sense on this topology."""
    if not 1 <= job <= MAX_JOB:
        raise UserError(f"no job number left: {MAX_JOB} jobs were given one, restart the controller")
    check_hosts(topology, workers, server)
    designated = placement.designated_switches(topology, routes, workers, server)
    if not designated:
        return JobPlan(job, tuple(workers), server, (), None, None, None, Plan(switches={}))
    numbers = tuple(topology.switch(name).number for name in designated)
    tree = multicast_tree(topology, server, workers, designated)
    ip, mac = multicast_address(job)
    steering = {
        switch.name: SwitchPlan.of(
            program,
            [
                aggregation_role(job, number)
                if name == switch.name
                else designated_route(number, topology.port(switch.name, routes.next_hop(switch.name, name)))
                for name, number in zip(designated, numbers, strict=True)
            ],
        )
        for switch in topology.switches
    }
    plan = Plan(switches=steering).merged(
        Plan(switches=multicast_plan(topology, tree, group=job, ip=ip, program=program))
    )
    return JobPlan(job, tuple(workers), server, numbers, tree, ip, mac, plan)


def check_hosts(topology: Topology, workers: Sequence[str], server: str) -> None:
    """UserError unless workers and server are distinct hosts, as many as a job may have."""
    if not workers:
        raise UserError("a job needs at least one worker")
    if len(workers) > MAX_WORKERS:
        raise UserError(f"a job has at most {MAX_WORKERS} workers (one bit each in a packet), got {len(workers)}")
    if len(workers) + 1 > len(topology.hosts):
        raise UserError(
            f"{len(workers)} workers and a server need {len(workers) + 1} hosts, "
            f"the topology has {len(topology.hosts)}"
        )
    switches = {switch.name for switch in topology.switches}
    for name in (*workers, server):
        if name in switches:
            raise UserError(f"{name} is a switch; workers and server are hosts")
        topology.host(name)
    repeated = sorted({name for name in workers if workers.count(name) > 1})
    if repeated:
        raise UserError(f"worker named twice: {', '.join(repeated)}")
    if server in workers:
        raise UserError(f"{server} cannot be both server and worker")
