"""For how long agents are told of nothing: what the engine says beforehand, and when they are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradbed.hosts.collectives.schedule import CollectiveAction, CollectiveStep, Schedule
from gradbed.topo.link import LinkModel
from tests.unit.virtual.transport.network import Line
from tests.unit.virtual.transport.test_collectives import TAG, exchange, of_steps, on_nic, star

FOREVER = 2**64 - 1
FAST = 10 * 10**9
CLEAN = LinkModel(rate_bps=FAST, delay_us=1, queue_packets=1 << 20)
FAR = LinkModel(rate_bps=FAST, delay_us=400, queue_packets=1 << 20)
LOSSY = LinkModel(rate_bps=FAST, delay_us=20, queue_packets=1 << 20, loss=0.03)
SHAKY = LinkModel(rate_bps=FAST, delay_us=300, jitter_us=299, queue_packets=1 << 20)
SECOND_NS = 10**9
ELEMENTS = 250_000
"""A megabyte: 0.8 ms."""


def silence_ns(line: Line) -> int:
    return int(line.simulated.engine.call("silence"))


def samples(line: Line, step_ns: int) -> list[tuple[int, int]]:
    """When it was asked, and what it said, until all have been told."""
    found = []
    for time_ns in range(step_ns, SECOND_NS, step_ns):
        line.run(time_ns)
        found.append((time_ns, silence_ns(line)))
        if all(line.done.values()):
            return found
    raise AssertionError


def check(line: Line, found: list[tuple[int, int]]) -> list[float]:
    """Nobody was told too soon. What part of the time until somebody was told was foreseen."""
    told_ns = [each.time_ns for completions in line.done.values() for each in completions]
    parts = []
    for time_ns, silence in found:
        later = [told - time_ns for told in told_ns if told > time_ns]
        if later:
            assert silence <= min(later), (time_ns, silence)
            parts.append(silence / min(later))
    return parts


def one_message(rank: int) -> Schedule:
    return of_steps(
        CollectiveStep(CollectiveAction.SEND, 1 - rank, 0, ELEMENTS),
        CollectiveStep(CollectiveAction.RECEIVE, 1 - rank, 0, ELEMENTS),
    )


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize(
    ("link", "least"), [(CLEAN, 0.9), (FAR, 0.3), (LOSSY, 0.0), (SHAKY, 0.3)], ids=["clean", "far", "lossy", "shaky"]
)
def test_nobody_is_told_before(link: LinkModel, least: float, recovery: str) -> None:
    with star(2, link, for_collectives=True, recovery=recovery, timeout_ns=SECOND_NS // 100) as line:
        for rank in range(2):
            line.open(rank + 1).begin_collective(TAG, on_nic(one_message(rank)))
        assert max(check(line, samples(line, 1_000))) > least
        assert silence_ns(line) == SECOND_NS // 100
        # What came out of order is forgotten.
        line.run()
        line.open(1).begin_collective(2 * TAG, on_nic(one_message(0)))
        assert silence_ns(line) >= 4 * ELEMENTS * 8 * SECOND_NS // FAST


def test_both_ways_are_awaited() -> None:
    with star(2, CLEAN, for_collectives=True, timeout_ns=SECOND_NS // 100) as line:
        for rank in range(2):
            line.open(rank + 1).begin_collective(TAG, on_nic(exchange(rank, ELEMENTS)))
        parts = check(line, samples(line, 7_000))
        assert sorted(parts)[len(parts) // 4] > 0.9


def small_messages(rank: int, count: int) -> Schedule:
    return of_steps(
        *(
            CollectiveStep(action, 1 - rank, 0, 1)
            for _ in range(count)
            for action in (CollectiveAction.SEND, CollectiveAction.RECEIVE)
        )
    )


@pytest.mark.parametrize("link", [FAR, LOSSY, SHAKY], ids=["far", "lossy", "shaky"])
def test_nor_with_many_small_messages(link: LinkModel) -> None:
    """A packet that was lost holds back thousands, which are all taken in with it."""
    with star(2, link, for_collectives=True, recovery="selective-repeat", timeout_ns=SECOND_NS // 100) as line:
        for rank in range(2):
            line.open(rank + 1).begin_collective(TAG, on_nic(small_messages(rank, 10_000)))
        assert max(check(line, samples(line, 3_000))) > 0.01


def test_what_ends_it_at_any_time() -> None:
    with star(2, CLEAN) as line:
        line.open(1)
        assert silence_ns(line) == 0
    with star(2, CLEAN, for_collectives=True) as line:
        assert silence_ns(line) > 0
    with star(2, LinkModel(delay_us=1), for_collectives=True) as line:
        assert silence_ns(line) == 0
    with star(2, CLEAN, for_collectives=True, give_up_after=1) as line:
        assert silence_ns(line) == 0


def pair_that_fails(**options: Any) -> tuple[list[int], list[int]]:
    """A peer that is not there: when it fails, and what was said each time before."""
    with Line([1, 1], CLEAN) as line:
        line.connect_end(1, 2, 1, 1, for_collectives=True, timeout_ns=100_000, **options)
        line.connect_end(2, 1, 7, 7, for_collectives=True, timeout_ns=SECOND_NS)
        send = of_steps(
            CollectiveStep(CollectiveAction.SEND, 1, 0, 4),
            CollectiveStep(CollectiveAction.RECEIVE, 1, 0, ELEMENTS),
            elements=ELEMENTS,
        )
        collective = replace(on_nic(send), pairs=np.ones(1, np.uint32))
        line.open(1).begin_collective(TAG, collective)
        found = []
        for time_ns in range(20_000, 10**7, 20_000):
            line.run(time_ns)
            if line.done[1]:
                break
            found.append((time_ns, silence_ns(line)))
        return [line.done[1][0].time_ns - time_ns for time_ns, _ in found], [silence for _, silence in found]


def test_a_pair_that_is_about_to_fail() -> None:
    """Long before its peer can have sent all that is awaited of it."""
    for give_up_after in (2, 3):
        until_ns, said_ns = pair_that_fails(give_up_after=give_up_after)
        assert all(said <= until for until, said in zip(until_ns, said_ns, strict=True))
        assert max(said_ns) > 0 and said_ns[-1] == 0
