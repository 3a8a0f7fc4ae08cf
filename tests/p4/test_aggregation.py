"""p4src/aggregation.p4, packet by packet, on our switch and on BMv2 where it is installed."""

from __future__ import annotations

import traceback
import zlib
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from controller.planning.plan import Lpm, MulticastGroup, SwitchPlan, TableEntry
from experiments.outcome import EVENTS
from hosts.protocols.gradient import Gradient, gradient_frame
from hosts.protocols.gradient_format import Flags, frame_bytes
from tests.emulation.sandboxed import in_sandbox
from tests.p4.switch_under_test import COMPILERS, KINDS, SwitchUnderTest, only, switch_under_test

pytestmark = pytest.mark.root

LANES = 32
SLOTS = 8
RECLAIM_DISTANCE = 64
SERVER_PORT, GROUP = 1, 9
OWN_NUMBER, OTHER_NUMBER = 20, 21
OTHER_PORT = 4
JOB, OTHER_JOB = 1, 2
SERVER_IP, GROUP_IP = "10.0.0.2", "239.66.0.1"


def address(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


PLAN = SwitchPlan.of(
    "aggregation",
    [
        TableEntry(
            table="ipv4_routes",
            match={"hdr.ipv4.dst_addr": Lpm(value=address("10.0.0.0"), prefix_bits=24)},
            action="forward",
            params={"port": SERVER_PORT, "dst_mac": 0x0200000000AA},
        ),
        TableEntry(
            table="multicast_routes",
            match={"hdr.ipv4.dst_addr": address(GROUP_IP)},
            action="replicate",
            params={"group": GROUP},
        ),
        TableEntry(
            table="designated_routes",
            match={"hdr.gradient.switch_number": OTHER_NUMBER},
            action="towards_designated",
            params={"port": OTHER_PORT},
        ),
        *(
            TableEntry(
                table="roles",
                match={"hdr.gradient.job": job, "hdr.gradient.switch_number": OWN_NUMBER},
                action="aggregate",
            )
            for job in (JOB, OTHER_JOB)
        ),
    ],
    [MulticastGroup(id=GROUP, ports=(2, 3))],
)


def gradient(
    worker: int,
    number: int = 0,
    *,
    job: int = JOB,
    value: int | None = None,
    resend: bool = False,
    switch_number: int = OWN_NUMBER,
    fan_in: int = 3,
) -> bytes:
    """Worker w's lane i is (w + 1) * 1000 + i unless `value` is given for all lanes."""
    lanes = [(worker + 1) * 1000 + i if value is None else value for i in range(LANES)]
    return bytes(
        gradient_frame(
            src_mac=f"02:00:00:00:01:0{worker}",
            dst_mac="02:00:00:00:00:01",
            src_ip=f"10.0.1.{worker + 2}",
            dst_ip=SERVER_IP,
            job=job,
            packet_number=number,
            worker_bitmap=1 << worker,
            lanes=lanes,
            flags=Flags.RESEND if resend else 0,
            switch_number=switch_number,
            fan_in=fan_in,
        )
    )


def acknowledgement(number: int = 0, *, job: int = JOB, dst_ip: str = GROUP_IP) -> bytes:
    return bytes(
        gradient_frame(
            src_mac="02:00:00:00:00:aa",
            dst_mac="01:00:5e:42:00:01",
            src_ip=SERVER_IP,
            dst_ip=dst_ip,
            job=job,
            packet_number=number,
            worker_bitmap=7,
            lanes=range(LANES),
            flags=Flags.ACK,
            switch_number=OWN_NUMBER,
            fan_in=3,
        )
    )


def parsed(frame: bytes) -> Packet:
    packet = Ether(frame)
    header = packet[IP].copy()
    del header.chksum
    assert IP(bytes(header)).chksum == packet[IP].chksum
    return packet


def lanes(*workers: int) -> list[int]:
    """The sum of these workers' lanes."""
    return [sum((worker + 1) * 1000 + i for worker in workers) for i in range(LANES)]


def events(switch: SwitchUnderTest) -> dict[str, int]:
    return {EVENTS[index]: packets for index, (packets, _) in switch.counter("events").items()}


class Run:
    """The body of one test on one switch; each test_ function below runs it in a sandbox."""

    def __init__(self, switch: SwitchUnderTest) -> None:
        self.switch = switch

    def consumed(self, frame: bytes, port: int = 2) -> None:
        assert self.switch.exchange(port, frame) == {}

    def to_server(self, frame: bytes, port: int = 2) -> Gradient:
        packet = parsed(only(self.switch.exchange(port, frame), SERVER_PORT))
        assert packet[IP].dst == SERVER_IP
        return packet[Gradient]

    def sum_to_server(self, frame: bytes, *workers: int) -> None:
        out = self.to_server(frame)
        assert out.lanes == lanes(*workers)
        assert out.worker_bitmap == sum(1 << worker for worker in workers)
        assert out.flags & Flags.PARTIAL
        assert out.switch_number == 0

    def single_to_server(self, frame: bytes) -> None:
        """Unsummed: as it came in, but for the designated switch that it has now passed."""
        out, sent = self.to_server(frame), Ether(frame)[Gradient]
        assert out.switch_number == 0
        assert (out.lanes, out.worker_bitmap, out.flags) == (sent.lanes, sent.worker_bitmap, sent.flags)


def slot_of(number: int) -> int:
    """The slot of JOB's packet: CRC-32 (IEEE 802.3) of job and packet number."""
    return zlib.crc32(JOB.to_bytes(2, "big") + number.to_bytes(4, "big")) % SLOTS


def colliding_numbers() -> tuple[int, int]:
    """Two packet numbers of JOB that share a slot."""
    return 0, next(number for number in range(1, RECLAIM_DISTANCE) if slot_of(number) == slot_of(0))


def sums_and_frees(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.sum_to_server(gradient(2), 0, 1, 2)
    out = run.switch.exchange(SERVER_PORT, acknowledgement())
    assert {port: len(frames) for port, frames in out.items()} == {2: 1, 3: 1}
    for frames in out.values():
        packet = parsed(frames[0])
        assert packet.dst == "01:00:5e:42:00:01"
        assert packet[IP].ttl == 63
        assert packet[Gradient].lanes == list(range(LANES))
    assert events(run.switch) == {"claimed": 1, "added": 2, "completed": 1, "released": 1}


def a_slot_is_used_again(run: Run) -> None:
    for number in range(4 * SLOTS):
        run.consumed(gradient(0, number))
        run.consumed(gradient(1, number))
        run.sum_to_server(gradient(2, number), 0, 1, 2)
        run.switch.exchange(SERVER_PORT, acknowledgement(number))
    assert events(run.switch)["released"] == 4 * SLOTS


def duplicates_do_no_harm(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.consumed(gradient(0))
    run.sum_to_server(gradient(2), 0, 1, 2)
    run.consumed(gradient(2))
    assert events(run.switch)["duplicate"] == 3


def a_taken_slot_sends_packets_on_unsummed(run: Run) -> None:
    first, second = colliding_numbers()
    run.consumed(gradient(0, first))
    run.single_to_server(gradient(0, second))
    run.consumed(gradient(1, first))
    run.single_to_server(gradient(1, second))
    run.sum_to_server(gradient(2, first), 0, 1, 2)
    assert events(run.switch)["collision"] == 2


def jobs_are_told_apart(run: Run) -> None:
    """The same packet number of two jobs is two fragments, whether or not they share a slot."""
    run.consumed(gradient(0, job=JOB))
    out = run.switch.exchange(2, gradient(1, job=OTHER_JOB))
    run.consumed(gradient(1, job=JOB))
    run.sum_to_server(gradient(2, job=JOB), 0, 1, 2)
    if out:  # the slot was taken
        assert parsed(only(out, SERVER_PORT))[Gradient].lanes == lanes(1)
    else:
        run.consumed(gradient(0, job=OTHER_JOB))
        run.sum_to_server(gradient(2, job=OTHER_JOB), 0, 1, 2)


def sums_wrap_as_int32_does(run: Run) -> None:
    run.consumed(gradient(0, value=2**31 - 1))
    run.consumed(gradient(1, value=1))
    assert run.to_server(gradient(2, value=-5)).lanes == [-(2**31) - 5 + 2**32] * LANES


def a_resend_takes_the_sum_along(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.sum_to_server(gradient(0, resend=True), 0, 1)
    # The slot is free and stays so: what comes late goes on alone.
    run.single_to_server(gradient(2))
    run.single_to_server(gradient(1, resend=True))
    assert events(run.switch) == {"claimed": 1, "added": 1, "resend_summed": 1, "stale": 1, "resend_single": 1}


def a_resend_of_a_lost_packet_is_added(run: Run) -> None:
    run.consumed(gradient(0))
    run.sum_to_server(gradient(1, resend=True), 0, 1)


def a_resend_repeats_a_lost_sum(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.sum_to_server(gradient(2), 0, 1, 2)
    run.sum_to_server(gradient(1, resend=True), 0, 1, 2)


def a_resend_never_claims(run: Run) -> None:
    run.single_to_server(gradient(0, resend=True))
    run.consumed(gradient(1))
    assert events(run.switch) == {"resend_single": 1, "claimed": 1}


def late_copies_do_not_claim_a_freed_slot(run: Run) -> None:
    first, second = colliding_numbers()
    for worker in (0, 1):
        run.consumed(gradient(worker, second))
    run.sum_to_server(gradient(2, second), 0, 1, 2)
    run.switch.exchange(SERVER_PORT, acknowledgement(second))
    run.single_to_server(gradient(0, second))
    run.single_to_server(gradient(0, first))
    assert events(run.switch)["stale"] == 2


def packet_numbers_wrap(run: Run) -> None:
    """The last number before the wrap is older than the first after it."""
    last = 2**32 - 1
    after = next(number for number in range(RECLAIM_DISTANCE) if slot_of(number) == slot_of(last))
    for number in (last, after):
        run.consumed(gradient(0, number))
        run.consumed(gradient(1, number))
        run.sum_to_server(gradient(2, number), 0, 1, 2)
        run.switch.exchange(SERVER_PORT, acknowledgement(number))
    run.single_to_server(gradient(0, last))


def a_much_newer_fragment_takes_an_abandoned_slot(run: Run) -> None:
    newer = next(n for n in range(RECLAIM_DISTANCE, 100 * RECLAIM_DISTANCE) if slot_of(n) == slot_of(0))
    run.consumed(gradient(0, 0))
    run.consumed(gradient(0, newer))
    run.consumed(gradient(1, newer))
    run.sum_to_server(gradient(2, newer), 0, 1, 2)
    run.single_to_server(gradient(1, 0))
    assert events(run.switch)["reclaimed"] == 1


def an_acknowledgement_frees_its_own_fragment_only(run: Run) -> None:
    first, second = colliding_numbers()
    run.consumed(gradient(0, first))
    run.switch.exchange(SERVER_PORT, acknowledgement(second))
    run.switch.exchange(SERVER_PORT, acknowledgement(first, job=OTHER_JOB))
    run.consumed(gradient(1, first))
    run.sum_to_server(gradient(2, first), 0, 1, 2)
    assert "released" not in events(run.switch)


def sums_of_switches_are_added_too(run: Run) -> None:
    """A partial sum from another switch counts for all its workers; an overlapping one is not added."""

    def partial(bitmap: int, value: int) -> bytes:
        packet = Ether(gradient(0, value=value, fan_in=4))
        packet[Gradient].worker_bitmap = bitmap
        packet[Gradient].flags = Flags.PARTIAL
        return bytes(packet)

    run.consumed(partial(0b0011, 10))
    run.single_to_server(partial(0b0110, 1000))
    out = run.to_server(partial(0b1100, 5))
    assert (out.lanes, out.worker_bitmap) == ([15] * LANES, 0b1111)
    assert events(run.switch)["overlap"] == 1


def other_switches_packets_pass(run: Run) -> None:
    packet = parsed(only(run.switch.exchange(2, gradient(0, switch_number=OTHER_NUMBER)), OTHER_PORT))
    assert packet[Gradient].switch_number == OTHER_NUMBER
    assert packet[Gradient].lanes == lanes(0)
    assert packet[IP].ttl == 63
    # A job without a role here is none of our business either.
    packet = parsed(only(run.switch.exchange(2, gradient(0, job=77)), SERVER_PORT))
    assert (packet[Gradient].switch_number, packet[Gradient].lanes) == (OWN_NUMBER, lanes(0))


def ordinary_packets_are_routed(run: Run) -> None:
    ping = Ether(src="02:00:00:00:01:00", dst="02:00:00:00:00:01") / IP(dst=SERVER_IP, ttl=9) / ICMP() / b"hello"
    packet = parsed(only(run.switch.exchange(2, bytes(ping)), SERVER_PORT))
    assert (packet.src, packet.dst, packet[IP].ttl) == ("02:00:00:00:00:01", "02:00:00:00:00:aa", 8)
    assert packet[Raw].load == b"hello"
    # Another number of lanes, or another version: UDP like any other.
    for other in (gradient(0) + bytes(4), gradient(0)):
        packet = Ether(other)
        if len(other) == frame_bytes(LANES):
            packet[Gradient].version = 2
        else:
            packet[IP].len += 4
            packet["UDP"].len += 4
            del packet[IP].chksum
        assert only(run.switch.exchange(2, bytes(packet)), SERVER_PORT)[-LANES * 4 :] == bytes(packet)[-LANES * 4 :]
    assert events(run.switch) == {}


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
    assert events(run.switch) == {}


def counters_count_whole_frames(run: Run) -> None:
    size = frame_bytes(LANES)
    run.consumed(gradient(0))
    run.consumed(gradient(1), port=3)
    run.consumed(gradient(1), port=3)
    run.to_server(gradient(2))
    run.switch.exchange(SERVER_PORT, acknowledgement())
    assert run.switch.counter("gradient_in") == {2: (2, 2 * size), 3: (2, 2 * size)}
    assert run.switch.counter("gradient_out") == {SERVER_PORT: (1, size)}
    assert run.switch.counter("acknowledgement_in") == {SERVER_PORT: (1, size)}
    assert run.switch.counter("acknowledgement_out") == {2: (1, size), 3: (1, size)}


BEHAVIOURS = (
    sums_and_frees,
    a_slot_is_used_again,
    duplicates_do_no_harm,
    a_taken_slot_sends_packets_on_unsummed,
    jobs_are_told_apart,
    sums_wrap_as_int32_does,
    a_resend_takes_the_sum_along,
    a_resend_of_a_lost_packet_is_added,
    a_resend_repeats_a_lost_sum,
    a_resend_never_claims,
    late_copies_do_not_claim_a_freed_slot,
    packet_numbers_wrap,
    a_much_newer_fragment_takes_an_abandoned_slot,
    an_acknowledgement_frees_its_own_fragment_only,
    sums_of_switches_are_added_too,
    other_switches_packets_pass,
    ordinary_packets_are_routed,
    bad_packets_are_dropped,
    counters_count_whole_frames,
)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", KINDS)
@in_sandbox
def test_behaviours(kind: str, compiler: str, tmp_path: Path) -> None:
    """All of them on one switch, which gets the program anew for each."""
    defines = {"LANES": str(LANES), "SLOTS": str(SLOTS), "RECLAIM_DISTANCE": str(RECLAIM_DISTANCE)}
    failed = []
    with switch_under_test(kind, compiler, "aggregation", defines, PLAN, 4, tmp_path) as switch:
        for behaviour in BEHAVIOURS:
            switch.renew()
            try:
                behaviour(Run(switch))
            except AssertionError:
                traceback.print_exc()
                failed.append(behaviour.__name__)
    assert failed == []
