"""One switch with p4src/aggregation.p4, packet by packet: slots, resends, retries, answers, ordinary packets.

Like its neighbours this runs on our switch and on BMv2, by our compiler and by p4c, where they are installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from gradbed.controller.systems.aggregation.job_plan import RECLAIM_DISTANCE
from gradbed.formats.aggregation import Flags
from gradbed.formats.lanes import frame_bytes
from gradbed.hosts.systems.aggregation.gradient import Gradient
from tests.emulation.sandboxed import in_sandbox
from tests.p4.aggregation.aggregation_packets import (
    DYNAMIC_SLOTS,
    GROUP_PORTS,
    JOB,
    LANES,
    LONE_SLOT_JOB,
    NEXT_NUMBER,
    ONWARD_PORT,
    OTHER_JOB,
    OWN_NUMBER,
    SERVER_IP,
    SERVER_PORT,
    Run,
    answer,
    colliding_numbers,
    expiring,
    failures_of_one_switch,
    gradient,
    parsed,
    resend,
    slot_of,
    values,
)
from tests.p4.switch_under_test import on_every_pair, only

pytestmark = pytest.mark.root


def sums_and_frees(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.sum_to_server(gradient(2), 0, 1, 2)
    out = run.switch.exchange(SERVER_PORT, answer())
    assert {port: len(frames) for port, frames in out.items()} == dict.fromkeys(GROUP_PORTS, 1)
    for frames in out.values():
        packet = parsed(frames[0])
        assert packet.dst == "01:00:5e:42:00:01"
        assert packet[IP].ttl == 63
        assert packet[Gradient].lanes == list(range(LANES))
    assert run.events() == {"claimed": 1, "added": 2, "completed": 1, "released": 1}


def any_worker_may_be_first(run: Run) -> None:
    for number, (first, second) in enumerate(((0, 1), (1, 0), (2, 1))):
        run.consumed(gradient(first, number, fan_in=2))
        run.sum_to_server(gradient(second, number, fan_in=2), first, second)


def a_slot_is_used_again(run: Run) -> None:
    for number in range(4 * DYNAMIC_SLOTS):
        run.consumed(gradient(0, number))
        run.consumed(gradient(1, number))
        run.sum_to_server(gradient(2, number), 0, 1, 2)
        run.switch.exchange(SERVER_PORT, answer(number))
    assert run.events()["released"] == 4 * DYNAMIC_SLOTS


def duplicates_do_no_harm(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.consumed(gradient(0))
    run.sum_to_server(gradient(2), 0, 1, 2)
    run.consumed(gradient(2))
    assert run.events()["duplicate"] == 3


def a_taken_slot_sends_packets_on_unsummed(run: Run) -> None:
    first, second = colliding_numbers()
    run.consumed(gradient(0, first))
    run.single_to_server(gradient(0, second))
    run.consumed(gradient(1, first))
    run.single_to_server(gradient(1, second))
    run.sum_to_server(gradient(2, first), 0, 1, 2)
    assert run.events()["collision"] == 2


def jobs_are_told_apart(run: Run) -> None:
    """The same packet number of two jobs is two fragments, whether or not they share a slot."""
    run.consumed(gradient(0, job=JOB))
    out = run.switch.exchange(2, gradient(1, job=OTHER_JOB))
    run.consumed(gradient(1, job=JOB))
    run.sum_to_server(gradient(2, job=JOB), 0, 1, 2)
    if out:  # the slot was taken
        assert parsed(only(out, SERVER_PORT))[Gradient].lanes == values(1)
    else:
        run.consumed(gradient(0, job=OTHER_JOB))
        run.sum_to_server(gradient(2, job=OTHER_JOB), 0, 1, 2)


def a_resend_takes_the_sum_along(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.sum_to_server(resend(0), 0, 1)
    # The slot is free and stays so: what comes late goes on alone.
    run.single_to_server(gradient(2))
    run.single_to_server(resend(1))
    assert run.events() == {"claimed": 1, "added": 1, "resend_summed": 1, "stale": 1, "resend_single": 1}


def a_resend_of_a_lost_packet_is_added(run: Run) -> None:
    run.consumed(gradient(0))
    run.sum_to_server(resend(1), 0, 1)


def a_resend_that_completes_the_sum_takes_it_along(run: Run) -> None:
    """No ACK need free the slot then."""
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.sum_to_server(resend(2), 0, 1, 2)
    run.single_to_server(gradient(0))
    assert run.events() == {"claimed": 1, "added": 2, "resend_summed": 1, "stale": 1}


def a_resend_repeats_a_lost_sum(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.sum_to_server(gradient(2), 0, 1, 2)
    run.sum_to_server(resend(1), 0, 1, 2)


def a_resend_never_claims(run: Run) -> None:
    run.single_to_server(resend(0))
    run.consumed(gradient(1))
    assert run.events() == {"resend_single": 1, "claimed": 1}


def late_copies_do_not_claim_a_freed_slot(run: Run) -> None:
    first, second = colliding_numbers()
    for worker in (0, 1):
        run.consumed(gradient(worker, second))
    run.sum_to_server(gradient(2, second), 0, 1, 2)
    run.switch.exchange(SERVER_PORT, answer(second))
    run.single_to_server(gradient(0, second))
    run.single_to_server(gradient(0, first))
    assert run.events()["stale"] == 2


def packet_numbers_wrap(run: Run) -> None:
    """The last number before the wrap is older than the first after it."""
    last = 2**32 - 1
    after = next(number for number in range(RECLAIM_DISTANCE) if slot_of(number) == slot_of(last))
    for number in (last, after):
        run.consumed(gradient(0, number))
        run.consumed(gradient(1, number))
        run.sum_to_server(gradient(2, number), 0, 1, 2)
        run.switch.exchange(SERVER_PORT, answer(number))
    run.single_to_server(gradient(0, last))


def half_of_all_numbers_ahead_is_behind(run: Run) -> None:
    run.consumed(gradient(0, 0, job=LONE_SLOT_JOB))
    run.answered(answer(0, job=LONE_SLOT_JOB))
    run.single_to_server(gradient(0, 2**31, job=LONE_SLOT_JOB))
    run.consumed(gradient(0, 2**31 - 1, job=LONE_SLOT_JOB))
    run.single_to_server(gradient(0, 2**32 - 1, job=LONE_SLOT_JOB))
    events = run.events()
    assert (events["claimed"], events["stale"], events["collision"]) == (2, 1, 1)


def a_much_newer_fragment_takes_an_abandoned_slot(run: Run) -> None:
    newer = next(n for n in range(RECLAIM_DISTANCE, 100 * RECLAIM_DISTANCE) if slot_of(n) == slot_of(0))
    run.consumed(gradient(0, 0))
    run.consumed(gradient(0, newer))
    run.consumed(gradient(1, newer))
    run.sum_to_server(gradient(2, newer), 0, 1, 2)
    run.single_to_server(gradient(1, 0))
    assert run.events()["reclaimed"] == 1


def an_acknowledgement_frees_its_own_fragment_only(run: Run) -> None:
    first, second = colliding_numbers()
    run.consumed(gradient(0, first))
    run.switch.exchange(SERVER_PORT, answer(second))
    run.switch.exchange(SERVER_PORT, answer(first, job=OTHER_JOB))
    run.consumed(gradient(1, first))
    run.sum_to_server(gradient(2, first), 0, 1, 2)
    assert "released" not in run.events()


def an_acknowledgement_follows_its_tree(run: Run) -> None:
    """Whatever its other fields say."""
    run.consumed(gradient(0))
    for switch_number in (NEXT_NUMBER, OWN_NUMBER):
        packet = Ether(answer())
        packet[Gradient].switch_number = switch_number
        packet[Gradient].worker_bitmap = 1
        run.answered(bytes(packet))
    assert run.events() == {"claimed": 1, "released": 1}


def sums_of_switches_are_added_too(run: Run) -> None:
    """A partial sum from another switch counts for all its workers; an overlapping one is not added."""

    def partial(bitmap: int, value: int) -> bytes:
        packet = Ether(gradient(0, value=value, fan_in=4))
        packet[Gradient].worker_bitmap = bitmap
        packet[Gradient].flags = Flags.PARTIAL
        return bytes(packet)

    run.consumed(partial(0b0011, 10))
    run.single_to_server(partial(0b0110, 1000))
    out = run.to_server(partial(0b1100, 5))[Gradient]
    assert (out.lanes, out.worker_bitmap) == ([15] * LANES, 0b1111)
    assert run.events()["overlap"] == 1


def a_sum_begins_its_way_with_a_ttl_of_its_own(run: Run) -> None:
    """However far the packet came that made it leave: the last gradient, a retry, or a resend."""
    run.consumed(expiring(gradient(0)))
    run.consumed(gradient(1))
    for last in (gradient(2), gradient(0, flags=Flags.RETRY), resend(1)):
        packet = run.to_server(expiring(last))
        assert (packet[Gradient].lanes, packet[IP].ttl) == (values(0, 1, 2), 63)
    # What is not summed here is forwarded, and forwarding ends with its TTL.
    run.consumed(expiring(gradient(0)))
    assert run.to_server(expiring(gradient(0), ttl=2))[IP].ttl == 1
    assert run.events()["stale"] == 2


def other_switches_packets_pass(run: Run) -> None:
    packet = parsed(only(run.switch.exchange(2, gradient(0, switch_number=NEXT_NUMBER)), ONWARD_PORT))
    assert packet[Gradient].switch_number == NEXT_NUMBER
    assert packet[Gradient].lanes == values(0)
    assert packet[IP].ttl == 63
    # A job without a role here is none of our business either.
    packet = parsed(only(run.switch.exchange(2, gradient(0, job=77)), SERVER_PORT))
    assert (packet[Gradient].switch_number, packet[Gradient].lanes) == (OWN_NUMBER, values(0))


def ordinary_packets_are_routed(run: Run) -> None:
    ping = Ether(src="02:00:00:00:01:00", dst="02:00:00:00:00:01") / IP(dst=SERVER_IP, ttl=9) / ICMP() / b"hello"
    packet = parsed(only(run.switch.exchange(2, bytes(ping)), SERVER_PORT))
    assert (packet.src, packet.dst, packet[IP].ttl) == ("02:00:00:00:00:01", "02:00:00:00:00:aa", 8)
    assert packet[Raw].load == b"hello"
    # Another number of lanes, or another version: UDP like any other.
    for other in (gradient(0) + bytes(4), gradient(0)):
        packet = Ether(other)
        if len(other) == frame_bytes(LANES):
            packet[Gradient].version = 1
        else:
            packet[IP].len += 4
            packet["UDP"].len += 4
            del packet[IP].chksum
        assert only(run.switch.exchange(2, bytes(packet)), SERVER_PORT)[-LANES * 4 :] == bytes(packet)[-LANES * 4 :]
    assert run.events() == {}


def parts_of_ipv4_packets_are_routed(run: Run) -> None:
    """What looks like a gradient there is the middle of something else."""
    packet = Ether(gradient(0))
    packet[IP].frag = 1
    del packet[IP].chksum
    out = only(run.switch.exchange(2, bytes(packet)), SERVER_PORT)
    assert out[34:] == bytes(packet)[34:]
    assert run.events() == {}


def bad_packets_are_dropped(run: Run) -> None:
    good = gradient(0)
    for offset in (24, 20):  # header checksum, a flag that it covers
        run.consumed(good[:offset] + bytes([good[offset] ^ 0x40]) + good[offset + 1 :])
    run.consumed(good[:-4])  # shorter than its UDP length says
    run.consumed(good[:30])
    run.consumed(bytes(Ether(dst="02:00:00:00:00:01", type=0x88B5) / b"not IP at all"))
    run.consumed(bytes(Ether(dst="02:00:00:00:00:01") / IP(dst="10.9.9.9") / ICMP()))
    run.consumed(bytes(Ether(dst="02:00:00:00:00:01") / IP(dst=SERVER_IP, ttl=1) / ICMP()))
    run.consumed(bytes(Ether(dst="02:00:00:00:00:01") / IP(dst=SERVER_IP, options=b"\x01\x01\x01\x00") / ICMP()))
    assert run.events() == {}


def counters_count_whole_frames(run: Run) -> None:
    size = frame_bytes(LANES)
    run.consumed(gradient(0))
    run.consumed(gradient(1), port=3)
    run.consumed(gradient(1), port=3)
    run.to_server(gradient(2))
    run.switch.exchange(SERVER_PORT, answer())
    assert run.switch.counter("gradient_in") == {2: (2, 2 * size), 3: (2, 2 * size)}
    assert run.switch.counter("gradient_out") == {SERVER_PORT: (1, size)}
    assert run.switch.counter("acknowledgement_in") == {SERVER_PORT: (1, size)}
    assert run.switch.counter("acknowledgement_out") == {2: (1, size), 3: (1, size)}


# ---- Retries: what is sent again, in case it was lost ----


def retry(worker: int, number: int = 0, **fields: int) -> bytes:
    return gradient(worker, number, flags=Flags.RETRY, **fields)  # type: ignore[arg-type]


def a_retry_of_a_lost_packet_completes_the_sum(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(2))
    header = run.to_server(retry(1))[Gradient]
    assert (header.worker_bitmap, int(header.flags)) == (0b111, Flags.PARTIAL | Flags.RETRY)
    assert run.events() == {"claimed": 1, "added": 2, "completed": 1}


def a_retry_leaves_an_incomplete_sum_where_it_is(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.consumed(retry(0))
    run.consumed(retry(1))
    assert run.events() == {"claimed": 1, "added": 1, "duplicate": 2}
    run.sum_to_server(gradient(2), 0, 1, 2)


def one_workers_retry_repeats_a_lost_sum(run: Run) -> None:
    for worker in (1, 2):
        run.consumed(gradient(worker))
    run.sum_to_server(gradient(0), 0, 1, 2)
    for _ in range(2):
        run.consumed(retry(1))
        run.consumed(retry(2))
        run.sum_to_server(retry(0), 0, 1, 2)
    run.consumed(gradient(0))
    assert run.events() == {"claimed": 1, "added": 2, "completed": 1, "duplicate": 5, "repeated": 2}
    run.answered(answer())
    run.single_to_server(retry(0))
    assert run.events()["released"] == 1


def a_retry_never_claims(run: Run) -> None:
    run.single_to_server(retry(0))
    run.consumed(gradient(1))
    assert run.events() == {"resend_single": 1, "claimed": 1}


def a_sum_that_was_repeated_can_still_be_taken_along(run: Run) -> None:
    run.consumed(gradient(0, fan_in=2))
    run.sum_to_server(gradient(1, fan_in=2), 0, 1)
    run.sum_to_server(retry(0, fan_in=2), 0, 1)
    run.sum_to_server(resend(1, fan_in=2), 0, 1)
    run.single_to_server(retry(0, fan_in=2))


def late_packets_are_summed_like_others(run: Run) -> None:
    run.consumed(gradient(0, fan_in=2))
    header = run.to_server(gradient(1, fan_in=2, flags=Flags.LATE))[Gradient]
    assert (header.worker_bitmap, int(header.flags)) == (0b11, Flags.PARTIAL | Flags.LATE)


@on_every_pair
@in_sandbox
def test_behaviours(kind: str, compiler: str, tmp_path: Path) -> None:
    """All of them on one switch, which gets the program anew for each."""
    assert failures_of_one_switch(__name__, kind, compiler, tmp_path) == []
