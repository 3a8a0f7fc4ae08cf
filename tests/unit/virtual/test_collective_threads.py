"""Collectives that NICs carry out while partitions are worked on side by side: what happens at one time keeps its
order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gradbed.hosts.collectives.schedule import CollectiveAction, CollectiveStep, Schedule
from gradbed.topo.link import LinkModel
from tests.sanitized_python import no_data_race
from tests.unit.virtual.transport.network import FORWARD, Line
from tests.unit.virtual.transport.test_collectives import COLLECTIVE_FAILED, TAG, of_steps, on_nic

LINK = LinkModel(rate_bps=8 * 10**9, delay_us=1, queue_packets=2)
"""A byte takes a nanosecond. So few packets may wait that what comes first decides what is lost."""
HOST_SWITCHES = (1, 1, 2, 2, 3, 3)
HOSTS = len(HOST_SWITCHES)
SHORT, LAST = 240, 30_000


def random_schedules(draw: random.Random) -> list[Schedule]:
    """Messages of one size, each of which may wait for what came to its sender before, and a long one, so that for
    long nobody is told of anything: when it begins is told by its end."""
    steps: list[list[CollectiveStep]] = [[] for _ in range(HOSTS)]
    for _ in range(draw.randrange(20, 80)):
        source, target = draw.sample(range(HOSTS), 2)
        came = [place for place, step in enumerate(steps[source]) if step.action is CollectiveAction.RECEIVE]
        after = (came[-1],) if came and draw.random() < 0.7 else ()
        steps[source].append(CollectiveStep(CollectiveAction.SEND, target, 0, SHORT, after=after))
        steps[target].append(CollectiveStep(CollectiveAction.RECEIVE, source, 0, SHORT))
    for rank, own in enumerate(steps):
        came = [place for place, step in enumerate(own) if step.action is CollectiveAction.RECEIVE]
        after = (draw.choice(came),) if came else ()
        own.append(CollectiveStep(CollectiveAction.SEND, (rank + 1) % HOSTS, 0, LAST, after=after))
        own.append(CollectiveStep(CollectiveAction.RECEIVE, (rank - 1) % HOSTS, 0, LAST))
    return [of_steps(*each, elements=LAST) for each in steps]


def outcome(threads: int, schedules: Sequence[Schedule], starts_ns: Sequence[int]) -> Any:
    with Line(HOST_SWITCHES, LINK, threads=threads) as line:
        line.simulated.engine.call("set_lookahead_windows", 3, 0)
        for a in range(1, HOSTS + 1):
            for b in range(a + 1, HOSTS + 1):
                options = {"for_collectives": True, "timeout_ns": 100_000, "give_up_after": 1000}
                line.connect(a, b, number_a=b, number_b=a, **options)
        for interface in line.interfaces:
            interface.set_quiet(True)
        for start_ns in sorted(set(starts_ns)):
            line.run(start_ns)
            for rank, own_ns in enumerate(starts_ns):
                if own_ns == start_ns:
                    line.open(rank + 1).begin_collective(TAG, on_nic(schedules[rank]))
        line.run()
        statistics = [line.open(a).statistics(b) for a in line.done for b in line.done if a != b]
        return line.done, statistics, line.simulated.engine.link_statistics()


def hop_ns() -> int:
    """What a message takes for a link: who begins so much later meets others' packets everywhere."""
    with Line([1, 1], LINK) as line:
        line.connect(1, 2, timeout_ns=100_000)
        line.open(1).send(1, 0, 4 * SHORT)
        line.run()
        hops_ns: int = line.done[2][0].time_ns
        return hops_ns // 2


@pytest.mark.thorough
def test_what_nics_send_at_one_time_keeps_its_order() -> None:
    lost, step_ns = 0, hop_ns()
    for seed in range(120):
        draw = random.Random(seed)
        schedules = random_schedules(draw)
        starts_ns = [1_000 + step_ns * draw.randrange(4) for _ in range(HOSTS)]
        alone = outcome(1, schedules, starts_ns)
        assert outcome(2, schedules, starts_ns) == alone, seed
        assert outcome(3, schedules, starts_ns) == alone, seed
        lost += sum(row["retransmissions"] for row in alone[1])
    assert lost > 0


def test_what_nobody_expected_is_told_soon() -> None:
    """A message of another size than its step expects, while others have much to do."""
    stops_ns = []
    for threads in (1, 2):
        with Line(HOST_SWITCHES, LINK, threads=threads) as line:
            line.simulated.engine.call("set_lookahead_windows", 3, 0)
            for interface in line.interfaces:
                interface.set_quiet(True)
            for a, b in ((1, 5), (3, 6)):
                line.connect(a, b, number_a=b, number_b=a, for_collectives=True, timeout_ns=100_000)
            for a, b, sent in ((1, 5, SHORT - 1), (3, 6, LAST)):
                for here, there, size in ((a, b, sent), (b, a, LAST)):
                    steps = (
                        CollectiveStep(CollectiveAction.SEND, there - 1, 0, size),
                        CollectiveStep(CollectiveAction.RECEIVE, there - 1, 0, SHORT),
                        CollectiveStep(CollectiveAction.RECEIVE, there - 1, 0, LAST),
                    )
                    line.open(here).begin_collective(TAG, on_nic(of_steps(*steps, elements=LAST)))
            stop = line.simulated.run_until(None)
            told = line.open(5).completions()
            assert [each.kind for each in told] == [COLLECTIVE_FAILED]
            stops_ns.append(stop.time_ns - told[0].time_ns)
    assert stops_ns[0] == 0 and stops_ns[1] <= LINK.delay_us * 1000


@pytest.mark.nightly
def test_no_data_race(tmp_path: Path) -> None:
    no_data_race(tmp_path, [Path(__file__)], [FORWARD], ("-m", "not nightly"))
