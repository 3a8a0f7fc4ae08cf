"""Gradient packets for tests of p4src/aggregation.p4, and a switch or two that they are sent through."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from gradbed.controller.planning.entries import congestion_threshold, ipv4_route, multicast_route
from gradbed.controller.planning.plan import MulticastGroup, SwitchPlan
from gradbed.controller.systems.aggregation.job_plan import (
    RECLAIM_DISTANCE,
    SlotRange,
    aggregation_role,
    designated_route,
)
from gradbed.experiments.systems.aggregation.metrics import EVENT_JOBS, event_at
from gradbed.formats.aggregation import GRADIENT_PORT, Flags, SlotPolicy
from gradbed.formats.datagram import CE, ECN_MASK, ECT_0
from gradbed.hosts.systems.aggregation.gradient import Gradient, gradient_frame
from tests.p4.behaviours import failures
from tests.p4.switch_under_test import SwitchUnderTest, only, switch_under_test

LANES = 32
DYNAMIC_SLOTS = 8
SLOTS = 16
PORTS = 5
SERVER_PORT, ONWARD_PORT, MARKING_PORT = 1, 4, 5
GROUP_PORTS = (2, 3)
GROUP = 9
OWN_NUMBER, NEXT_NUMBER = 20, 21
JOB, OTHER_JOB, STATIC_JOB, LONE_SLOT_JOB = 1, 2, 3, 4
LATER_JOB = EVENT_JOBS + 5
"""Its events are in the row of job 5."""
SERVER_IP, MARKED_SERVER_IP, GROUP_IP = "10.0.0.2", "10.0.7.2", "239.66.0.1"

DEFINES = {
    "LANES": str(LANES),
    "SLOTS": str(SLOTS),
    "RECLAIM_IDLE_TICKS": str(0x3FFF),  # never, however slow the test
}

ROLES: dict[int, tuple[SlotPolicy, SlotRange]] = {
    JOB: ("dynamic", SlotRange(0, DYNAMIC_SLOTS)),
    OTHER_JOB: ("dynamic", SlotRange(0, DYNAMIC_SLOTS)),
    STATIC_JOB: ("static", SlotRange(8, 3)),
    LONE_SLOT_JOB: ("static", SlotRange(11, 1)),
    LATER_JOB: ("static", SlotRange(9, 2)),  # as if STATIC_JOB were gone
}


def switch_plan(own_number: int, onward_number: int) -> SwitchPlan:
    """Of a switch that sums for some jobs. Packets for other numbers leave by ONWARD_PORT, those for the server by
    SERVER_PORT, or, for a second address of it, by a port that marks all that it can."""
    return SwitchPlan.of(
        "aggregation",
        [
            ipv4_route(IPv4Network("10.0.0.0/24"), SERVER_PORT, "02:00:00:00:00:aa"),
            ipv4_route(IPv4Network("10.0.7.0/24"), MARKING_PORT, "02:00:00:00:00:aa"),
            multicast_route(IPv4Address(GROUP_IP), GROUP),
            designated_route(onward_number, ONWARD_PORT),
            congestion_threshold(MARKING_PORT, 0),
            congestion_threshold(SERVER_PORT, 1000),
            *(aggregation_role(job, own_number, policy, slot_range) for job, (policy, slot_range) in ROLES.items()),
        ],
        [MulticastGroup(id=GROUP, ports=GROUP_PORTS)],
    )


def values(*workers: int) -> list[int]:
    """The sum of these workers' lanes: worker w's lane i is (w + 1) * 1000 + i."""
    return [sum((worker + 1) * 1000 + i for worker in workers) for i in range(LANES)]


def bitmap(*workers: int) -> int:
    return sum(1 << worker for worker in workers)


def gradient(
    worker: int,
    number: int = 0,
    *,
    job: int = JOB,
    value: int | None = None,
    flags: int = 0,
    switch_number: int = OWN_NUMBER,
    fan_in: int = 3,
    next_switch: int = 0,
    next_fan_in: int = 0,
    magnitude: int | None = None,
    tos: int = ECT_0,
    dst_ip: str = SERVER_IP,
) -> bytes:
    """A worker's own gradient, with `value` in all lanes if there is one."""
    return bytes(
        gradient_frame(
            src_mac=f"02:00:00:00:01:0{worker}",
            dst_mac="02:00:00:00:00:01",
            src_ip=f"10.0.1.{worker + 2}",
            dst_ip=dst_ip,
            job=job,
            packet_number=number,
            worker_bitmap=1 << worker,
            lanes=values(worker) if value is None else [value] * LANES,
            flags=flags,
            switch_number=switch_number,
            fan_in=fan_in,
            next_switch=next_switch,
            next_fan_in=next_fan_in,
            magnitude=magnitude,
            tos=tos,
        )
    )


def resend(worker: int, number: int = 0, **fields: int) -> bytes:
    return gradient(worker, number, flags=Flags.RESEND, **fields)  # type: ignore[arg-type]


def expiring(frame: bytes, ttl: int = 1) -> bytes:
    """The frame after so many hops that this TTL is left."""
    packet = Ether(frame)
    packet[IP].ttl = ttl
    del packet[IP].chksum
    return bytes(packet)


def answer(number: int = 0, *, job: int = JOB, flags: int = Flags.ACK, dst_ip: str = GROUP_IP) -> bytes:
    """The server's ACK to all workers, or with Flags.NACK its request."""
    return bytes(
        gradient_frame(
            src_mac="02:00:00:00:00:aa",
            dst_mac="01:00:5e:42:00:01",
            src_ip=SERVER_IP,
            dst_ip=dst_ip,
            job=job,
            packet_number=number,
            worker_bitmap=7,
            lanes=() if flags & Flags.NACK else range(LANES),
            flags=flags,
        )
    )


