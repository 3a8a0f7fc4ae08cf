"""The plan of one aggregation job.

A gradient packet that names a designated switch follows that switch's designated routes to it; the sum, and
whatever the switch could not sum, goes on from there to the second switch that the packet names, the server's ToR,
and from the last one along the IPv4 routes to the server. All are the routes in force (routing.py): a job adds
entries towards its designated switches and changes no path. The server's ACKs run down multicast trees that pass
through the designated switches of the fragment, so that each one can free its slot: fragments with different
switches have trees of their own, since a detour that an ACK need not make takes capacity from gradients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.controller.planning.multicast import (
    GROUPS_PER_JOB,
    MulticastTree,
    multicast_address,
    multicast_plan,
    multicast_tree,
)
from gradbed.controller.planning.plan import Plan, SwitchPlan, Value
from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.aggregation.entries import (
    AGGREGATION_PROGRAM,
    DEFAULT_SLOTS,
    SlotRange,
    aggregation_role,
    designated_route,
)
from gradbed.controller.systems.aggregation.placement.planner import AggregationPlanner
from gradbed.formats.addresses import MulticastAddress
from gradbed.formats.aggregation import MAX_WORKERS, Designation, SlotPolicy
from gradbed.topo.graph import Topology

MAX_TREES = GROUPS_PER_JOB
"""Of a job."""

Acknowledgement = Literal["multicast", "unicast"]


class AggregationJob(Value):
    """A job with all decisions made: its plan follows from this alone, so this is what a controller must remember.

    designations: the labels of every worker's packets, in turn (placement.AggregationChoice). slot_ranges: by name,
    for every switch that sums for the job.
    """

    workers: tuple[str, ...]
    server: str
    designations: Mapping[str, tuple[Designation, ...]]
    slot_policy: SlotPolicy = "dynamic"
    slot_ranges: Mapping[str, SlotRange] = {}

    @property
    def designated_switches(self) -> tuple[int, ...]:
        """The numbers of all switches that sum for the job, those of the first level first."""
        labels = [label for worker in self.workers for label in self.designations[worker]]
        numbers = [*(label.switch_number for label in labels), *(label.next_switch for label in labels)]
        return tuple(dict.fromkeys(number for number in numbers if number))

    @property
    def turns(self) -> tuple[frozenset[int], ...]:
        """For every fragment in turn the numbers of the switches that some worker designates for it."""
        labels = [self.designations[worker] for worker in self.workers if self.designations[worker]]
        return tuple(
            frozenset(n for label in of_fragment for n in (label.switch_number, label.next_switch) if n)
            for of_fragment in zip(*labels, strict=True)
        )


@dataclass(frozen=True)
class AckTree:
    """A tree for ACKs and its multicast group."""

    tree: MulticastTree
    group: int
    address: MulticastAddress


@dataclass(frozen=True)
class JobPlan:
    """The entries of switches for the job of this number.

    ack_trees: the tree of every fragment's ACK, in turn like designations. Empty without designated switches: then
    the server sums alone and acknowledges each worker by unicast.
    """

    number: int
    job: AggregationJob
    ack_trees: tuple[AckTree, ...]
    plan: Plan

    @property
    def trees(self) -> tuple[AckTree, ...]:
        """The different ones."""
        return tuple({ack.group: ack for ack in self.ack_trees}.values())

    @property
    def acknowledgement(self) -> Acknowledgement:
        return "multicast" if self.ack_trees else "unicast"


def choose_job(
    topology: Topology,
    routes: Routes,
    workers: Sequence[str],
    server: str,
    planner: AggregationPlanner,
    slots: int = DEFAULT_SLOTS,
) -> AggregationJob:
    """Return a job that shares all `slots` of its switches.

    Raises:
        UserError: Workers, server or choice make no sense here.
    """
    check_hosts(topology, workers, server)
    choice = planner.choose(topology, routes, workers, server)
    job = AggregationJob(workers=tuple(workers), server=server, designations=choice.designations)
    names = [topology.switch_by_number(each).name for each in job.designated_switches]
    return job.model_copy(update={"slot_ranges": dict.fromkeys(names, SlotRange(0, slots))})


def job_plan(topology: Topology, routes: Routes, number: int, job: AggregationJob) -> JobPlan:
    """Return what the switches need for the job of this number."""
    if not job.designated_switches:
        return JobPlan(number, job, (), Plan(switches={}))
    designated = {topology.switch_by_number(each).name: each for each in job.designated_switches}
    steering = {
        switch.name: SwitchPlan.of(
            AGGREGATION_PROGRAM,
            [
                aggregation_role(number, switch_number, job.slot_policy, job.slot_ranges[name])
                if name == switch.name
                else designated_route(switch_number, topology.port(switch.name, routes.next_hop(switch.name, name)))
                for name, switch_number in designated.items()
            ],
        )
        for switch in topology.switches
    }
    ack_trees = _ack_trees(topology, number, job)
    plan = Plan(switches=steering).merged(
        *(
            Plan(switches=multicast_plan(topology, ack.tree, ack.group, ack.address.ip, AGGREGATION_PROGRAM))
            for ack in {ack.group: ack for ack in ack_trees}.values()
        )
    )
    return JobPlan(number, job, ack_trees, plan)


def _ack_trees(topology: Topology, number: int, job: AggregationJob) -> tuple[AckTree, ...]:
    """Return for every fragment in turn the tree of its ACK.

    The rarest sets of switches share one tree if there are too many.
    """
    turns = job.turns
    by_frequency = [switches for switches, _ in Counter(turns).most_common()]
    kept, rest = by_frequency, frozenset[int]()
    if len(by_frequency) > MAX_TREES:
        kept, rest = by_frequency[: MAX_TREES - 1], frozenset().union(*by_frequency[MAX_TREES - 1 :])
    trees: dict[frozenset[int], AckTree] = {}
    for switches in dict.fromkeys([*kept, rest] if rest else kept):
        group = number * MAX_TREES + len(trees)
        via = [topology.switch_by_number(each).name for each in sorted(switches)]
        tree = multicast_tree(topology, job.server, job.workers, via)
        trees[switches] = AckTree(tree, group, multicast_address(group))
    return tuple(trees[switches if switches in trees else rest] for switches in turns)


def check_hosts(topology: Topology, workers: Sequence[str], server: str) -> None:
    """Raise UserError unless workers and server are distinct hosts, as many as a job may have."""
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
