"""Workers, switches and server over a network that loses, duplicates and reorders: every sum comes out exact."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hosts.transport.collector import Collector
from hosts.transport.sender import Sender
from tests.unit.hosts.slot_model import ACK, RESEND, Packet, SwitchModel

LANES = 2
JOB = 7
MAX_EVENTS = 400_000


@dataclass(frozen=True)
class Hop:
    """What every hop does to every packet."""

    loss: float
    duplicate: float
    delay_us: int
    jitter_us: int


@dataclass(frozen=True)
class Scenario:
    workers: int
    fragments: int
    rounds: int
    switches: int
    slots: int
    window: int
    multicast: bool
    first_number: int
    hop: Hop
    seed: int


class Simulation:
    """Workers - designated switch - server, with a virtual clock; every arrow is one unreliable hop."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.random = random.Random(scenario.seed)
        self.now_us = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.switches = [
            SwitchModel(number=index + 1, slot_count=scenario.slots, jobs=frozenset({JOB}))
            for index in range(scenario.switches)
        ]
        self.collector = Collector(
            workers=scenario.workers,
            fragments_per_round=scenario.fragments,
            lanes=LANES,
            repeat_interval_us=500,
            first_number=scenario.first_number,
        )
        self.senders = [
            Sender(window_fragments=scenario.window, min_timeout_us=1000, paths=max(1, scenario.switches))
            for _ in range(scenario.workers)
        ]
        generator = np.random.default_rng(scenario.seed)
        shape = (scenario.workers, scenario.rounds, scenario.fragments, LANES)
        # Full range, so that sums wrap as they do in switches.
        self.gradients = generator.integers(-(1 << 31), 1 << 31, shape, dtype=np.int64).astype(np.int32)
        self.sums = np.zeros(shape, np.int32)
        self.round = [-1] * scenario.workers
        self.wake_us: list[int | None] = [None] * scenario.workers
        self.deliveries = 0

    def run(self) -> None:
        for worker in range(self.scenario.workers):
            # Workers do not start together.
            self.at(self.random.randrange(3000), lambda worker=worker: self.begin_round(worker))
        for _ in range(MAX_EVENTS):
            if not self.events:
                return
            self.now_us, _, action = heapq.heappop(self.events)
            action()
        pytest.fail("the simulation does not end")

    def at(self, delay_us: int, action: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now_us + delay_us, next(self.order), action))

    def hop(self, packet: Packet, arrive: Callable[[Packet], None]) -> None:
        hop = self.scenario.hop
        copies = 0 if self.random.random() < hop.loss else 1
        if self.random.random() < hop.duplicate:
            copies += 1
        for _ in range(copies):
            delay_us = hop.delay_us + (self.random.randrange(hop.jitter_us) if hop.jitter_us else 0)
            self.at(delay_us, lambda: arrive(packet))

    def switch_number(self, number: int) -> int:
        return number % self.scenario.switches + 1 if self.scenario.switches else 0

    # Workers

    def begin_round(self, worker: int) -> None:
        self.round[worker] += 1
        if self.round[worker] < self.scenario.rounds:
            self.senders[worker].begin(self.first_number(self.round[worker]), self.scenario.fragments)
            self.transmit(worker)

    def first_number(self, round_number: int) -> int:
        return (self.scenario.first_number + round_number * self.scenario.fragments) % (1 << 32)

    def transmit(self, worker: int) -> None:
        sender, round_number = self.senders[worker], self.round[worker]
        for transmission in sender.transmissions(self.now_us):
            number = (self.first_number(round_number) + transmission.fragment) % (1 << 32)
            packet = Packet(
                flags=RESEND if transmission.resend else 0,
                job=JOB,
                number=number,
                switch_number=self.switch_number(number),
                fan_in=self.scenario.workers,
                bitmap=1 << worker,
                lanes=tuple(self.gradients[worker, round_number, transmission.fragment].tolist()),
                worker=worker,
            )
            self.hop(packet, self.at_switch_towards_server)
        deadline_us = sender.deadline_us
        if deadline_us is not None and self.wake_us[worker] != deadline_us:
            self.wake_us[worker] = deadline_us
            self.at(max(0, deadline_us - self.now_us), lambda: self.wake(worker, deadline_us))

    def wake(self, worker: int, deadline_us: int) -> None:
        if self.wake_us[worker] == deadline_us:
            self.wake_us[worker] = None
            self.transmit(worker)

    def at_worker(self, worker: int, packet: Packet) -> None:
        if self.round[worker] >= self.scenario.rounds:
            return
        sender, round_number = self.senders[worker], self.round[worker]
        news = sender.answer([packet.number], self.now_us)
        for _, fragment in news:
            self.deliveries += 1
            self.sums[worker, round_number, fragment] = packet.lanes
        if news and sender.finished:
            self.at(self.random.randrange(200), lambda: self.begin_round(worker))
        else:
            self.transmit(worker)

    # Switches

    def at_switch_towards_server(self, packet: Packet) -> None:
        if packet.switch_number:
            passed_on = self.switches[packet.switch_number - 1].process(packet)
            if passed_on is None:
                return
            packet = passed_on
        self.hop(packet, self.at_server)

    def at_switch_towards_workers(self, packet: Packet) -> None:
        if packet.switch_number:
            self.switches[packet.switch_number - 1].process(packet)
        everyone = range(self.scenario.workers) if packet.worker is None else [packet.worker]
        for worker in everyone:
            self.hop(packet, lambda copy, worker=worker: self.at_worker(worker, copy))

    # Server

    def at_server(self, packet: Packet) -> None:
        assert packet.worker is not None
        answers = self.collector.accept(
            packet_numbers=[packet.number],
            bitmaps=[packet.bitmap],
            flags=[packet.flags],
            senders=[packet.worker],
            lanes=np.array([packet.lanes], np.int32),
            now_us=self.now_us,
        )
        for number in answers.complete:
            everyone = [None] if self.scenario.multicast else list(range(self.scenario.workers))
            for worker in everyone:
                self.acknowledge(number, worker)
        for number, worker in answers.repeats:
            self.acknowledge(number, worker)

    def acknowledge(self, number: int, worker: int | None) -> None:
        packet = Packet(
            flags=ACK,
            job=JOB,
            number=number,
            switch_number=self.switch_number(number),
            fan_in=self.scenario.workers,
            bitmap=self.collector.full_bitmap,
            lanes=tuple(self.collector.sum(number).tolist()),
            worker=worker,
        )
        self.hop(packet, self.at_switch_towards_workers)


