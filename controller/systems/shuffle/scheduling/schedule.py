"""Schedules of coded shuffles: packets, the trees that they take, queues of senders, and the check that all is
right."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.trees import Tree, Trees, bits_of
from gradbed.topo.graph import Topology, is_hop


@dataclass(frozen=True, slots=True)
class Transmission:
    """A packet, of as many fragments as its longest sample takes: the XOR of `samples`, each padded with zeros."""

    number: int
    """Its place in the schedule's list."""
    sender: int
    """The number of a worker, or of the master."""
    samples: tuple[int, ...]
    receivers: tuple[tuple[int, int], ...]
    """Pairs (worker, the sample that it decodes). A receiver stores the packet's other samples, or borrows them;
    several may decode the same sample."""
    tree: int
    """Its tree's place in the schedule's list."""
    hops: int
    """Links of the tree that the packet takes (S1)."""
    lent_for: int | None = None
    """The number of the packet for which this one lends its single sample to its single receiver, who is a sender or
    receiver of that packet and deletes the sample afterwards; None if it is no loan."""
    waits_for: tuple[int, ...] = ()
    """Loans to the sender, without which the packet cannot be made."""
    wait_us: int = 0
    """The time that it is planned to wait for them (S5)."""

    @property
    def kind(self) -> Literal["A", "B", "C"]:
        """The class of S5: A waits for a neighbour, a neighbour waits for B, and C is neither."""
        if self.waits_for:
            return "A"
        return "C" if self.lent_for is None else "B"


@dataclass(frozen=True)
class Schedule:
    """A schedule: all packets of a shuffle."""

    scheduler: str
    transmissions: tuple[Transmission, ...]
    queues: tuple[tuple[int, ...], ...]
    """For each sender (workers by number, then the master where there is one) the numbers of its packets in the order
    in which it sends them."""
    trees: tuple[Tree, ...]

    @property
    def hops(self) -> int:
        """Links that all packets take together: the number that a scheduler makes small."""
        return sum(transmission.hops for transmission in self.transmissions)


class Scheduler(Protocol):
    """A scheduler: equal arguments give equal schedules."""

    @property
    def name(self) -> str: ...

    @property
    def needs_master(self) -> bool:
        """Instances must have a master, a host that is no worker and stores every sample."""
        ...

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        """Return a schedule that serves every demand and that `check_schedule` accepts."""
        ...


# ---- The choice among equally short trees: one rule for the packets of all schedulers (ours) ----


TreeChoice = Literal["least-loaded", "ecmp", "first"]
"""least-loaded: the tree whose busiest link carries fewest bytes of the schedule so far, then the next busiest, and
so on. ecmp: any, by a hash of sender and receivers, as switches choose equal-cost paths for a flow. first: always the
first."""

TREE_CHOICES: tuple[TreeChoice, ...] = get_args(TreeChoice)


def with_trees_chosen(
    schedule: Schedule, instance: ShuffleInstance, trees: Trees, rule: TreeChoice, seed: int
) -> Schedule:
    """Put each packet on the tree that the rule chooses of its sender's shortest ones; hops stay the same.

    A packet for which none of these is short enough stays on the tree that its scheduler made for it.
    """
    if rule == "first":
        return schedule
    bytes_on: Counter[tuple[str, str]] = Counter()
    chosen = []
    for each in schedule.transmissions:
        candidates = list(_candidates(each, trees))
        if not candidates:
            tree = each.tree
        elif rule == "ecmp":
            flow = each.sender, *sorted(worker for worker, _ in each.receivers)
            tree = random.Random(f"{seed} {flow}").choice(candidates)
        else:
            ends = instance.hosts[each.sender], [instance.hosts[worker] for worker, _ in each.receivers]
            links = {number: trees.trees[number].branches(*ends) for number in candidates}
            tree = min(links, key=lambda number: sorted((bytes_on[link] for link in links[number]), reverse=True))
            size_bytes = max(instance.sizes_bytes[sample] for sample in each.samples)
            bytes_on.update(dict.fromkeys(links[tree], size_bytes))
        chosen.append(replace(each, tree=tree))
    return replace(schedule, transmissions=tuple(chosen))


