"""One switch with p4src/aggregation.p4 where something is scarce or forbidden: slots, int32, room in a queue; and the
server's requests for single copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.controller.systems.aggregation.job_plan import RECLAIM_DISTANCE
from gradbed.formats.aggregation import MAX_MAGNITUDE, Flags
from gradbed.formats.datagram import CE, ECT_0
from gradbed.formats.lanes import frame_bytes
from gradbed.hosts.systems.aggregation.gradient import Gradient
from tests.emulation.sandboxed import in_sandbox
from tests.p4.aggregation.aggregation_packets import (
    DYNAMIC_SLOTS,
    JOB,
    LANES,
    LATER_JOB,
    LONE_SLOT_JOB,
    MARKED_SERVER_IP,
    MARKING_PORT,
    NEXT_NUMBER,
    OTHER_JOB,
    SERVER_PORT,
    STATIC_JOB,
    Run,
    answer,
    bitmap,
    colliding_numbers,
    congestion_of,
    failures_of_one_switch,
    gradient,
    parsed,
    resend,
    slot_of,
    values,
)
from tests.p4.switch_under_test import on_every_pair, only

pytestmark = pytest.mark.root

MIN_INT32, MAX_INT32 = -(1 << 31), (1 << 31) - 1
ECT_1 = 0b01


# ---- Slots of several jobs ----


def static_slots_are_taken_in_turn(run: Run) -> None:
    """Three fragments have a slot each; the fourth waits for the first to be answered."""
    for number in range(3):
        run.consumed(gradient(0, number, job=STATIC_JOB))
    assert run.events() == {"claimed": 3}
    run.answered(answer(0, job=STATIC_JOB))
    run.consumed(gradient(0, 3, job=STATIC_JOB))
    assert run.events() == {"claimed": 4, "released": 1}
    for number in (1, 2, 3):
        run.consumed(gradient(1, number, job=STATIC_JOB))
        run.sum_to_server(gradient(2, number, job=STATIC_JOB), 0, 1, 2)


def static_slots_follow_packet_numbers_over_the_wrap(run: Run) -> None:
    """2^32 is no multiple of three: the last number and the first meet in a slot, and the newer one waits."""
    run.consumed(gradient(0, 2**32 - 1, job=STATIC_JOB))
    run.single_to_server(gradient(0, 0, job=STATIC_JOB))
    run.consumed(gradient(0, 1, job=STATIC_JOB))
    run.consumed(gradient(0, 3, job=STATIC_JOB))
    assert run.events() == {"claimed": 2, "collision": 1, "reclaimed": 1}


def a_static_slot_whose_answer_went_astray_is_taken_over(run: Run) -> None:
    run.consumed(gradient(0, 0, job=STATIC_JOB))
    run.consumed(gradient(0, 3, job=STATIC_JOB))
    run.single_to_server(gradient(1, 0, job=STATIC_JOB))  # the slot has moved on
    run.consumed(gradient(1, 3, job=STATIC_JOB))
    run.sum_to_server(gradient(2, 3, job=STATIC_JOB), 0, 1, 2)
    assert run.events() == {"claimed": 1, "reclaimed": 1, "collision": 1, "added": 2, "completed": 1}


def ranges_of_jobs_do_not_mix(run: Run) -> None:
    """Sixty fragments of the jobs with hashed slots leave those with slots of their own alone, and the other way."""
    for number in range(3):
        run.consumed(gradient(0, number, job=STATIC_JOB))
    run.consumed(gradient(0, 7, job=LONE_SLOT_JOB))
    for number in range(30):
        run.switch.exchange(2, gradient(0, number, job=JOB))
        run.switch.exchange(2, gradient(0, number, job=OTHER_JOB))
    assert run.events()["claimed"] == 4 + DYNAMIC_SLOTS
    assert "reclaimed" not in run.events()
    for number in range(3):
        run.consumed(gradient(1, number, job=STATIC_JOB))
        run.sum_to_server(gradient(2, number, job=STATIC_JOB), 0, 1, 2)
    run.consumed(gradient(1, 7, job=LONE_SLOT_JOB))
    run.sum_to_server(gradient(2, 7, job=LONE_SLOT_JOB), 0, 1, 2)


def contention_is_told_from_collision(run: Run) -> None:
    first, second = colliding_numbers()
    run.consumed(gradient(0, first))
    run.single_to_server(gradient(0, second))
    assert run.events() == {"claimed": 1, "collision": 1}
    other = next(number for number in range(100) if slot_of(number, OTHER_JOB) == slot_of(first))
    run.single_to_server(gradient(0, other, job=OTHER_JOB))
    assert run.events(JOB) == {"claimed": 1, "collision": 1}
    assert run.events(OTHER_JOB) == {"contention": 1}


def another_jobs_numbers_say_nothing_of_age(run: Run) -> None:
    """The slot's fragment is not left behind by a number of another job, nor is another job's late by it."""
    run.consumed(gradient(0, 0))
    newer = range(RECLAIM_DISTANCE, 2 * RECLAIM_DISTANCE)
    run.single_to_server(gradient(0, next(n for n in newer if slot_of(n, OTHER_JOB) == slot_of(0)), job=OTHER_JOB))
    assert run.events(OTHER_JOB) == {"contention": 1}
    number = next(n for n in newer if slot_of(n) == slot_of(0))
    run.consumed(gradient(0, number))
    run.answered(answer(number))
    run.consumed(gradient(0, next(n for n in range(100) if slot_of(n, OTHER_JOB) == slot_of(0)), job=OTHER_JOB))
    assert run.events(OTHER_JOB) == {"contention": 1, "claimed": 1}


def a_slot_that_is_taken_over_begins_anew(run: Run) -> None:
    """Without the workers, the magnitude and the congestion of the fragment that it held."""
    run.consumed(gradient(0, 0, job=LONE_SLOT_JOB, value=MAX_INT32, tos=CE))
    overflowing(run, gradient(1, 1, job=LONE_SLOT_JOB, value=MIN_INT32))
    assert run.events() == {"claimed": 1, "overflow": 1}
    run.consumed(gradient(1, 1, job=LONE_SLOT_JOB))
    run.consumed(gradient(0, 1, job=LONE_SLOT_JOB))
    run.sum_to_server(gradient(2, 1, job=LONE_SLOT_JOB), 0, 1, 2)
    assert not congestion_of(run.to_server(resend(0, 1, job=LONE_SLOT_JOB)))[1]
    assert run.events() == {
        "claimed": 1,
        "overflow": 1,
        "reclaimed": 1,
        "added": 2,
        "completed": 1,
        "resend_summed": 1,
    }


def exhaustion_is_counted_while_all_slots_are_held(run: Run) -> None:
    one_of_each = {slot_of(number): number for number in range(100)}
    last, *others = one_of_each.values()
    assert len(one_of_each) == DYNAMIC_SLOTS
    for number in others:
        run.consumed(gradient(0, number))
    more = next(n for n in range(100, 200) if slot_of(n) == slot_of(others[0]))
    run.single_to_server(gradient(0, more))
    assert "exhaustion" not in run.events()
    run.consumed(gradient(0, last))
    run.single_to_server(gradient(0, more))
    run.single_to_server(gradient(0, next(n for n in range(100) if slot_of(n, OTHER_JOB) == 0), job=OTHER_JOB))
    assert (run.events()["collision"], run.events()["contention"], run.events()["exhaustion"]) == (2, 1, 2)
    # A slot that an ACK, or a resend, has freed is there again.
    run.answered(answer(last))
    run.single_to_server(gradient(0, more))
    run.sum_to_server(resend(1, others[1]), 0, 1)
    run.single_to_server(gradient(0, more))
    assert run.events()["exhaustion"] == 2
    for number in (last + 1000, others[1] + 1000):
        newer = next(n for n in range(number, number + 1000) if slot_of(n) == slot_of(number - 1000))
        run.consumed(gradient(0, newer))
    run.single_to_server(gradient(0, more))
    assert run.events()["exhaustion"] == 3


def slots_that_another_range_left_held_count(run: Run) -> None:
    """STATIC_JOB is gone without a word, and slots 9 and 10 of its three are LATER_JOB's."""
    for number in range(3):
        run.consumed(gradient(0, number, job=STATIC_JOB))
    run.single_to_server(gradient(0, 0, job=LATER_JOB))
    assert run.events(LATER_JOB) == {"contention": 1, "exhaustion": 1}
    run.answered(answer(2, job=STATIC_JOB))
    run.single_to_server(gradient(0, 0, job=LATER_JOB))
    assert run.events(LATER_JOB) == {"contention": 2, "exhaustion": 1}
    run.consumed(gradient(0, 1, job=LATER_JOB))
    run.single_to_server(gradient(0, 0, job=LATER_JOB))
    assert run.events(LATER_JOB) == {"contention": 3, "exhaustion": 2, "claimed": 1}