hops = st.builds(
    Hop,
    loss=st.sampled_from([0.0, 0.02, 0.2, 0.4]),
    duplicate=st.sampled_from([0.0, 0.02, 0.3]),
    delay_us=st.sampled_from([10, 300]),
    jitter_us=st.sampled_from([0, 20, 5000]),
)
scenarios = st.builds(
    Scenario,
    workers=st.integers(1, 6),
    fragments=st.integers(1, 9),
    rounds=st.integers(1, 4),
    switches=st.integers(0, 3),
    slots=st.integers(1, 6),
    window=st.integers(1, 9),
    multicast=st.booleans(),
    first_number=st.one_of(st.just(0), st.integers((1 << 32) - 40, (1 << 32) - 1)),
    hop=hops,
    seed=st.integers(0, 1 << 32),
)


def check(simulation: Simulation) -> None:
    scenario = simulation.scenario
    expected = simulation.gradients.sum(axis=0, dtype=np.int64).astype(np.int32)
    for worker in range(scenario.workers):
        np.testing.assert_array_equal(simulation.sums[worker], expected)
    assert simulation.round == [scenario.rounds] * scenario.workers
    assert simulation.deliveries == scenario.workers * scenario.rounds * scenario.fragments
    assert simulation.collector.complete_rounds == scenario.rounds
    # Each round's fragments were merged from at least one packet, and from at most one per worker.
    merged = simulation.collector.statistics.merged_singles + simulation.collector.statistics.merged_partials
    fragments = scenario.rounds * scenario.fragments
    assert fragments <= merged <= fragments * scenario.workers


@settings(max_examples=250, deadline=None)
@given(scenarios)
def test_every_sum_is_exact_whatever_the_network_does(scenario: Scenario) -> None:
    simulation = Simulation(scenario)
    simulation.run()
    check(simulation)


def perfect(**changes: object) -> Scenario:
    values: dict[str, object] = {
        "workers": 4,
        "fragments": 12,
        "rounds": 3,
        "switches": 2,
        "slots": 64,
        "window": 8,
        "multicast": True,
        "first_number": 0,
        "hop": Hop(loss=0, duplicate=0, delay_us=100, jitter_us=0),
        "seed": 1,
    }
    return Scenario(**{**values, **changes})  # type: ignore[arg-type]


def test_perfect_network_needs_no_resends_and_one_packet_per_fragment() -> None:
    simulation = Simulation(perfect())
    simulation.run()
    check(simulation)
    assert simulation.collector.statistics.merged_partials == 3 * 12
    assert simulation.collector.statistics.merged_singles == 0
    for sender in simulation.senders:
        assert sender.statistics.timeout_resends == sender.statistics.early_resends == 0
    assert all(slot.owner is None for switch in simulation.switches for slot in switch.slots)


def test_parameter_server_alone_merges_each_worker_singly() -> None:
    simulation = Simulation(perfect(switches=0, multicast=False))
    simulation.run()
    check(simulation)
    assert simulation.collector.statistics.merged_singles == 3 * 12 * 4


def test_one_slot_for_all_fragments_still_sums() -> None:
    simulation = Simulation(perfect(slots=1, switches=1))
    simulation.run()
    check(simulation)
    # Fragments that collide pass unsummed; those that find the slot free are summed in it.
    assert simulation.collector.statistics.merged_partials > 0
    assert simulation.collector.statistics.merged_singles > 0


def test_losses_are_repaired_before_the_timer_in_a_long_round() -> None:
    scenario = perfect(fragments=200, rounds=1, switches=1, window=32, hop=Hop(0.01, 0.0, delay_us=100, jitter_us=0))
    simulation = Simulation(scenario)
    simulation.run()
    check(simulation)
    assert sum(sender.statistics.early_resends for sender in simulation.senders) > 0


def test_overlapping_partial_sums_are_dropped_and_repaired() -> None:
    """With heavy reordering and loss, the case that the collector must not merge does occur."""
    overlaps = 0
    for seed in range(12):
        simulation = Simulation(perfect(seed=seed, slots=8, hop=Hop(0.25, 0.25, delay_us=50, jitter_us=4000)))
        simulation.run()
        check(simulation)
        overlaps += simulation.collector.statistics.overlaps
    assert overlaps > 0
