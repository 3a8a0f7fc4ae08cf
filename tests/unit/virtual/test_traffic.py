"""Generators and sinks: rates, times and counts are exact; Poisson's pauses are drawn from the seed."""

from __future__ import annotations

import functools
import math
import struct
from dataclasses import replace
from decimal import Decimal
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gradbed.common.errors import UserError
from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.engine_network import InterfaceConfig, LinkConfig, NetworkConfig, SwitchConfig
from gradbed.switch.virtual import Generator, SimulatedNetwork
from gradbed.topo.link import LinkModel

GENERATOR = Generator(
    src_mac=bytes.fromhex("020000000001"),
    dst_mac=bytes.fromhex("020000000002"),
    src_ip=IPv4Address("10.0.0.1"),
    dst_ip=IPv4Address("10.0.0.2"),
    rate_bps=8_000_000,
    frame_bytes=100,
    dst_port=5000,
)


PERFECT = LinkModel()


@functools.cache
def to_port_2() -> BuiltProgram:
    return build_program(compile_p4(Path(__file__).with_name("to_port_2.p4")).json)


def network_of(link: LinkModel) -> SimulatedNetwork:
    """One switch that sends everything to port 2."""
    config = NetworkConfig(
        switches=(SwitchConfig(device_id=1),),
        interfaces=tuple(InterfaceConfig(device_id=1, port=i, interface=f"s1-eth{i}", link=link) for i in (1, 2)),
    )
    simulated = SimulatedNetwork(config)
    simulated.devices[1].load(to_port_2())
    return simulated


def arrivals(generator: Generator, link: LinkModel = PERFECT) -> list[tuple[int, bytes]]:
    with network_of(link) as simulated:
        host = simulated.interface(1, 2)
        simulated.add_generator(1, 1, generator)
        seen = []
        while not (stop := simulated.run_until(None)).idle or stop.interfaces:
            buffer, lengths = host.receive()
            frames = [bytes(row[:length]) for row, length in zip(buffer, lengths, strict=True)]
            seen += list(zip(map(int, host.times_ns), frames, strict=True))
        return seen


def test_the_frames_are_udp_with_number_time_and_zeros() -> None:
    [(_, first), (time_ns, second)] = arrivals(replace(GENERATOR, packets=2))
    assert first[:14] == GENERATOR.dst_mac + GENERATOR.src_mac + b"\x08\x00"
    version, _, ip_bytes, _, _, ttl, protocol, _, source, destination = struct.unpack("!BBHHHBBH4s4s", first[14:34])
    assert (version, ip_bytes, ttl, protocol) == (0x45, 86, 64, 17)
    assert (source, destination) == (GENERATOR.src_ip.packed, GENERATOR.dst_ip.packed)
    words = sum(struct.unpack("!10H", first[14:34]))
    assert (words & 0xFFFF) + (words >> 16) == 0xFFFF
    assert struct.unpack("!4H", first[34:42]) == (9, 5000, 66, 0)
    assert struct.unpack("!QQ", first[42:58]) == (0, 0)
    assert first[58:] == bytes(42)
    assert struct.unpack("!QQ", second[42:58]) == (1, time_ns)