def parsed(frame: bytes) -> Packet:
    """The packet, whose IPv4 checksum is right and whose UDP source port says what it must."""
    packet = Ether(frame)
    header = packet[IP].copy()
    del header.chksum
    assert IP(bytes(header)).chksum == packet[IP].chksum
    if Gradient in packet:
        designated = 0 if packet[Gradient].flags & Flags.ACK else packet[Gradient].switch_number
        assert packet[UDP].sport == (designated or GRADIENT_PORT)
        assert packet[UDP].chksum == 0
    return packet


def congestion_of(packet: Packet) -> tuple[bool, bool]:
    """(marked CE, flag CONGESTION)."""
    return packet[IP].tos & ECN_MASK == CE, bool(packet[Gradient].flags & Flags.CONGESTION)


def slot_of(number: int, job: int = JOB) -> int:
    """The slot of a job with hashed slots: CRC-32 (IEEE 802.3) of job and number, then MurmurHash3's fmix32."""
    mixed = zlib.crc32(job.to_bytes(2, "big") + number.to_bytes(4, "big"))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed = (mixed ^ mixed >> shift) * factor & 0xFFFFFFFF
    return mixed % DYNAMIC_SLOTS


def colliding_numbers() -> tuple[int, int]:
    """Two packet numbers of JOB that share a slot."""
    return 0, next(number for number in range(1, RECLAIM_DISTANCE) if slot_of(number) == slot_of(0))


class Run:
    """One switch for one test."""

    def __init__(self, switch: SwitchUnderTest) -> None:
        self.switch = switch

    def events(self, *jobs: int) -> dict[str, int]:
        """By name, of these jobs together; without any, of all."""
        found: Counter[str] = Counter()
        for index, (packets, _) in self.switch.counter("events").items():
            job, name = event_at(index)
            if not jobs or job in {each % EVENT_JOBS for each in jobs}:
                found[name] += packets
        return dict(found)

    def consumed(self, frame: bytes, port: int = 2) -> None:
        assert self.switch.exchange(port, frame) == {}

    def to_server(self, frame: bytes, port: int = 2, out: int = SERVER_PORT) -> Packet:
        return parsed(only(self.switch.exchange(port, frame), out))

    def sum_to_server(self, frame: bytes, *workers: int) -> None:
        header = self.to_server(frame)[Gradient]
        assert header.lanes == values(*workers)
        assert header.worker_bitmap == bitmap(*workers)
        assert header.magnitude == sum(max(values(worker)) for worker in workers)
        assert header.flags & Flags.PARTIAL
        assert (header.switch_number, header.fan_in) == (0, 0)

    def single_to_server(self, frame: bytes, extra_flags: int = 0) -> None:
        """Unsummed: as it came in, but for the designated switch that it has now passed."""
        header, sent = self.to_server(frame)[Gradient], Ether(frame)[Gradient]
        assert (header.switch_number, header.fan_in, header.next_switch, header.next_fan_in) == (0, 0, 0, 0)
        assert (header.lanes, header.worker_bitmap, header.magnitude) == (
            sent.lanes,
            sent.worker_bitmap,
            sent.magnitude,
        )
        assert header.flags == sent.flags | extra_flags

    def answered(self, frame: bytes) -> None:
        """An ACK passes through to all workers."""
        assert set(self.switch.exchange(SERVER_PORT, frame)) == set(GROUP_PORTS)


@dataclass
class TwoLevels:
    """Two switches in a row; the far one is the server's ToR, so everything passes through it."""

    near: Run
    far: Run

    def onwards(self, frame: bytes) -> list[bytes]:
        """What the near switch sends towards the server because of this frame."""
        out = self.near.switch.exchange(2, frame)
        assert set(out) <= {SERVER_PORT, ONWARD_PORT}
        for port, frames in out.items():
            for each in frames:
                assert (parsed(each)[Gradient].switch_number == NEXT_NUMBER) == (port == ONWARD_PORT)
        return [each for frames in out.values() for each in frames]

    def into_far(self, frame: bytes) -> list[Packet]:
        """What reaches the server because of a frame that reaches the far switch."""
        out = self.far.switch.exchange(ONWARD_PORT, frame)
        assert set(out) <= {SERVER_PORT}
        return [parsed(each) for each in out.get(SERVER_PORT, [])]

    def at_server(self, frame: bytes) -> list[Gradient]:
        """What reaches the server because of a frame that reaches the near switch."""
        return [packet[Gradient] for each in self.onwards(frame) for packet in self.into_far(each)]

    def answered(self, frame: bytes) -> None:
        """The server's ACK, through both switches."""
        copies = self.far.switch.exchange(SERVER_PORT, frame)
        assert set(copies) == set(GROUP_PORTS)
        assert set(self.near.switch.exchange(ONWARD_PORT, copies[2][0])) == set(GROUP_PORTS)


def failures_of_one_switch(
    module: str, kind: str, compiler: str, folder: Path, defines: Mapping[str, str] = DEFINES
) -> list[str]:
    """Of all behaviours of a `Run` in a module, on one switch."""
    plan = switch_plan(OWN_NUMBER, NEXT_NUMBER)
    with switch_under_test(kind, compiler, "aggregation", defines, plan, PORTS, folder) as switch:
        return failures(module, [switch], Run(switch))
