"""Senders' queues, into which packets are put by class, and the model of time behind it (S5 of the source).

Class B (lends a sample to a neighbour) comes first in a queue, A (waits for such a loan) last, C (neither) between.
So a B packet never waits, and the more there is to send before it, the less an A packet waits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Transmission
from gradbed.controller.systems.shuffle.scheduling.trees import Trees


@dataclass(frozen=True)
class Timing:
    """The model of time of S5; links have a propagation delay, which the source assumes to be none."""

    host_us: int = 120
    """The time that a host takes to send a packet."""
    router_us: int = 120
    """The time that a switch takes to send a packet."""
    threshold_us: int = 1200
    """The longest wait of an A packet for its loan once it is its turn; a cluster that would wait longer is none."""
    hop_delay_us: int = 0
    """The longest propagation delay of a hop (ours)."""

    def transfer_us(self, hops: int) -> int:
        """Return the time that a packet takes between neighbours: (hops - 1) router_us + host_us (S5), and its
        delay."""
        return (hops - 1) * self.router_us + self.host_us + hops * self.hop_delay_us


@dataclass(frozen=True, slots=True)
class Loan:
    """A neighbour's sample for a packet's sender or for one of its receivers."""

    lender: int
    borrower: int
    sample: int


@dataclass(frozen=True, slots=True)
class CodedPacket:
    """A packet as a scheduler puts it into a queue."""

    sender: int
    receivers: tuple[tuple[int, int], ...]
    """Pairs (worker, the sample that it decodes)."""
    tree: int
    hops: int
    loans: tuple[Loan, ...] = ()
    """What its sender and receivers borrow for it."""

    @property
    def samples(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(sample for _, sample in self.receivers))


class _Queue:
    """The queue of one sender: numbers of its packets by class (S5), each list in sending order."""

    def __init__(self) -> None:
        self.a: list[int] = []
        self.b: list[int] = []
        self.c: list[int] = []


class SendQueues:
    """The queues of all senders while a schedule grows."""

    def __init__(self, instance: ShuffleInstance, trees: Trees, timing: Timing | None = None) -> None:
        self.instance = instance
        self.trees = trees
        self.timing = timing or Timing()
        self._queues = [_Queue() for _ in trees.hosts]
        self._sent: list[Transmission] = []

    @property
    def packets(self) -> int:
        return len(self._sent)

    def fits(self, sender: int, loans: Sequence[Loan]) -> bool:
        """Return whether a packet with these loans waits no longer than the threshold (S5).

        S4 asks before a cluster becomes a candidate.
        """
        if not any(loan.borrower == sender for loan in loans):
            return True
        lent: Counter[int] = Counter()
        arrivals_us = []
        for loan in loans:
            # Loans of one packet by one lender follow each other. None gets past what stopped an earlier one: that
            # would have to wait longer still.
            before = lent[loan.lender]
            place = self._place_of_b(self._queues[loan.lender], before=before)
            if loan.borrower == sender:
                hops = int(self.trees.distances[loan.lender, loan.borrower])
                arrivals_us.append((place + before) * self.timing.host_us + self.timing.transfer_us(hops))
            lent[loan.lender] += 1
        ready_us = self._last_ready_us(sender, lent=lent[sender])
        return max(arrivals_us) - ready_us <= self.timing.threshold_us

    def add(self, packet: CodedPacket) -> None:
        """Put a packet and its loans into the queues (S5); `fits` holds for it."""
        number = len(self._sent) + len(packet.loans)
        loans = []
        for loan in packet.loans:
            hops, tree = self.trees.best(loan.lender, 1 << loan.borrower)
            loans.append(len(self._sent))
            self._sent.append(
                Transmission(
                    number=len(self._sent),
                    sender=loan.lender,
                    samples=(loan.sample,),
                    receivers=((loan.borrower, loan.sample),),
                    tree=tree,
                    hops=hops,
                    lent_for=number,
                )
            )
        waits_for = tuple(n for n, loan in zip(loans, packet.loans, strict=True) if loan.borrower == packet.sender)
        self._sent.append(
            Transmission(
                number=number,
                sender=packet.sender,
                samples=packet.samples,
                receivers=packet.receivers,
                tree=packet.tree,
                hops=packet.hops,
                waits_for=waits_for,
            )
        )
        # What an A packet depends on is in its queue before it is.
        after: defaultdict[int, int] = defaultdict(int)
        for loan_number in loans:
            sender = self._sent[loan_number].sender
            place = self._place_of_b(self._queues[sender], after[sender])
            self._queues[sender].b.insert(place, loan_number)
            after[sender] = place + 1
        if waits_for:
            self._insert_a(number)
        else:
            self._queues[packet.sender].c.append(number)

    def _place_of_b(self, queue: _Queue, first: int = 0, before: int = 0) -> int:
        """Return the place of a new B packet (S5): from the end of its region it moves forward as long as those that
        it overtakes do not keep their A packets waiting longer than the threshold.

        first: the foremost place that it may take, behind the loans for the same packet. before: how many of those
        are still to be put there.
        """
        place = len(queue.b)
        while place > first and self._may_be_later(queue.b[place - 1], place + before):
            place -= 1
        return place

    def _may_be_later(self, loan: int, place: int) -> bool:
        dependent = self._sent[loan].lent_for
        assert dependent is not None
        packet = self._sent[dependent]
        sender = self._queues[packet.sender]
        if loan not in packet.waits_for or dependent not in sender.a:
            return True
        arrival_us = self._arrival_us(loan, place)
        return arrival_us - self._ready_us(packet.sender, sender.a.index(dependent)) <= self.timing.threshold_us

    def _insert_a(self, number: int) -> None:
        """Put in a new A packet (S5): from the front of its region it moves back until its wait is short enough."""
        packet = self._sent[number]
        queue = self._queues[packet.sender]
        arrival_us = max(self._arrival_us(loan) for loan in packet.waits_for)
        ready_us = (len(queue.b) + len(queue.c)) * self.timing.host_us
        place = 0
        waits = self._waits(packet.sender)
        while arrival_us - ready_us > self.timing.threshold_us and place < len(queue.a):
            ready_us += self.timing.host_us + waits[place]
            place += 1
        queue.a.insert(place, number)

    def _arrival_us(self, loan: int, place: int | None = None) -> int:
        """Return the time at which a loan arrives (S5). place: in its queue, if not where it is now."""
        transmission = self._sent[loan]
        if place is None:
            place = self._queues[transmission.sender].b.index(loan)
        return place * self.timing.host_us + self.timing.transfer_us(transmission.hops)

    def _waits(self, sender: int) -> list[int]:
        """Return the waits of a queue's A packets in order: arrival of the loan less ready time, at least 0 (S5)."""
        queue = self._queues[sender]
        ready_us = (len(queue.b) + len(queue.c)) * self.timing.host_us
        waits = []
        for number in queue.a:
            arrival_us = max(self._arrival_us(loan) for loan in self._sent[number].waits_for)
            waits.append(max(0, arrival_us - ready_us))
            ready_us += self.timing.host_us + waits[-1]
        return waits

    def _last_ready_us(self, sender: int, lent: int) -> int:
        """Return when a new A packet behind all others could be sent. lent: B packets that come with it."""
        queue = self._queues[sender]
        ready_us = (len(queue.b) + len(queue.c) + lent) * self.timing.host_us
        for number in queue.a:
            arrival_us = max(self._arrival_us(loan) for loan in self._sent[number].waits_for)
            ready_us = max(ready_us, arrival_us) + self.timing.host_us
        return ready_us

    def _ready_us(self, sender: int, place: int) -> int:
        """Return when the A packet at a place could be sent if its loan were there (S5, "ready")."""
        queue = self._queues[sender]
        before = len(queue.b) + len(queue.c) + place
        return before * self.timing.host_us + sum(self._waits(sender)[:place])

    def schedule(self, name: str) -> Schedule:
        """Return the schedule as it stands, with the waiting times of its A packets."""
        sent = list(self._sent)
        for sender, queue in enumerate(self._queues):
            for number, wait_us in zip(queue.a, self._waits(sender), strict=True):
                sent[number] = replace(sent[number], wait_us=wait_us)
        return Schedule(
            scheduler=name,
            transmissions=tuple(sent),
            queues=tuple((*queue.b, *queue.c, *queue.a) for queue in self._queues),
            trees=tuple(self.trees.trees),
        )