def test_copies_that_links_make_have_all_that_the_frames_have() -> None:
    seen = arrivals(replace(GENERATOR, packets=20, frame_bytes=1500), LinkModel(duplicate=0.999))
    assert len(seen) > 60
    for time_ns, frame in seen:
        number, sent_ns = struct.unpack("!QQ", frame[42:58])
        assert (sent_ns, number) == (time_ns, time_ns // 1_500_000)
        assert frame[58:] == bytes(1442)


def test_a_constant_rate_is_exact_in_the_long_run() -> None:
    # 800 bits at 7 Mbit/s: 114,285.7 ns.
    generator = replace(GENERATOR, rate_bps=7_000_000, start_ns=500, packets=1000)
    times_ns = [time_ns for time_ns, _ in arrivals(generator)]
    assert times_ns == [500 + number * 800 * 10**9 // 7_000_000 for number in range(1000)]


def test_it_sends_from_its_start_to_its_stop() -> None:
    generator = replace(GENERATOR, start_ns=1000, stop_ns=301_000)
    assert [time_ns for time_ns, _ in arrivals(generator)] == [1000, 101_000, 201_000]
    assert arrivals(replace(GENERATOR, stop_ns=0)) == []


def test_poisson_pauses_have_the_mean_and_the_spread_of_an_exponential_distribution() -> None:
    count = 20_000
    generator = replace(GENERATOR, poisson=True, seed=3, packets=count)
    times_ns = [time_ns for time_ns, _ in arrivals(generator)]
    pauses = [b - a for a, b in pairwise([0, *times_ns])]
    # Five standard deviations each.
    mean = sum(pauses) / count
    assert abs(mean / 100_000 - 1) < 5 / math.sqrt(count)
    longer = sum(pause > 100_000 for pause in pauses) / count
    assert abs(longer - math.exp(-1)) < 5 * math.sqrt(math.exp(-1) * (1 - math.exp(-1)) / count)
    shorter = sum(pause < 10_000 for pause in pauses) / count
    assert abs(shorter - (1 - math.exp(-0.1))) < 5 * math.sqrt(0.09 / count)
    assert max(pauses) > 700_000


def test_the_seed_decides_and_the_machine_does_not() -> None:
    def start(seed: int) -> list[int]:
        return [time_ns for time_ns, _ in arrivals(replace(GENERATOR, poisson=True, seed=seed, packets=4))]

    assert start(1) == start(1)
    assert start(1) != start(2)
    assert start(3) == expected_poisson_ns(3, 4)


def expected_poisson_ns(seed: int, count: int) -> list[int]:
    """The same times by another way: SplitMix64 and Python's decimal logarithms."""

    def splitmix(state: int) -> tuple[int, int]:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return state, z ^ z >> 31

    _, state = splitmix(seed)
    at, times_ns = Decimal(0), []
    for _ in range(count):
        state, drawn = splitmix(state)
        at += -(Decimal(drawn | 1) / 2**64).ln() * 100_000
        times_ns.append(int(at))
    return times_ns


def test_a_sink_counts_packets_bytes_and_latency() -> None:
    # Two links of 100 us each at a byte per microsecond: 400 us; every second frame waits for nothing.
    link = LinkModel(rate_bps=8_000_000, delay_us=100)
    with network_of(link) as simulated:
        host = simulated.interface(1, 2)
        simulated.add_sink(1, 2, 5000)
        simulated.add_generator(1, 1, replace(GENERATOR, rate_bps=4_000_000, packets=10))
        simulated.add_generator(1, 1, replace(GENERATOR, rate_bps=4_000_000, packets=5, dst_port=5001))
        assert simulated.run_until(None).interfaces == (host,)
        while not simulated.run_until(None).idle:
            pass
        assert len(host.receive()[1]) == 5
        sink = simulated.sink_statistics(1, 2)
    assert (sink.packets, sink.bytes) == (10, 1000)
    assert (sink.first_ns, sink.last_ns) == (400_000, 400_000 + 9 * 200_000)
    assert (sink.latency_ns_min, sink.latency_ns_max, sink.latency_ns_total) == (400_000, 400_000, 4_000_000)
    assert [(place, count) for place, count in enumerate(sink.latency_counts) if count] == [(19, 10)]


def test_a_sink_takes_what_generators_sent_only() -> None:
    with network_of(LinkModel()) as simulated:
        left, right = simulated.interface(1, 1), simulated.interface(1, 2)
        simulated.add_sink(1, 2)
        udp = GENERATOR.header() + bytes(58)
        others = [
            udp[:57],
            udp[:12] + b"\x86\xdd" + udp[14:],
            udp[:14] + b"\x46" + udp[15:],
            udp[:23] + b"\6" + udp[24:],
        ]
        for sent in (udp, *others):
            left.send(np.frombuffer(sent, np.uint8)[None])
        simulated.run_until(None)
        buffer, lengths = right.receive()
        assert [bytes(row[:length]) for row, length in zip(buffer, lengths, strict=True)] == others
        assert simulated.sink_statistics(1, 2).packets == 1


def test_mistakes_are_told() -> None:
    for wrong in ({"frame_bytes": 57}, {"frame_bytes": 65_554}, {"rate_bps": 0}):
        with pytest.raises(UserError):
            replace(GENERATOR, **wrong)
    with network_of(LinkModel()) as simulated:
        simulated.add_sink(1, 2)
        for attempt in (
            lambda: simulated.add_generator(1, 9, GENERATOR),
            lambda: simulated.add_sink(1, 2),
            lambda: simulated.add_sink(2, 1),
            lambda: simulated.sink_statistics(1, 1),
        ):
            with pytest.raises(UserError):
                attempt()


def test_many_timers_and_a_cable_of_several_channels(tmp_path: Path) -> None:
    """From 1,024 timers on the engine sends for what the next ones need: channels know it by their cable alone."""
    source = Path(__file__).with_name("to_port_2.p4").read_text()
    (tmp_path / "to_port_2.p4").write_text(
        source.replace("std.egress_spec = 2;", "std.egress_spec = 2; std.priority = 1;")
    )
    program = build_program(compile_p4(tmp_path / "to_port_2.p4").json)
    config = NetworkConfig(
        switches=(SwitchConfig(device_id=1), SwitchConfig(device_id=2)),
        interfaces=tuple(
            InterfaceConfig(device_id=i, port=i, interface=f"s{i}-eth{i}", link=LinkModel()) for i in (1, 2)
        ),
        links=(LinkConfig(a=(1, 2), b=(2, 1), link=LinkModel(delay_us=1000, channels=2, queue_packets=5000)),),
    )
    with SimulatedNetwork(config) as simulated:
        for device in simulated.devices.values():
            device.load(program)
        simulated.add_sink(2, 2)
        # Each sends every millisecond, and what it sent arrives when all send again.
        for _ in range(1100):
            simulated.add_generator(1, 1, replace(GENERATOR, rate_bps=800_000, packets=3))
        assert simulated.run_until(None).idle
        assert simulated.sink_statistics(2, 2).packets == 3 * 1100
