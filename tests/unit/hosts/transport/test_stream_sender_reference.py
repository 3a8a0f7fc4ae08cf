"""The stream's sender in C beside the one in Python: the same at every step of random streams."""

from __future__ import annotations

import random
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.hosts.transport.congestion_window import CONGESTION_CONTROLS
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, StreamReceiver
from gradbed.hosts.transport.stream_sender import StreamSender
from tests.examples import examples
from tests.unit.hosts.transport.reference.stream_sender import StreamSender as ReferenceSender

MOST_STEPS = 1000


class Pair:
    """Both, which are told the same."""

    def __init__(self, **options: object) -> None:
        self.both = StreamSender(**options), ReferenceSender(**options)  # type: ignore[arg-type]

    def same(self, name: str, *arguments: object) -> object:
        """Return what a method returns, or a property is."""
        found, expected = (getattr(each, name) for each in self.both)
        if callable(found):
            found, expected = found(*arguments), expected(*arguments)
        assert found == expected, name
        return found

    def look(self) -> None:
        for name in ("finished", "queued", "deadline_us"):
            self.same(name)
        found, expected = (asdict(each.statistics) for each in self.both)
        assert found == expected


class Schedule:
    """A stream in which packets and acknowledgements are lost, late, marked and made up as a generator says."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        first = chance.choice([0, 5, PACKET_NUMBERS - 3, chance.randrange(PACKET_NUMBERS)])
        self.pair = Pair(
            window_packets=chance.choice([1, 2, 4, 16, 64, 300]),
            min_timeout_us=chance.choice([1, 100, 1000, 300_000]),
            congestion_control=chance.choice(list(CONGESTION_CONTROLS)),
            first_sequence=first,
            seed=chance.choice([0, 1, PACKET_NUMBERS**2 - 1]),
        )
        self.receiver = StreamReceiver(first)
        self.now_us = chance.randrange(10_000)
        self.loss = chance.choice([0.0, 0.02, 0.2, 0.7])
        self.most = chance.choice([(), (), (1,), (5,)])

    def run(self) -> None:
        self.pair.same("queue", self.chance.choice([1, 3, 40, 200]))
        under_way: list[int] = []
        for step in range(MOST_STEPS):
            self._change_what_waits(step)
            sent = self.pair.same("transmissions", self.now_us, *self.most)
            assert isinstance(sent, list)
            self.pair.look()
            under_way += sent
            self.chance.shuffle(under_way)
            come = [under_way.pop() for _ in range(self.chance.randrange(len(under_way) + 1))]
            self.receiver.accept([number for number in come if self.chance.random() >= self.loss])
            if self.chance.random() >= self.loss:
                self._acknowledge(*self.receiver.acknowledgement)
            if self.chance.random() < 0.05:
                self._acknowledge(self.chance.randrange(PACKET_NUMBERS), self.chance.randrange(1 << 64))
            self._wait()
            if self.pair.same("finished"):
                return

    def _change_what_waits(self, step: int) -> None:
        if step < MOST_STEPS // 2 and self.chance.random() < 0.1:
            self.pair.same("queue", self.chance.randrange(8))
        if self.chance.random() < 0.01:
            self.pair.same("withdraw")

    def _acknowledge(self, sequence: int, selective: int) -> None:
        self.pair.same("acknowledge", sequence, selective, self.chance.random() < self.loss / 4, self.now_us)
        self.pair.look()

    def _wait(self) -> None:
        due_us = self.pair.same("deadline_us")
        if isinstance(due_us, int) and due_us > self.now_us and self.chance.random() < 0.5:
            self.now_us = due_us + self.chance.choice([-1, 0, 1])
        else:
            self.now_us += self.chance.choice([0, 1, 50, 400, 3000])


@pytest.mark.thorough
@settings(max_examples=examples(150))
@given(st.integers(0, 1 << 32))
def test_both_do_the_same(seed: int) -> None:
    Schedule(random.Random(seed)).run()


@pytest.mark.parametrize("seed", range(20))
def test_both_do_the_same_in_some_streams(seed: int) -> None:
    Schedule(random.Random(seed)).run()
