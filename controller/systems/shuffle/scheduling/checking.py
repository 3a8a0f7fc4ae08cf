"""Whether a schedule does what it is for; every scheduler's result passes here before anything is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from controller.systems.shuffle.scheduling.bits import bits_of
from controller.systems.shuffle.scheduling.instance import Instance
from controller.systems.shuffle.scheduling.schedule import Schedule, Transmission
from controller.systems.shuffle.scheduling.trees import Trees


class BadSchedule(Exception):
    """A schedule that is wrong: an error in a scheduler."""


def check_schedule(instance: Instance, schedule: Schedule, trees: Trees | None = None) -> None:
    """BadSchedule unless every demand is met exactly once, every packet can be made and decoded from what its sender
    and receivers stored before or borrow for it, and no queue waits for itself.

    trees: of the network; with them, hops are counted again. Takes time in proportion to packets and receivers.
    """
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
        if trees is not None:
            _check_hops(transmission, schedule, trees)
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


def _check_queues(instance: Instance, schedule: Schedule) -> None:
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


def _check_loan(instance: Instance, schedule: Schedule, loan: Transmission) -> None:
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


def _check_packet(instance: Instance, transmission: Transmission, borrowed: dict[tuple[int, int], set[int]]) -> None:
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


def _check_hops(transmission: Transmission, schedule: Schedule, trees: Trees) -> None:
    number, sender = transmission.number, transmission.sender
    receivers = [worker for worker, _ in transmission.receivers]
    if transmission.tree in trees.of_sender[sender]:
        hops = trees.hops_on(transmission.tree, sender, bits_of(receivers))
    else:
        hops = _hops_beside(transmission, schedule, trees, [trees.hosts[host] for host in (sender, *receivers)])
    if hops != transmission.hops:
        raise BadSchedule(f"packet {number} takes {hops} hops, not {transmission.hops}")


def _hops_beside(transmission: Transmission, schedule: Schedule, trees: Trees, ends: Sequence[str]) -> int:
    """On a tree that is none of the breadth-first ones."""
    if not len(trees.trees) <= transmission.tree < len(schedule.trees):
        raise BadSchedule(
            f"packet {transmission.number}: {transmission.sender} does not send on tree {transmission.tree}"
        )
    tree = schedule.trees[transmission.tree]
    if not tree.nodes.issuperset(ends):
        raise BadSchedule(f"packet {transmission.number}: tree {transmission.tree} does not reach all of {ends}")
    return sum(not trees.is_inside(*link) for link in tree.branches(ends[0], ends[1:]))


def _check_order(schedule: Schedule) -> None:
    """That all queues come to their ends."""
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