# ---- No sum leaves int32 ----


def overflowing(run: Run, frame: bytes) -> None:
    """It goes on as it is, marked, past all other switches."""
    run.single_to_server(frame, Flags.OVERFLOW)


def sums_up_to_the_largest_int32_are_made(run: Run) -> None:
    for sign in (1, -1):
        number = 0 if sign == 1 else 1
        run.consumed(gradient(0, number, value=sign * MAX_INT32 - sign * 5))
        run.consumed(gradient(1, number, value=sign * 3))
        header = run.to_server(gradient(2, number, value=sign * 2))[Gradient]
        assert header.lanes == [sign * MAX_INT32] * LANES
        assert header.magnitude == MAX_MAGNITUDE
    assert "overflow" not in run.events()


def what_would_go_beyond_is_not_added(run: Run) -> None:
    """Positive and negative; the slot goes on with those that fit."""
    for number, sign in ((0, 1), (1, -1)):
        run.consumed(gradient(0, number, value=sign * (MAX_INT32 - 5)))
        overflowing(run, gradient(1, number, value=sign * 6, next_switch=NEXT_NUMBER, next_fan_in=4))
        overflowing(run, resend(1, number, value=sign * 6, next_switch=NEXT_NUMBER, next_fan_in=4))
        header = run.to_server(gradient(2, number, value=sign * 5, fan_in=2))[Gradient]
        assert (header.lanes, header.worker_bitmap) == ([sign * MAX_INT32] * LANES, bitmap(0, 2))
    assert run.events()["overflow"] == 4


