"""The plan of one aggregation job: slots of switches, table entries of p4src/aggregation.p4, and ACK trees.

A gradient packet that names a designated switch follows that switch's designated routes to it. The sum, and whatever
the switch could not sum, goes on from there to the second switch that the packet names, the server's ToR, and from
the last one along the IPv4 routes to the server. All are the routes in force (planning/routing.py): a job adds
entries towards its designated switches and changes no path. The server's ACKs run down multicast trees that pass
through the designated switches of the fragment, so that each one can free its slot. Fragments with different switches
have trees of their own, since detours of ACKs would take link capacity from gradients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.controller.planning.entries import udp_route
from gradbed.controller.planning.multicast import (
    GROUPS_PER_JOB,
    MulticastTree,
    multicast_address,
    multicast_plan,
    multicast_tree,
)
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry, Value
from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.aggregation.placement.planner import AggregationPlanner
from gradbed.formats.addresses import MulticastAddress
from gradbed.formats.aggregation import GRADIENT_PORT, MAX_WORKERS, Designation, SlotPolicy
from gradbed.topo.graph import Topology

# ---- Slots ----

DEFAULT_SLOTS = 4096
"""Default of SLOTS in p4src/include/aggregation/slots.p4."""


@dataclass(frozen=True)
class SlotRange:
    """Slots first_slot to first_slot + slots - 1 of a switch."""

    first_slot: int
    slots: int

    @property
    def end(self) -> int:
        return self.first_slot + self.slots


def free_range(switch: str, slots: int, wanted: int, taken: Iterable[SlotRange]) -> SlotRange:
    """Return the first gap of `wanted` slots among the `slots` of a switch.

    Raises:
        UserError: There is none.
    """
    first = 0
    ranges = sorted(taken, key=lambda each: each.first_slot)
    for each in ranges:
        if each.first_slot - first >= wanted:
            break
        first = each.end
    if first + wanted > slots:
        free = slots - sum(each.slots for each in ranges)
        raise UserError(
            f"no slots left at {switch}: the job asks for {wanted} in a row, {free} of {slots} are free; "
            "ask for fewer, end another job, or share them (slot policy dynamic)"
        )
    return SlotRange(first, wanted)


# ---- Entries ----


AGGREGATION_PROGRAM = "aggregation"

RECLAIM_DISTANCE = 4096
"""A fragment this much older than another of its job has been acknowledged, since workers have fewer in flight. A
slot that still holds it is given to the newer one; if its ACK was only late, workers resend and the server sums."""


def designated_route(switch_number: int, port: int) -> TableEntry:
    """Forward gradient packets whose designated switch is `switch_number` by `port`."""
    return TableEntry(
        table="designated_routes",
        match={"hdr.gradient.switch_number": switch_number},
        action="towards_designated",
        params={"port": port},
    )


def plain_designated_route(entry: TableEntry) -> TableEntry:
    """Return the entry that replaces a designated route in switches that do not parse gradient headers.

    The number of the designated switch is in the UDP source port, too.
    """
    (switch_number,) = entry.match.values()
    assert isinstance(switch_number, int)
    return udp_route(GRADIENT_PORT, switch_number, entry.params["port"])


def aggregation_role(job: int, switch_number: int, policy: SlotPolicy, slots: SlotRange) -> TableEntry:
    """Let the switch with `switch_number` sum the gradients of `job` that name it, in these slots of its own."""
    # With a static range no worker is further ahead than the range is long.
    distance = slots.slots if policy == "static" else RECLAIM_DISTANCE
    return TableEntry(
        table="roles",
        match={"hdr.gradient.job": job},
        action="aggregate_indexed" if policy == "static" else "aggregate_hashed",
        params={
            "switch_number": switch_number,
            "first_slot": slots.first_slot,
            "slots": slots.slots,
            "reclaim_distance": distance,
        },
    )


# ---- The plan ----

MAX_TREES = GROUPS_PER_JOB
"""Limit of ACK trees per job: each has a multicast group."""

Acknowledgement = Literal["multicast", "unicast"]


class AggregationJob(Value):
    """A job with all decisions made, from which its plan follows: the state that a controller keeps."""

    workers: tuple[str, ...]
    server: str
    designations: Mapping[str, tuple[Designation, ...]]
    """Labels of every worker's packets (`AggregationChoice.designations`)."""
    slot_policy: SlotPolicy = "dynamic"
    slot_ranges: Mapping[str, SlotRange] = {}
    """Slots by the name of the switch, for every switch that sums for the job."""

    @property
    def designated_switches(self) -> tuple[int, ...]:
        """Numbers of all switches that sum for the job, those of the first level first."""
        labels = [label for worker in self.workers for label in self.designations[worker]]
        numbers = [*(label.switch_number for label in labels), *(label.next_switch for label in labels)]
        return tuple(dict.fromkeys(number for number in numbers if number))

    @property
    def switches_by_fragment(self) -> tuple[frozenset[int], ...]:
        """Numbers of the switches that some worker designates for a fragment; fragments take the sets in turn."""
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
    """The entries of switches for a job."""

    number: int
    """The job's number."""
    job: AggregationJob
    ack_trees: tuple[AckTree, ...]
    """The tree of every fragment's ACK; fragments take them in turn, as they do designations. Empty without
    designated switches: then the server sums alone and acknowledges each worker by unicast."""
    plan: Plan

    @property
    def trees(self) -> tuple[AckTree, ...]:
        """The distinct ACK trees."""
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
    """Return the plan of the job with this number."""
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
    """Return the tree of every fragment's ACK.

    If there are more than MAX_TREES sets of switches, the rarest ones share one tree.
    """
    sets = job.switches_by_fragment
    by_frequency = [switches for switches, _ in Counter(sets).most_common()]
    kept, rest = by_frequency, frozenset[int]()
    if len(by_frequency) > MAX_TREES:
        kept, rest = by_frequency[: MAX_TREES - 1], frozenset().union(*by_frequency[MAX_TREES - 1 :])
    trees: dict[frozenset[int], AckTree] = {}
    for switches in dict.fromkeys([*kept, rest] if rest else kept):
        group = number * MAX_TREES + len(trees)
        via = [topology.switch_by_number(each).name for each in sorted(switches)]
        tree = multicast_tree(topology, job.server, job.workers, via)
        trees[switches] = AckTree(tree, group, multicast_address(group))
    return tuple(trees[switches if switches in trees else rest] for switches in sets)


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
