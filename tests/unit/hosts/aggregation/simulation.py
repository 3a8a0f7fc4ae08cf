"""A job's workers and server, the real state machines, on a virtual clock over any simulated network."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gradbed.formats.aggregation import MAX_MAGNITUDE, Flags
from gradbed.hosts.learning.fragments import restored, shifted
from gradbed.hosts.systems.aggregation.collector import Collector
from gradbed.hosts.systems.aggregation.config import aggregation_paths
from gradbed.hosts.systems.aggregation.worker.sender import RETRIES, Attempt, Sender
from tests.unit.hosts.aggregation.slot_model import Label, Packet

JOB = 7
MAX_EVENTS = 4_000_000


class Clock:
    """Simulated time and what happens when."""

    def __init__(self) -> None:
        self.now_us = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, delay_us: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_us + max(0, delay_us), next(self._order), action))

    def run(self) -> None:
        """Until nothing is left to happen."""
        for _ in range(MAX_EVENTS):
            if not self._events:
                return
            self.now_us, _, action = heapq.heappop(self._events)
            action()
        raise AssertionError("the simulation does not end")


class Network(Protocol):
    """Moves packets between the agents; connected to them by `JobSimulation`."""

    clock: Clock
    at_server: Callable[[Packet], None]
    at_worker: Callable[[int, Packet], None]

    def labels(self, worker: int) -> Sequence[Label]:
        """What the worker puts on its packets in turn."""

    def send_to_server(self, packet: Packet) -> None:
        """A packet leaves worker `packet.worker`."""

    def send_to_workers(self, packet: Packet) -> None:
        """An ACK leaves the server, for `packet.worker`, or for all by multicast if that is None."""


@dataclass
class Agent:
    """A process on a machine that others use as well: what comes in while it is kept waiting is handled after."""

    clock: Clock
    random: random.Random
    stall_us: int = 0
    """Longest time that it is kept waiting; 0: never."""
    stall_interval_us: int = 200_000
    """Mean time from one stall to the next."""
    _stall: tuple[int, int] = (0, 0)

    def ready_in_us(self) -> int:
        """Time until it can act."""
        if not self.stall_us:
            return 0
        while self._stall[1] <= self.clock.now_us:
            start_us = self._stall[1] + round(self.random.expovariate(1 / self.stall_interval_us))
            self._stall = (start_us, start_us + 1 + self.random.randrange(self.stall_us))
        start_us, end_us = self._stall
        return end_us - self.clock.now_us if start_us <= self.clock.now_us else 0


@dataclass(frozen=True)
class JobSettings:
    """pause_us: the longest time between a worker's rounds (they do not start together).

    stall_us: the longest time that the scheduler keeps an agent waiting. magnitude: of the largest gradients.
    """

    workers: int
    fragments: int
    rounds: int
    window: int
    multicast: bool
    min_timeout_us: int = 1000
    lanes: int = 2
    first_number: int = 0
    pause_us: int = 200
    start_skew_us: int = 3000
    stall_us: int = 0
    magnitude: int = 1 << 20
    congestion_control: str = "aimd"
    span: int | None = None
    retries: int = RETRIES
    seed: int = 1


@dataclass
class WorkerState:
    sender: Sender
    agent: Agent
    round: int = -1
    begin_us: int = 0
    wake_us: int | None = None
    round_times_us: list[int] = field(default_factory=list)


class JobSimulation:
    """Runs all rounds; sums, round times and statistics are there to be checked afterwards."""

    def __init__(self, settings: JobSettings, network: Network) -> None:
        self.settings = settings
        self.network = network
        self.clock = network.clock
        network.at_server = self._reach_server
        network.at_worker = self._reach_worker
        self.random = random.Random(settings.seed)
        self.collector = Collector(
            workers=settings.workers,
            fragments_per_round=settings.fragments,
            lanes=settings.lanes,
            repeat_interval_us=settings.min_timeout_us // 2,
            first_number=settings.first_number,
            multicast=settings.multicast,
        )
        self.server = self._agent()
        paths = aggregation_paths([network.labels(worker) for worker in range(settings.workers)])
        self.workers = [
            WorkerState(
                Sender(
                    window_fragments=settings.window,
                    min_timeout_us=settings.min_timeout_us,
                    paths=paths,
                    congestion_control=settings.congestion_control,
                    span_fragments=settings.span,
                    retries=settings.retries,
                ),
                self._agent(),
            )
            for _ in range(settings.workers)
        ]
        generator = np.random.default_rng(settings.seed)
        shape = (settings.workers, settings.rounds, settings.fragments, settings.lanes)
        assert settings.magnitude <= MAX_MAGNITUDE
        self.gradients = generator.integers(-settings.magnitude, settings.magnitude, shape, np.int32, endpoint=True)
        self.sums = np.zeros(shape, np.int64)
        self.deliveries = 0

    def _agent(self) -> Agent:
        return Agent(self.clock, random.Random(self.random.random()), self.settings.stall_us)

    def run(self) -> None:
        for worker in range(self.settings.workers):
            self.clock.at(
                self.random.randrange(self.settings.start_skew_us), lambda worker=worker: self._begin_round(worker)
            )
        self.clock.run()

    @property
    def round_times_us(self) -> list[int]:
        """Of each round: the longest that a worker took, shape (rounds,)."""
        return [max(times) for times in zip(*(state.round_times_us for state in self.workers), strict=True)]

    @property
    def early_resends(self) -> int:
        return sum(state.sender.statistics.early_resends for state in self.workers)

    @property
    def timeout_resends(self) -> int:
        return sum(state.sender.statistics.timeout_resends for state in self.workers)

    @property
    def given_up(self) -> int:
        return sum(state.sender.statistics.given_up for state in self.workers)

    @property
    def resends(self) -> int:
        return self.early_resends + self.timeout_resends

    def check(self) -> None:
        """Every worker got every sum, once and exact."""
        settings = self.settings
        exact = self.gradients.sum(axis=0, dtype=np.int64)
        expected = restored(*shifted(exact.reshape(-1, settings.lanes))).reshape(exact.shape)
        for worker in range(settings.workers):
            np.testing.assert_array_equal(self.sums[worker], expected)
        assert [state.round for state in self.workers] == [settings.rounds] * settings.workers
        assert self.deliveries == settings.workers * settings.rounds * settings.fragments
        assert self.collector.complete_rounds == settings.rounds
        # Each round's fragments were merged from at least one packet, and from at most one per worker.
        merged = self.collector.statistics.merged_singles + self.collector.statistics.merged_partials
        fragments = settings.rounds * settings.fragments
        assert fragments <= merged <= fragments * settings.workers

    # Workers

    def _first_number(self, round_number: int) -> int:
        return (self.settings.first_number + round_number * self.settings.fragments) % (1 << 32)

    def _begin_round(self, worker: int) -> None:
        state = self.workers[worker]
        state.round += 1
        state.begin_us = self.clock.now_us
        if state.round < self.settings.rounds:
            state.sender.begin(self._first_number(state.round), self.settings.fragments, self.clock.now_us)
            self._transmit(worker)

    def _transmit(self, worker: int) -> None:
        state = self.workers[worker]
        for transmission in state.sender.transmissions(self.clock.now_us):
            number = (self._first_number(state.round) + transmission.fragment) % (1 << 32)
            lanes = self.gradients[worker, state.round, transmission.fragment].tolist()
            labels = self.network.labels(worker)
            direct = transmission.attempt is Attempt.DIRECT
            self.network.send_to_server(
                Packet(
                    flags=transmission.attempt.flags,
                    job=JOB,
                    number=number,
                    label=Label() if direct else labels[number % len(labels)],
                    bitmap=1 << worker,
                    magnitude=max(map(abs, lanes)),
                    lanes=tuple(lanes),
                    worker=worker,
                )
            )
        deadline_us = state.sender.deadline_us
        if deadline_us is not None and state.wake_us != deadline_us:
            state.wake_us = deadline_us
            self.clock.at(deadline_us - self.clock.now_us, lambda: self._wake(worker, deadline_us))

    def _wake(self, worker: int, deadline_us: int) -> None:
        state = self.workers[worker]
        if state.wake_us != deadline_us:
            return
        stall_us = state.agent.ready_in_us()
        if stall_us:
            # After all that has come in meanwhile, as the agent does.
            self.clock.at(stall_us + 1, lambda: self._wake(worker, deadline_us))
            return
        state.wake_us = None
        self._transmit(worker)

    def _reach_worker(self, worker: int, packet: Packet) -> None:
        self._when_ready(self.workers[worker].agent, lambda: self._at_worker(worker, packet))

    def _when_ready(self, agent: Agent, action: Callable[[], None]) -> None:
        stall_us = agent.ready_in_us()
        if stall_us:
            self.clock.at(stall_us, action)
        else:
            action()

    def _at_worker(self, worker: int, packet: Packet) -> None:
        state = self.workers[worker]
        if state.round >= self.settings.rounds:
            return
        if packet.flags & Flags.NACK:
            state.sender.request([packet.number])
            self._transmit(worker)
            return
        repeated = bool(packet.flags & Flags.RESEND)
        news = state.sender.acknowledge([packet.number], [repeated], self.clock.now_us, [packet.congested])
        for _, fragment in news:
            self.deliveries += 1
            self.sums[worker, state.round, fragment] = np.array(packet.lanes, np.int64) << packet.magnitude
        if news and state.sender.finished:
            state.round_times_us.append(self.clock.now_us - state.begin_us)
            self.clock.at(self.random.randrange(self.settings.pause_us), lambda: self._begin_round(worker))
        else:
            self._transmit(worker)

    # Server

    def _reach_server(self, packet: Packet) -> None:
        self._when_ready(self.server, lambda: self._at_server(packet))

    def _at_server(self, packet: Packet) -> None:
        assert packet.worker is not None
        replies = self.collector.accept(
            packet_numbers=[packet.number],
            bitmaps=[packet.bitmap],
            flags=[packet.flags],
            congested=[packet.congested],
            senders=[packet.worker],
            lanes=np.array([packet.lanes], np.int32),
            now_us=self.clock.now_us,
        )
        everyone: Sequence[int | None] = [None] if self.settings.multicast else range(self.settings.workers)
        for number, repeated in replies.complete:
            for worker in everyone:
                self._acknowledge(number, worker, repeated)
        for number, worker in replies.repeats:
            self._acknowledge(number, worker, True)
        for number, worker in replies.requests:
            self.network.send_to_workers(Packet(Flags.ACK | Flags.NACK, JOB, number, Label(), 0, 0, (), worker))

    def _acknowledge(self, number: int, worker: int | None, repeated: bool) -> None:
        sums = self.collector.global_sums([number])
        self.network.send_to_workers(
            Packet(
                flags=Flags.ACK | Flags.RESEND if repeated else Flags.ACK,
                job=JOB,
                number=number,
                label=Label(),
                bitmap=self.collector.full_bitmap,
                magnitude=int(sums.shifts[0]),
                lanes=tuple(sums.lanes[0].tolist()),
                worker=worker,
                congested=bool(sums.congested[0]),
            )
        )