def bounds_count_and_not_lanes(run: Run) -> None:
    """Gradients of opposite signs would fit, but a switch looks at magnitudes alone."""
    run.consumed(gradient(0, value=MAX_INT32))
    overflowing(run, gradient(1, value=-1))


def the_smallest_int32_is_never_added(run: Run) -> None:
    """Its magnitude, 2^31, is beyond the bound alone."""
    overflowing(run, gradient(0, value=MIN_INT32))
    assert run.events() == {"overflow": 1}
    run.consumed(gradient(1, value=0))
    overflowing(run, gradient(0, value=MIN_INT32))
    overflowing(run, gradient(2, value=1, magnitude=2**32 - 1))


def a_resend_takes_an_almost_full_sum_along(run: Run) -> None:
    """What is in the sum already adds nothing to its magnitude."""
    run.consumed(gradient(0, value=MAX_INT32))
    header = run.to_server(resend(0, value=MAX_INT32))[Gradient]
    assert (header.lanes, header.magnitude) == ([MAX_INT32] * LANES, MAX_MAGNITUDE)
    assert not header.flags & Flags.OVERFLOW


def a_slot_begins_again_with_magnitude_zero(run: Run) -> None:
    run.consumed(gradient(0, 0, value=MAX_INT32))
    run.answered(answer(0))
    newer = next(number for number in range(1, 100) if slot_of(number) == slot_of(0))
    run.consumed(gradient(0, newer, value=-MAX_INT32))
    assert run.to_server(gradient(0, newer, flags=Flags.RESEND))[Gradient].lanes == [-MAX_INT32] * LANES


# ---- Congestion ----


def congestion_stays_with_the_slot(run: Run) -> None:
    """Whether by CE or by the flag, first, in the middle, last, or on a resend."""
    marks = [(worker, tos, flags) for worker in range(3) for tos, flags in ((CE, 0), (ECT_0, Flags.CONGESTION))]
    for number, (worker, tos, flags) in enumerate(marks):
        frames = [gradient(w, number) for w in range(3)]
        frames[worker] = gradient(worker, number, tos=tos, flags=flags)
        for frame in frames[:2]:
            run.consumed(frame)
        packet = run.to_server(frames[2])
        assert packet[Gradient].flags & Flags.CONGESTION
        assert congestion_of(run.to_server(resend(0, number)))[1]
        run.answered(answer(number))
    # None without, neither in this slot nor because another fragment had it.
    for number in range(6, 6 + 2 * DYNAMIC_SLOTS):
        run.consumed(gradient(0, number))
        run.consumed(gradient(1, number, tos=ECT_1))
        assert congestion_of(run.to_server(gradient(2, number))) == (False, False)
        run.answered(answer(number))


