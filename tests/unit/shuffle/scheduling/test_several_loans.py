"""No packet waits longer than the threshold, however many loans it takes; by a replay of its own (waits.py)."""

from __future__ import annotations

import random

import pytest

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, Loan, SendQueues, Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.systems.shuffle.checks import planned_wait_failures
from gradbed.topo.generators import star

WORKERS, SAMPLES, PACKET_US, DELAY_US = 5, 100, 10, 3
INSTANCE = ShuffleInstance(
    workers=tuple(f"h{worker + 1}" for worker in range(WORKERS)),
    sizes_bytes=(10,) * SAMPLES,
    stored=tuple(tuple(range(worker, SAMPLES, WORKERS)) for worker in range(WORKERS)),
    needed=((),) * WORKERS,
)
TREES = Trees(star(WORKERS), INSTANCE.hosts)


def random_schedule(seed: int, most_loans: int, threshold_us: int) -> Schedule:
    """Packets with up to so many loans, to their senders and receivers, of those that fit."""
    draw = random.Random(seed)
    queues = SendQueues(INSTANCE, TREES, Timing(PACKET_US, PACKET_US, threshold_us, DELAY_US))
    for _ in range(30):
        sender = draw.randrange(WORKERS)
        loans = []
        for _ in range(draw.choice([0, 1, most_loans])):
            lender, borrower = draw.randrange(WORKERS), draw.choice([sender, sender, draw.randrange(WORKERS)])
            if lender != borrower:
                loans.append(Loan(lender, borrower, draw.choice(INSTANCE.stored[lender])))
        if queues.fits(sender, loans):
            queues.add(CodedPacket(sender, (((sender + 1) % WORKERS, 0),), 0, 2, tuple(loans)))
    return queues.schedule("random")


@pytest.mark.parametrize("most_loans", [1, 2, 3])
def test_no_packet_waits_longer_than_the_threshold(most_loans: int) -> None:
    waited = 0
    for seed in range(400):
        threshold_us = (0, 6, 16, 26, 40, 80)[seed % 6]
        schedule = random_schedule(seed, most_loans, threshold_us)
        assert list(planned_wait_failures(schedule, PACKET_US, DELAY_US, threshold_us)) == [], seed
        waited += sum(each.wait_us > 0 for each in schedule.transmissions)
    assert waited > 100


def test_a_loan_does_not_delay_an_earlier_one_of_its_packet() -> None:
    """The lender has nothing else to send: its loan to the sender comes 26 us later, by when the sender, who has
    nothing else to send either, may send the packet. Behind the loan to a receiver it would come at 36 us."""
    queues = SendQueues(INSTANCE, TREES, Timing(PACKET_US, PACKET_US, threshold_us=26, hop_delay_us=DELAY_US))
    loans = (Loan(lender=1, borrower=0, sample=1), Loan(lender=1, borrower=2, sample=6))
    assert queues.fits(0, loans)
    queues.add(CodedPacket(0, ((3, 0),), 0, 2, loans))
    schedule = queues.schedule("two loans")
    assert schedule.queues[1] == (0, 1)
    assert schedule.transmissions[2].wait_us == 26


def test_a_wait_that_is_not_as_planned_is_found() -> None:
    schedule = random_schedule(5, 1, 80)
    assert any("is planned to wait" in line for line in planned_wait_failures(schedule, PACKET_US, DELAY_US + 1, 80))
    assert any(
        "longer than the threshold" in line for line in planned_wait_failures(schedule, PACKET_US, DELAY_US, 1)
    )