def _candidates(transmission: Transmission, trees: Trees) -> Iterator[int]:
    receivers = bits_of(worker for worker, _ in transmission.receivers)
    for number in trees.of_sender[transmission.sender]:
        if trees.hops_on(number, transmission.sender, receivers) == transmission.hops:
            yield number


# ---- The check that every schedule passes before anything is sent ----


class BadSchedule(Exception):
    """A schedule that is wrong: an error in a scheduler."""


def check_schedule(instance: ShuffleInstance, schedule: Schedule, topology: Topology) -> None:
    """Check that a schedule does what it is for.

    Every demand is met exactly once, every packet can be made and decoded from what its sender and receivers stored
    before or borrow for it, no queue waits for itself, and each packet takes as many hops as it says, on a tree of
    the network. Hops are counted in another way than schedulers do. Takes time in proportion to packets and
    receivers.

    Raises:
        BadSchedule: It does not.
    """
    walks = [TreeWalk(topology, number, tree) for number, tree in enumerate(schedule.trees)]
    _check_queues(instance, schedule)
    borrowed: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for loan in schedule.transmissions:
        if loan.lent_for is not None:
            _check_loan(instance, schedule, loan)
            ((borrower, sample),) = loan.receivers
            borrowed[loan.lent_for, borrower].add(sample)
    open_demands = set(instance.demands)
    for transmission in schedule.transmissions:
        _check_packet(instance, transmission, borrowed)
        _check_hops(instance, transmission, walks)
        if transmission.lent_for is None:
            for demand in transmission.receivers:
                if demand not in open_demands:
                    raise BadSchedule(
                        f"packet {transmission.number}: worker {demand[0]} has no open need of {demand[1]}"
                    )
                open_demands.remove(demand)
    if open_demands:
        worker, sample = min(open_demands)
        raise BadSchedule(f"worker {worker} never gets sample {sample}; {len(open_demands)} demands are left")
    _check_order(schedule)


def _check_queues(instance: ShuffleInstance, schedule: Schedule) -> None:
    senders = len(instance.workers) + (instance.master is not None)
    if len(schedule.queues) != senders:
        raise BadSchedule(f"{len(schedule.queues)} queues for {senders} senders")
    queued = sorted(number for queue in schedule.queues for number in queue)
    if queued != list(range(len(schedule.transmissions))):
        raise BadSchedule("the queues do not hold every packet exactly once")
    for sender, queue in enumerate(schedule.queues):
        for number in queue:
            transmission = schedule.transmissions[number]
            if transmission.sender != sender or transmission.number != number:
                raise BadSchedule(f"packet {number} is in the queue of {sender} or in a place that is not its own")


def _check_loan(instance: ShuffleInstance, schedule: Schedule, loan: Transmission) -> None:
    if len(loan.samples) != 1 or len(loan.receivers) != 1 or loan.receivers[0][1] != loan.samples[0]:
        raise BadSchedule(f"loan {loan.number} is not one sample for one neighbour")
    if loan.lent_for == loan.number or not 0 <= (loan.lent_for or 0) < len(schedule.transmissions):
        raise BadSchedule(f"loan {loan.number} is for a packet that does not exist")
    assert loan.lent_for is not None
    packet = schedule.transmissions[loan.lent_for]
    borrower, sample = loan.receivers[0]
    if packet.lent_for is not None:
        raise BadSchedule(f"loan {loan.number} is for another loan")
    if sample not in packet.samples or instance.stores(borrower, sample):
        raise BadSchedule(f"loan {loan.number}: worker {borrower} has no use for sample {sample} in {packet.number}")
    if borrower == packet.sender and loan.number not in packet.waits_for:
        raise BadSchedule(f"packet {packet.number} does not wait for loan {loan.number} to its sender")


def _check_packet(
    instance: ShuffleInstance, transmission: Transmission, borrowed: dict[tuple[int, int], set[int]]
) -> None:
    number, samples = transmission.number, set(transmission.samples)
    if not transmission.receivers or len(samples) != len(transmission.samples):
        raise BadSchedule(f"packet {number} has no receivers, or a sample twice")

    def lacks(worker: int) -> set[int]:
        return {s for s in samples if not instance.stores(worker, s)} - borrowed.get((number, worker), set())

    if missing := lacks(transmission.sender):
        raise BadSchedule(f"packet {number}: its sender {transmission.sender} lacks {sorted(missing)}")
    receivers = [worker for worker, _ in transmission.receivers]
    if len(set(receivers)) != len(receivers) or transmission.sender in receivers:
        raise BadSchedule(f"packet {number} reaches a worker twice, or its own sender")
    for worker, sample in transmission.receivers:
        if sample not in samples or instance.stores(worker, sample) or lacks(worker) != {sample}:
            raise BadSchedule(f"packet {number}: worker {worker} cannot decode {sample} of {sorted(samples)}")
    if {sample for _, sample in transmission.receivers} != samples:
        raise BadSchedule(f"packet {number} carries a sample that nobody decodes")