def duplicates_do_not_bring_congestion(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(0, tos=CE))
    run.consumed(gradient(1))
    assert congestion_of(run.to_server(gradient(2))) == (False, False)


def long_queues_mark_who_takes_part(run: Run) -> None:
    """Thresholds: none at port 4, far above any queue at the server's, 0 at another."""
    for tos in (ECT_0, ECT_1, CE, ECT_0 | 0xB8):
        packet = run.to_server(gradient(0, tos=tos, switch_number=0, dst_ip=MARKED_SERVER_IP), out=MARKING_PORT)
        assert packet[IP].tos == tos | CE
        assert run.to_server(gradient(0, tos=tos, switch_number=0))[IP].tos == tos
    packet = run.to_server(gradient(0, tos=0, switch_number=0, dst_ip=MARKED_SERVER_IP), out=MARKING_PORT)
    assert packet[IP].tos == 0
    ordinary = IP(src="10.0.1.2", dst=MARKED_SERVER_IP, tos=ECT_0) / UDP(dport=9) / bytes(30)
    frame = bytes(Ether(src="02:00:00:00:01:00", dst="02:00:00:00:00:01") / ordinary)
    assert run.to_server(frame, out=MARKING_PORT)[IP].tos == CE


# ---- Requests for single copies ----


def negative_acknowledgements_pass_and_free_nothing(run: Run) -> None:
    run.consumed(gradient(0))
    request = answer(0, flags=Flags.ACK | Flags.NACK, dst_ip="10.0.0.77")
    packet = parsed(only(run.switch.exchange(2, request), SERVER_PORT))
    assert packet[Gradient].flags == Flags.ACK | Flags.NACK
    assert (packet[Gradient].lanes, packet[Gradient].packet_number, packet[IP].ttl) == ([], 0, 63)
    assert len(bytes(packet)) == frame_bytes(0)
    run.consumed(gradient(1))
    run.sum_to_server(gradient(2), 0, 1, 2)
    assert run.events() == {"claimed": 1, "added": 2, "completed": 1}
    assert run.switch.counter("acknowledgement_in") == {2: (1, frame_bytes(0))}
    assert run.switch.counter("acknowledgement_out") == {SERVER_PORT: (1, frame_bytes(0))}


def answers_to_requests_pass_all_switches(run: Run) -> None:
    """A direct copy names no switch, so that the switch that holds the worker's gradient leaves it alone."""
    run.consumed(gradient(0))
    run.single_to_server(resend(0, switch_number=0, fan_in=0))
    run.consumed(gradient(1))
    run.sum_to_server(gradient(2), 0, 1, 2)


def half_requests_are_ordinary_packets(run: Run) -> None:
    """NACK with lanes, no lanes without both flags, a request of another version: routed, and nothing else."""
    for flags in (Flags.ACK | Flags.NACK, Flags.NACK):
        with_lanes = Ether(answer(0, dst_ip="10.0.0.77"))
        with_lanes[Gradient].flags = flags
        without = Ether(answer(0, flags=Flags.ACK | Flags.NACK, dst_ip="10.0.0.77"))
        without[Gradient].flags = flags & Flags.NACK
        old = Ether(answer(0, flags=Flags.ACK | Flags.NACK, dst_ip="10.0.0.77"))
        old[Gradient].version = 1
        for packet in (with_lanes, without, old):
            assert len(only(run.switch.exchange(2, bytes(packet)), SERVER_PORT)) == len(bytes(packet))
    assert run.switch.counter("acknowledgement_in") == run.switch.counter("gradient_in") == {}


def gradients_of_nobody_enter_no_sum(run: Run) -> None:
    empty = Ether(gradient(0))
    empty[Gradient].worker_bitmap = 0
    run.consumed(gradient(1))
    assert run.to_server(bytes(empty))[Gradient].lanes == values(0)
    assert run.to_server(gradient(2, fan_in=2))[Gradient].lanes == values(1, 2)


@pytest.mark.thorough
@on_every_pair
@in_sandbox
def test_behaviours(kind: str, compiler: str, tmp_path: Path) -> None:
    """All of them on one switch, which gets the program anew for each."""
    assert failures_of_one_switch(__name__, kind, compiler, tmp_path) == []
