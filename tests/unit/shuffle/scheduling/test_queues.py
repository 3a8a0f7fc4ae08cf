"""S5 of the source: places in queues by class, and the waiting times that follow."""

from __future__ import annotations

import pytest

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, Loan, SendQueues, Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.topo.generators import star

HOST_US, ROUTER_US = 10, 4
LOAN_US = ROUTER_US + HOST_US
"""A loan takes two hops: (2 - 1) * router + host."""


def queues(threshold_us: int) -> SendQueues:
    """Workers 0 and 1 send; 0 stores even samples, 1 odd ones; whoever receives is 2 or 3."""
    samples = 40
    instance = ShuffleInstance(
        workers=("h1", "h2", "h3", "h4"),
        sizes_bytes=(10,) * samples,
        stored=(tuple(range(0, samples, 2)), tuple(range(1, samples, 2)), (), ()),
        needed=((), (), tuple(range(samples)), ()),
    )
    return SendQueues(instance, Trees(star(4), instance.hosts), Timing(HOST_US, ROUTER_US, threshold_us))


def plain(sample: int) -> CodedPacket:
    return CodedPacket(sample % 2, ((2, sample),), 0, 2)


def lent(sender: int, sample: int) -> CodedPacket:
    """A packet of the sender's, for which the other lends it the sample."""
    return CodedPacket(sender, ((2, sample),), 0, 2, (Loan(1 - sender, sender, sample),))


def kinds(schedule: Schedule, sender: int) -> str:
    return "".join(schedule.transmissions[number].kind for number in schedule.queues[sender])


def waits(schedule: Schedule, sender: int) -> list[int]:
    sent = (schedule.transmissions[number] for number in schedule.queues[sender])
    return [transmission.wait_us for transmission in sent if transmission.kind == "A"]


def test_b_is_first_and_a_last() -> None:
    found = queues(threshold_us=100)
    found.add(plain(0))
    found.add(lent(0, 1))
    found.add(lent(1, 2))
    found.add(plain(4))
    schedule = found.schedule("by hand")
    assert kinds(schedule, 0) == "BCCA"
    assert kinds(schedule, 1) == "BA"


@pytest.mark.parametrize("before", range(4))
def test_an_a_packet_waits_less_the_more_is_sent_before_it(before: int) -> None:
    found = queues(threshold_us=100)
    for sample in range(0, 2 * before, 2):
        found.add(plain(sample))
    found.add(lent(0, 1))
    assert waits(found.schedule("by hand"), 0) == [max(0, LOAN_US - before * HOST_US)]


def test_an_a_packet_that_would_wait_too_long_is_sent_later() -> None:
    """At the front of its class it would wait for longer than 10, so those that are there go first."""
    patient, impatient = queues(threshold_us=100), queues(threshold_us=5)
    for found in (patient, impatient):
        found.add(plain(0))
        found.add(lent(0, 1))
        found.add(lent(0, 3))
    # In both the second loan went to the head of the lender's queue, so that the first one comes 10 later.
    first, second = (n for n, sent in enumerate(patient.schedule("").transmissions) if sent.kind == "A")
    assert patient.schedule("").queues[0][1:] == (second, first)
    assert waits(patient.schedule(""), 0) == [LOAN_US - HOST_US, 0]
    # With 5 the second loan may not overtake the first, and its packet takes its place behind the first's.
    assert impatient.schedule("").queues[0][1:] == (first, second)
    assert waits(impatient.schedule(""), 0) == [LOAN_US - HOST_US, 0]


def test_a_b_packet_overtakes_only_while_the_others_packet_waits_no_longer_than_the_threshold() -> None:
    for threshold_us, first in ((LOAN_US + HOST_US - 1, "old"), (LOAN_US + HOST_US, "new")):
        found = queues(threshold_us)
        found.add(lent(0, 1))
        found.add(lent(0, 3))
        head = found.schedule("").transmissions[found.schedule("").queues[1][0]]
        assert head.samples == ((1,) if first == "old" else (3,))


def test_what_cannot_be_in_time_does_not_fit() -> None:
    loan = [Loan(1, 0, 1)]
    assert queues(threshold_us=LOAN_US).fits(0, loan)
    found = queues(threshold_us=LOAN_US - 1)
    assert not found.fits(0, loan)
    found.add(plain(0))
    assert found.fits(0, loan)


def test_a_loan_to_a_receiver_keeps_no_sender_waiting() -> None:
    found = queues(threshold_us=0)
    loan = Loan(1, 2, 1)
    assert found.fits(0, [loan])
    found.add(CodedPacket(0, ((2, 0),), 0, 2, (loan,)))
    assert kinds(found.schedule(""), 0) == "C"
    assert kinds(found.schedule(""), 1) == "B"