def _check_hops(instance: ShuffleInstance, transmission: Transmission, walks: Sequence[TreeWalk]) -> None:
    number, tree = transmission.number, transmission.tree
    ends = [instance.hosts[end] for end in (transmission.sender, *(worker for worker, _ in transmission.receivers))]
    if not 0 <= tree < len(walks):
        raise BadSchedule(f"packet {number}: there is no tree {tree}")
    if not walks[tree].reaches(ends):
        raise BadSchedule(f"packet {number}: tree {tree} does not reach all of {ends}")
    hops = walks[tree].hops(ends)
    if hops != transmission.hops:
        raise BadSchedule(f"packet {number} takes {hops} hops, not {transmission.hops}")


class TreeWalk:
    """A tree in depth-first order, on which hops are counted.

    Who goes round some of its hosts in this order, and back to the first, passes each link between them twice.

    Raises:
        BadSchedule: It is no tree of the network, or leads through a host.
    """

    def __init__(self, topology: Topology, number: int, tree: Tree) -> None:
        beside: defaultdict[str, list[str]] = defaultdict(list)
        for a, b in tree.links:
            if not topology.graph.has_edge(a, b):
                raise BadSchedule(f"tree {number}: there is no link {a}-{b}")
            beside[a].append(b)
            beside[b].append(a)
        self._parent = {tree.root: tree.root}
        self._level = {tree.root: 0}
        self._hops = {tree.root: 0}
        self._place: dict[str, int] = {}
        waiting = [tree.root]
        while waiting:
            node = waiting.pop()
            self._place[node] = len(self._place)
            for other in beside[node]:
                if other not in self._parent:
                    self._parent[other] = node
                    self._level[other] = self._level[node] + 1
                    self._hops[other] = self._hops[node] + is_hop(topology, topology.link(node, other))
                    waiting.append(other)
        if len(self._place) != len(beside.keys() | {tree.root}) or len(tree.links) != len(self._place) - 1:
            raise BadSchedule(f"tree {number} has a circle, or is in parts")
        if through := [node for node, others in beside.items() if topology.is_host(node) and len(others) > 1]:
            raise BadSchedule(f"tree {number} leads through the host {through[0]}")

    def reaches(self, ends: Sequence[str]) -> bool:
        return all(end in self._place for end in ends)

    def hops(self, ends: Sequence[str]) -> int:
        """Return the hops of a packet from one of these hosts to the others."""
        ordered = sorted(ends, key=self._place.__getitem__)
        return sum(self._apart(a, b) for a, b in zip(ordered, [*ordered[1:], ordered[0]], strict=True)) // 2

    def _apart(self, a: str, b: str) -> int:
        both = self._hops[a] + self._hops[b]
        while a != b:
            if self._level[a] < self._level[b]:
                a, b = b, a
            a = self._parent[a]
        return both - 2 * self._hops[a]


def _check_order(schedule: Schedule) -> None:
    """Check that all queues come to their ends."""
    place = [0] * len(schedule.queues)
    sent = [False] * len(schedule.transmissions)
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    ready = list(range(len(schedule.queues)))
    while ready:
        sender = ready.pop()
        queue = schedule.queues[sender]
        while place[sender] < len(queue):
            packet = schedule.transmissions[queue[place[sender]]]
            missing = next((loan for loan in packet.waits_for if not sent[loan]), None)
            if missing is not None:
                waiting[missing].append(sender)
                break
            sent[packet.number] = True
            ready += waiting.pop(packet.number, [])
            place[sender] += 1
    if not all(sent):
        raise BadSchedule(f"packet {sent.index(False)} waits for a loan that is never sent: queues wait in a circle")
