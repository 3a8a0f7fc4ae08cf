"""The sender in C beside the one in Python: the same at every step of random rounds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.hosts.systems.aggregation.worker.sender import Sender
from gradbed.hosts.transport.congestion_window import CONGESTION_CONTROLS
from tests.examples import examples
from tests.unit.hosts.aggregation.worker.reference.sender import Sender as ReferenceSender

NUMBERS = 1 << 32
MOST_STEPS = 400


class Pair:
    """Both, which are told the same."""

    def __init__(self, **options: object) -> None:
        self.both = Sender(**options), ReferenceSender(**options)  # type: ignore[arg-type]

    def same(self, name: str, *arguments: object) -> object:
        """What a method returns, or a property is."""
        found, expected = (getattr(each, name) for each in self.both)
        if callable(found):
            found, expected = found(*arguments), expected(*arguments)
        assert found == expected, name
        return found

    def look(self) -> None:
        for name in ("finished", "missing", "deadline_us"):
            self.same(name)
        found, expected = (asdict(each.statistics) for each in self.both)
        assert found == expected


class Schedule:
    """Rounds of one worker, in which packets are lost, late, repeated, marked and asked for as a generator says."""

    def __init__(self, chance: random.Random, pair: Pair) -> None:
        self.chance, self.pair = chance, pair
        self.now_us = chance.randrange(10_000)
        self.loss = chance.choice([0.0, 0.02, 0.2, 0.7])
        self.tidy = chance.random() < 0.3
        self.first = chance.choice([0, 5, NUMBERS - 3, chance.randrange(NUMBERS)])
        self.ever_sent = False

    def run(self) -> None:
        for _ in range(self.chance.choice([1, 3, 40])):
            count = self.chance.choice([1, 2, 2, 7, 40])
            self.pair.same("begin", self.first, count, self.now_us)
            self._round(count)
            self.first = (self.first + count) % NUMBERS
            self.now_us += self.chance.choice([0, 300, 40_000])

    def _round(self, count: int) -> None:
        waiting: list[int] = []
        for step in range(MOST_STEPS):
            sent = self.pair.same("transmissions", self.now_us)
            assert isinstance(sent, list)
            self.pair.look()
            waiting = list(dict.fromkeys(waiting + [each.fragment for each in sent]))
            last = step > MOST_STEPS - 50
            if self.pair.same("finished"):
                return
            batch = [fragment for fragment in waiting if last or self.chance.random() >= max(self.loss, 0.3)]
            if self.tidy or last:
                batch.sort()
            self._acknowledge(batch, count)
            waiting = [fragment for fragment in waiting if fragment not in batch]
            if self.chance.random() < 0.1:
                asked = [self.chance.randrange(-2, count + 2) for _ in range(2)]
                self.pair.same("request", [(self.first + fragment) % NUMBERS for fragment in asked])
            self._wait()
        raise AssertionError("a round does not end")

    def _acknowledge(self, batch: list[int], count: int) -> None:
        chance = self.chance
        batch = [*batch, *(chance.randrange(-3, count + 3) for _ in range(chance.choice([0, 0, 0, 2])))]
        self.pair.same(
            "acknowledge",
            [(self.first + fragment) % NUMBERS for fragment in batch],
            [chance.random() < self.loss / 2 for _ in batch],
            self.now_us,
            [chance.random() < self.loss / 4 for _ in batch],
        )

    def _wait(self) -> None:
        due_us = self.pair.same("deadline_us")
        if isinstance(due_us, int) and due_us > self.now_us and self.chance.random() < self.loss:
            self.now_us = due_us + self.chance.choice([-1, 0, 1])
        else:
            self.now_us += self.chance.choice([0, 1, 50, 400, 3000])


def options(chance: random.Random) -> dict[str, object]:
    return {
        "window_fragments": chance.choice([1, 2, 4, 16, 64]),
        "min_timeout_us": chance.choice([1, 100, 1000, 300_000]),
        "paths": [chance.randrange(3) for _ in range(chance.choice([1, 2, 4]))],
        "congestion_control": chance.choice(list(CONGESTION_CONTROLS)),
        "span_fragments": chance.choice([None, 1, 4, 20, 100]),
        "retries": chance.choice([0, 1, 3]),
        "seed": chance.choice([0, 1, NUMBERS**2 - 1]),
    }


def schedules(seed: int) -> Iterator[Schedule]:
    chance = random.Random(seed)
    yield Schedule(chance, Pair(**options(chance)))


@pytest.mark.thorough
@settings(max_examples=examples(150))
@given(st.integers(0, NUMBERS))
def test_both_do_the_same(seed: int) -> None:
    for schedule in schedules(seed):
        schedule.run()


@pytest.mark.nightly  # the same, ten times as often
@pytest.mark.parametrize("block", range(4))
def test_both_do_the_same_in_many_rounds(block: int) -> None:
    for seed in range(500 * block, 500 * (block + 1)):
        for schedule in schedules(seed):
            schedule.run()
