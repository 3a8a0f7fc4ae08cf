"""Workers on a ring, the real state machines, on a virtual clock over links that lose, copy and reorder packets."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from gradbed.hosts.collectives.ring_all_reduce import RingMessage, RingReduction
from gradbed.hosts.learning.fragments import restored, shifted
from gradbed.hosts.transport.stream_receiver import StreamReceiver
from gradbed.hosts.transport.stream_sender import StreamSender
from tests.unit.hosts.aggregation.simulation import Clock


@dataclass(frozen=True)
class RingSettings:
    """loss, duplicate, mark: probabilities for each packet, on data and acknowledgements alike. Delays are spread
    evenly over 100 to 100 + jitter_us."""

    workers: int
    fragments: int
    rounds: int = 2
    lanes: int = 2
    window: int = 8
    min_timeout_us: int = 1000
    loss: float = 0.0
    duplicate: float = 0.0
    mark: float = 0.0
    jitter_us: int = 0
    congestion_control: str = "aimd"
    first_sequence: int = 0
    magnitude: int = 1 << 20
    pause_us: int = 300
    seed: int = 1


@dataclass
class _Worker:
    sender: StreamSender
    receiver: StreamReceiver
    round: int = -1
    reduction: RingReduction | None = None
    unsent: list[RingMessage] = field(default_factory=list)
    on_way: dict[int, RingMessage] = field(default_factory=dict)
    early: list[RingMessage] = field(default_factory=list)
    wake_us: int | None = None


class RingSimulation:
    """Runs all rounds; what workers then hold is there to be checked."""

    def __init__(self, settings: RingSettings) -> None:
        self.settings = settings
        self.clock = Clock()
        self.random = random.Random(settings.seed)
        self.packets = 0
        self.rejected = 0
        self.workers = [
            _Worker(
                StreamSender(
                    window_packets=settings.window,
                    min_timeout_us=settings.min_timeout_us,
                    congestion_control=settings.congestion_control,
                    first_sequence=settings.first_sequence,
                ),
                StreamReceiver(settings.first_sequence),
            )
            for _ in range(settings.workers)
        ]
        self._next_sequences = [settings.first_sequence] * settings.workers
        shape = (settings.workers, settings.rounds, settings.fragments, settings.lanes)
        limit = settings.magnitude
        self.gradients = np.random.default_rng(settings.seed).integers(-limit, limit, shape, np.int32, endpoint=True)
        self.sums = np.zeros(shape, np.int64)

    def run(self) -> None:
        for worker in range(self.settings.workers):
            self._later(self.settings.pause_us, worker)
        self.clock.run()

    def check(self) -> None:
        """Every worker has every sum, in the form of the parameter server's ACKs, and nothing is under way."""
        exact = self.gradients.sum(axis=0, dtype=np.int64)
        expected = restored(*shifted(exact.reshape(-1, self.settings.lanes))).reshape(exact.shape)
        for index, worker in enumerate(self.workers):
            np.testing.assert_array_equal(self.sums[index], expected)
            assert worker.round == self.settings.rounds
            assert worker.sender.finished
            assert not worker.on_way and not worker.unsent and not worker.early
        assert self.rejected == 0

    @property
    def resends(self) -> int:
        found = [worker.sender.statistics for worker in self.workers]
        return sum(each.timeout_resends + each.early_resends for each in found)

    def _later(self, most_us: int, index: int) -> None:
        self.clock.at(self.random.randrange(most_us + 1), lambda: self._begin(index))

    def _begin(self, index: int) -> None:
        worker = self.workers[index]
        worker.round += 1
        worker.reduction = None
        if worker.round == self.settings.rounds:
            return
        gradient = self.gradients[index, worker.round]
        worker.reduction = RingReduction(worker.round, index, self.settings.workers, gradient)
        self._queue(index, worker.reduction.begin())
        early, worker.early = worker.early, []
        for message in early:
            self._take(index, message)
        self._end_if_finished(index)
        self._transmit(index)

    def _queue(self, index: int, messages: list[RingMessage]) -> None:
        worker = self.workers[index]
        for message in messages:
            worker.on_way[self._next_sequences[index]] = message
            self._next_sequences[index] = (self._next_sequences[index] + 1) % (1 << 32)
        worker.sender.queue(len(messages))

    def _take(self, index: int, message: RingMessage) -> None:
        worker = self.workers[index]
        if worker.reduction is None or message.round > worker.round:
            worker.early.append(message)
            return
        messages = worker.reduction.accept(message)
        if messages is None:
            self.rejected += 1
        else:
            self._queue(index, messages)

    def _end_if_finished(self, index: int) -> None:
        worker = self.workers[index]
        if worker.reduction is not None and worker.reduction.finished:
            self.sums[index, worker.round] = worker.reduction.sums
            worker.reduction = None
            self._later(self.settings.pause_us, index)

    def _transmit(self, index: int) -> None:
        worker = self.workers[index]
        following = (index + 1) % self.settings.workers
        for sequence in worker.sender.transmissions(self.clock.now_us):
            message = worker.on_way[sequence]
            self._carry(lambda marked, s=sequence, m=message: self._arrive(following, s, m, marked))
        deadline_us = worker.sender.deadline_us
        if deadline_us is not None and worker.wake_us != deadline_us:
            worker.wake_us = deadline_us
            self.clock.at(deadline_us - self.clock.now_us, lambda: self._wake(index, deadline_us))

    def _wake(self, index: int, deadline_us: int) -> None:
        if self.workers[index].wake_us == deadline_us:
            self.workers[index].wake_us = None
            self._transmit(index)

    def _carry(self, arrive: object) -> None:
        self.packets += 1
        if self.random.random() < self.settings.loss:
            return
        for _ in range(2 if self.random.random() < self.settings.duplicate else 1):
            marked = self.random.random() < self.settings.mark
            self.clock.at(
                100 + self.random.randrange(self.settings.jitter_us + 1),
                lambda marked=marked: arrive(marked),  # type: ignore[operator]
            )

    def _arrive(self, index: int, sequence: int, message: RingMessage, marked: bool) -> None:
        worker = self.workers[index]
        if worker.receiver.accept([sequence])[0]:
            self._take(index, message)
            self._end_if_finished(index)
        number, selective = worker.receiver.acknowledgement
        before = (index - 1) % self.settings.workers
        self._carry(lambda also, n=number, s=selective: self._acknowledge(before, n, s, marked or also))
        self._transmit(index)

    def _acknowledge(self, index: int, sequence: int, selective: int, marked: bool) -> None:
        worker = self.workers[index]
        for number in worker.sender.acknowledge(sequence, selective, marked, self.clock.now_us):
            del worker.on_way[number]
        self._transmit(index)
