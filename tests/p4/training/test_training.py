"""p4src/training.p4 with a clock advanced by hand: how many packets take each way, and how many leave marked."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.experiments.programs import P4_SOURCES
from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.engine import Engine
from gradbed.switch.engine.device import EngineDevice
from gradbed.topo.link import LinkModel

SWITCH, IN = 1, 1
WAYS = (2, 3, 4, 5)
RATE_BPS = 1_000_000_000
BALANCE, MARKS = "TrainingIngress.balance", "TrainingEgress.congestion"
CE = 3


def frame(number: int = 0, tos: int = 2, source_port: int = 0xC000, destination: str = "10.0.1.2") -> bytes:
    header = Ether(dst="02:01:00:00:00:01", src="02:00:00:00:00:01") / IP(src="10.0.0.2", dst=destination, tos=tos)
    return bytes(header / UDP(sport=source_port, dport=4791) / struct.pack(">Q", number))


@dataclass
class Switch:
    engine: Engine
    device: EngineDevice

    def insert(self, table: str, key: list[KeyMatch], action: str, *params: int) -> int:
        return self.device.state.tables.insert(table, key, ActionCall(action, params), 0)

    def balance(self, action: str, *params: int) -> int:
        """How packets to 10.0.1.0/24 choose among WAYS; the handle of the entry that says so."""
        handle = self.insert(
            f"{BALANCE}.destinations", [KeyMatch(0x0A000100, prefix_bits=24)], f"{BALANCE}.{action}", *params
        )
        for place, port in enumerate(WAYS):
            key = [KeyMatch(1), KeyMatch(place)]
            self.insert(f"{BALANCE}.next_hops_of_sets", key, f"{BALANCE}.forward", port, 0x020100000000 + port)
        return handle

    def left(self, *frames: bytes, pause_us: int = 0) -> list[tuple[int, bytes]]:
        """Ports and frames in the order in which they left. pause_us: between any two that come."""
        for each in frames:
            self.engine.inject(SWITCH, IN, each)
            self.engine.advance(pause_us)
        self.engine.advance(1_000_000)
        return [(port, each) for _, port, each in self.engine.drain()]

    def ways(self, *frames: bytes, pause_us: int = 0) -> Counter[int]:
        return Counter(port for port, _ in self.left(*frames, pause_us=pause_us))


@pytest.fixture
def switch() -> Iterator[Switch]:
    program = build_program(compile_p4(P4_SOURCES / "training.p4").json)
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(SWITCH)
        engine.add_open_port(SWITCH, IN)
        for port in WAYS:
            engine.add_open_port(SWITCH, port, LinkModel(rate_bps=RATE_BPS, queue_packets=10_000))
        device.load(program)
        yield Switch(engine, device)


def within(found: int, packets: int, probability: float) -> bool:
    """Six standard deviations of the binomial distribution: once in 500 million runs it is not."""
    return abs(found - packets * probability) <= 6 * (packets * probability * (1 - probability)) ** 0.5


@pytest.mark.thorough
def test_ecmp_keeps_flows_and_spreads_them(switch: Switch) -> None:
    switch.balance("ecmp", 1, len(WAYS), 7)
    assert len(switch.ways(*[frame()] * 50)) == 1
    found = switch.ways(*[frame(source_port=port) for port in range(20_000, 24_000)])
    assert found.total() == 4000 and all(within(found[port], 4000, 1 / 4) for port in WAYS)


def test_random_spraying_takes_any(switch: Switch) -> None:
    switch.balance("random_spraying", 1, len(WAYS))
    found = switch.ways(*[frame()] * 4000)
    assert found.total() == 4000 and all(within(found[port], 4000, 1 / 4) for port in WAYS)
    assert len(set(found.values())) > 1


def test_round_robin_takes_turns(switch: Switch) -> None:
    switch.balance("round_robin_spraying", 1, len(WAYS))
    assert switch.ways(*[frame()] * 102) == {2: 26, 3: 26, 4: 25, 5: 25}


def test_the_least_loaded_fills_ports_alike_whatever_waits_there(switch: Switch) -> None:
    switch.balance("least_loaded", 1, 1)
    switch.insert(f"{BALANCE}.least_loaded_of.candidates", [KeyMatch(1), KeyMatch(0)],
                  f"{BALANCE}.least_loaded_of.among", *WAYS, *[0] * 12)  # fmt: skip
    # To another destination straight by port 2: eleven packets at one moment, of which ten wait.
    switch.insert(f"{BALANCE}.destinations", [KeyMatch(0x0A000200, prefix_bits=24)], f"{BALANCE}.forward", 2, 1)
    for _ in range(11):
        switch.engine.inject(SWITCH, IN, frame(destination="10.0.2.2"))
    switch.engine.advance(0)
    assert [switch.device.state.registers.read("waiting", port * 8) for port in WAYS] == [10, 0, 0, 0]
    # One after the other into the shortest queue, ties in turn: an idle port sends one and queues nothing.
    found = switch.ways(*[frame()] * 33)
    assert found.pop(2) == 11 and set(found.values()) == {11}
    found = switch.ways(*[frame()] * 80)
    assert set(found.values()) == {20}


def test_flowlets_choose_anew_after_a_pause_alone(switch: Switch) -> None:
    switch.balance("flowlets", 1, len(WAYS), 7, 100)
    assert len(switch.ways(*[frame()] * 30, pause_us=90)) == 1
    found = switch.ways(*[frame()] * 400, pause_us=110)
    assert all(within(found[port], 400, 1 / 4) for port in WAYS)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(("k_min", "k_max", "p_max"), [(10, 410, 0.5), (0, 100, 1.0), (50, 51, 1.0)])
def test_marks_grow_from_k_min_to_k_max(switch: Switch, k_min: int, k_max: int, p_max: float) -> None:
    switch.balance("round_robin_spraying", 1, 1)
    slope = min(int(p_max * 2**32) // (k_max - k_min), 2**32 - 1)
    switch.insert(f"{MARKS}.congestion_thresholds", [KeyMatch(WAYS[0])], f"{MARKS}.mark_between", k_min, k_max, slope)
    marked: Counter[int] = Counter()
    rounds, burst = 20, 600
    for _ in range(rounds):
        # Of a burst at one moment the first is sent at once, the n-th of the others finds n - 1.
        for place, (_, each) in enumerate(switch.left(*[frame()] * burst)):
            marked[place - 1] += each[15] & 3 == CE
    assert all(marked[found] == 0 for found in range(-1, k_min + 1))
    assert all(marked[found] == rounds for found in range(k_max, burst - 1))
    between = sum(marked[found] for found in range(k_min, k_max))
    expected = [p_max * (found - k_min) / (k_max - k_min) for found in range(k_min, k_max)]
    deviation = (rounds * sum(p * (1 - p) for p in expected)) ** 0.5
    assert abs(between - rounds * sum(expected)) <= 6 * deviation


def test_larger_class_selectors_go_first(switch: Switch) -> None:
    switch.balance("round_robin_spraying", 1, 1)
    left = switch.left(*[frame(number, tos=number % 8 << 5) for number in range(24)])
    order = [each[15] >> 5 for _, each in left]
    assert order == [0, *sorted(order[1:], reverse=True)]


def test_a_flowlet_of_a_larger_set_is_over(switch: Switch) -> None:
    """Links went down: there are fewer next hops than what the flow took last."""
    handle = switch.balance("flowlets", 1, len(WAYS), 7, 10_000_000_000)
    found = {port: number for number in range(200) for port in switch.ways(frame(source_port=20_000 + number))}
    fewer = ActionCall(f"{BALANCE}.flowlets", (1, 2, 7, 10_000_000_000))
    switch.device.state.tables.modify(f"{BALANCE}.destinations", handle, fewer)
    last = frame(source_port=20_000 + found[WAYS[3]])
    assert switch.ways(*[last] * 5).keys() <= {WAYS[0], WAYS[1]}
