"""Collectives that NICs carry out by themselves: the same messages at the same times as those of an agent that is
told of each, and NumPy's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.hosts.agents.queue_pairs import NicCollective
from gradbed.hosts.collectives.schedule import (
    CollectiveAction,
    CollectiveStep,
    Operation,
    Schedule,
    StoredSteps,
)
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms, schedule
from gradbed.hosts.systems.training.collectives.progress import Progress
from gradbed.switch.engine.queue_pairs import NicCompletion
from gradbed.topo.link import LinkModel
from tests.unit.hosts.training.collectives.random_network import inputs, outputs
from tests.unit.virtual.transport.network import FAILED, RECEIVED, Line

COLLECTIVE, COLLECTIVE_FAILED = 5, 6
LINK = LinkModel(rate_bps=10 * 10**9, delay_us=1, queue_packets=1 << 20)
LOSSY = LinkModel(rate_bps=10 * 10**9, delay_us=1, queue_packets=1 << 20, loss=0.02)
TAG = 1 << 18
RACKS = (0, 0, 1, 1, 1)
CASES = [(algorithm, operation) for operation in Operation for algorithm in algorithms(operation)]


def star(size: int, link: LinkModel = LINK, **options: Any) -> Line:
    """Host i + 1 is rank i; its queue pair to rank j is j + 1."""
    line = Line([1] * size, link)
    for a in range(1, size + 1):
        for b in range(a + 1, size + 1):
            line.connect(a, b, number_a=b, number_b=a, **options)
    return line


def schedules_of(algorithm: Algorithm, operation: Operation, size: int, elements: int) -> list[Schedule]:
    racks = (*RACKS, 1)[:size]
    return [
        schedule(algorithm, operation, size, rank, elements, chunks=3, root=2, racks=racks) for rank in range(size)
    ]


def on_nic(one: Schedule, buffer: NDArray[np.int32] | None = None, element_bytes: int = 4) -> NicCollective:
    steps = one.steps
    pairs = [steps.peer(place) + 1 for place in steps.structure.first_of_each_peer]
    starts, stops = (element_bytes * each for each in steps.ranges())
    return NicCollective(
        steps.structure.on_nic,
        np.array(pairs, np.uint32),
        (stops - starts).astype(np.uint64),
        buffer,
        starts.astype(np.uint64),
        (element_bytes * steps.sources()).astype(np.uint64),
    )


def by_nics(line: Line, schedules: Sequence[Schedule], buffers: Sequence[Any]) -> list[int | None]:
    """When each rank is told of its result; None: it had it when it began."""
    at_once = [
        line.open(rank + 1).begin_collective(TAG, on_nic(one, buffer))
        for rank, (one, buffer) in enumerate(zip(schedules, buffers, strict=True))
    ]
    line.run()
    found: list[int | None] = []
    for rank, has_result in enumerate(at_once):
        told = [(each.kind, each.tag) for each in line.done[rank + 1]]
        assert told == ([] if has_result else [(COLLECTIVE, TAG)])
        found.append(None if has_result else line.done[rank + 1][0].time_ns)
    return found


def by_agents(line: Line, schedules: Sequence[Schedule]) -> list[int | None]:
    """The same by agents that are told of each message."""
    ranks = [Progress(one) for one in schedules]

    def begin(rank: int) -> None:
        for send in ranks[rank].ready():
            tag, size_bytes = send.step << 32 | send.turn, 4 * (send.stop - send.start)
            line.open(rank + 1).send(send.peer + 1, tag, size_bytes)

    for rank in range(len(ranks)):
        begin(rank)
    found: list[int | None] = [None] * len(ranks)
    while True:
        stop = line.simulated.run_until(None)
        for interface in stop.interfaces:
            rank = line.interfaces.index(interface)
            for completion in line.pairs[rank + 1].completions():
                had_result = ranks[rank].has_result
                if completion.kind == RECEIVED:
                    ranks[rank].received(completion.pair - 1, completion.tag & 0xFFFFFFFF, completion.data)
                else:
                    ranks[rank].sent(completion.tag >> 32)
                if ranks[rank].has_result and not had_result:
                    found[rank] = completion.time_ns
            begin(rank)
        if stop.idle:
            assert all(rank.done for rank in ranks)
            return found


def link_rows(line: Line) -> list[tuple[Any, ...]]:
    return [
        (row.device_id, row.port, row.direction, row.packets, row.bytes)
        for row in line.simulated.engine.link_statistics()
    ]


@pytest.mark.parametrize("link", [LINK, LOSSY], ids=["clean", "lossy"])
@pytest.mark.parametrize(("algorithm", "operation"), CASES)
def test_times_and_links_are_those_of_agents(algorithm: Algorithm, operation: Operation, link: LinkModel) -> None:
    for size, elements in ((5, 30_001), (4, 3)):
        schedules = schedules_of(algorithm, operation, size, elements)
        with star(size, link, for_collectives=True) as nics, star(size, link) as agents:
            assert by_nics(nics, schedules, [None] * size) == by_agents(agents, schedules)
            assert link_rows(nics) == link_rows(agents)
            sizes = [
                4 * (step.stop - step.start)
                for one in schedules
                for step in one.steps
                if step.action is CollectiveAction.SEND
            ]
            counts = [nics.open(rank + 1).collective_counts() for rank in range(size)]
            assert sum(each["messages"] for each in counts) == len(sizes)
            assert sum(each["bytes"] for each in counts) == sum(sizes)
            assert not any(each["early"] for each in counts)
            # Their ends are found by who looks, and told to nobody.
            assert not any(pairs.completions() or pairs._collectives for pairs in nics.pairs.values())


@pytest.mark.parametrize("link", [LINK, LOSSY], ids=["clean", "lossy"])
@pytest.mark.parametrize(("algorithm", "operation"), CASES)
def test_results_are_those_of_numpy(algorithm: Algorithm, operation: Operation, link: LinkModel) -> None:
    size, elements = 5, 1003
    schedules = schedules_of(algorithm, operation, size, elements)
    # Sums modulo 2^32 are those modulo 2^64, modulo 2^32.
    vectors = inputs(operation, size, elements, 2, seed=1)
    buffers = []
    for one, values in zip(schedules, vectors, strict=True):
        buffer = np.zeros(one.elements, np.int32)
        buffer[one.input_start : one.input_stop] = values.astype(np.int32)
        buffers.append(buffer)
    with star(size, link, for_collectives=True) as line:
        by_nics(line, schedules, buffers)
    for one, buffer, expected in zip(schedules, buffers, outputs(operation, vectors, 2), strict=True):
        np.testing.assert_array_equal(buffer[one.output_start : one.output_stop], expected.astype(np.int32))


def of_steps(*steps: CollectiveStep, elements: int = 4) -> Schedule:
    return Schedule(StoredSteps(steps), elements, 0, elements, 0, elements)


def exchange(rank: int, elements: int = 4) -> Schedule:
    """Each sends the other its vector; what comes takes its place, and goes back."""
    steps = (
        CollectiveStep(CollectiveAction.SEND, 1 - rank, 0, elements),
        CollectiveStep(CollectiveAction.RECEIVE, 1 - rank, 0, elements, after=(0,)),
        CollectiveStep(CollectiveAction.SEND, 1 - rank, 0, elements, after=(1,)),
        CollectiveStep(CollectiveAction.ADD, 1 - rank, 0, elements, after=(2,)),
    )
    return of_steps(*steps, elements=elements)


def test_who_begins_late_takes_what_has_come() -> None:
    """And finds it counted until then."""
    buffers = [np.full(4, value, np.int32) for value in (1, 10)]
    with star(2, for_collectives=True) as line:
        first, second = line.open(1), line.open(2)
        assert not first.begin_collective(TAG, on_nic(exchange(0), buffers[0]))
        line.run(100_000)
        assert second.collective_counts()["early"] == 1
        assert not first.begin_collective(
            3 * TAG,
            on_nic(
                of_steps(
                    CollectiveStep(CollectiveAction.SEND, 1, 0, 4), CollectiveStep(CollectiveAction.RECEIVE, 1, 0, 4)
                )
            ),
        )
        line.run(200_000)
        assert second.collective_counts()["early"] == 2
        assert not second.begin_collective(TAG, on_nic(exchange(1), buffers[1]))
        assert second.collective_counts()["early"] == 1
        line.run()
        assert [each.kind for each in line.done[1] + line.done[2]] == [COLLECTIVE] * 2
        assert second.begin_collective(
            3 * TAG,
            on_nic(
                of_steps(
                    CollectiveStep(CollectiveAction.SEND, 0, 0, 4), CollectiveStep(CollectiveAction.RECEIVE, 0, 0, 4)
                )
            ),
        )
        line.run()
        assert [each.tag for each in line.done[1]] == [TAG, 3 * TAG]
        assert second.collective_counts() == {"messages": 3, "bytes": 48, "early": 0}
    # Each has the other's, and adds its own, which comes back.
    assert [buffer.tolist() for buffer in buffers] == [[11] * 4] * 2


def test_time_stops_for_results_alone() -> None:
    """Neither for messages nor when the last one is acknowledged."""
    with star(2, for_collectives=True) as line:
        for rank in range(2):
            steps = (
                CollectiveStep(CollectiveAction.SEND, 1 - rank, 0, 4),
                CollectiveStep(CollectiveAction.RECEIVE, 1 - rank, 4, 8),
            )
            line.open(rank + 1).begin_collective(TAG, on_nic(of_steps(*steps, elements=8)))
        told = []
        idle = False
        while not idle:
            stop = line.simulated.run_until(None)
            told += list(stop.interfaces)
            idle = stop.idle
        assert sorted(map(line.interfaces.index, told)) == [0, 1]


def test_what_is_held_sends_nothing() -> None:
    with star(2, for_collectives=True) as line:
        line.open(2).hold_collectives(True)
        for rank in range(2):
            assert not line.open(rank + 1).begin_collective(TAG, on_nic(exchange(rank)))
        line.run(1_000_000)
        assert line.open(2).collective_counts()["messages"] == 0
        assert line.open(1).collective_counts()["messages"] == 1
        assert line.done == {1: [], 2: []}
        line.open(2).hold_collectives(False)
        line.run()
        assert [each.kind for each in line.done[1] + line.done[2]] == [COLLECTIVE] * 2
        assert all(1_000_000 < each.time_ns < 1_100_000 for each in line.done[1] + line.done[2])


def test_held_in_the_middle_it_goes_on_where_it_was() -> None:
    with star(2, for_collectives=True) as line:
        for rank in range(2):
            line.open(rank + 1).begin_collective(TAG, on_nic(exchange(rank, 100_000)))
        line.run(200_000)
        line.open(1).hold_collectives(True)
        line.run(2_000_000)
        assert not line.done[2]
        assert [line.open(host).collective_counts()["messages"] for host in (1, 2)] == [1, 2]
        line.open(1).hold_collectives(False)
        line.run()
        assert [each.kind for each in line.done[1] + line.done[2]] == [COLLECTIVE] * 2


@pytest.mark.parametrize(
    "takes",
    [
        [
            CollectiveStep(CollectiveAction.RECEIVE, 0, 0, 4),
            CollectiveStep(CollectiveAction.RECEIVE, 0, 0, 3),
            CollectiveStep(CollectiveAction.RECEIVE, 2, 0, 4),
        ],
        [CollectiveStep(CollectiveAction.RECEIVE, 0, 0, 4), CollectiveStep(CollectiveAction.RECEIVE, 2, 0, 4)],
        [CollectiveStep(CollectiveAction.RECEIVE, 2, 0, 4)],
    ],
    ids=["another size", "one too many", "of another rank"],
)
def test_a_message_that_is_none_of_it_is_told(takes: list[CollectiveStep]) -> None:
    sends = CollectiveStep(CollectiveAction.SEND, 1, 0, 4)
    with star(3, for_collectives=True) as line:
        line.open(1).begin_collective(TAG, on_nic(of_steps(sends, sends)))
        line.open(2).begin_collective(TAG, on_nic(of_steps(*takes)))
        line.run()
        wrong = [0, 1] if len(takes) == 1 else [1]
        assert [(each.kind, each.pair, each.tag, each.size_bytes) for each in line.done[2]] == [
            (COLLECTIVE_FAILED, 1, TAG + turn, 16) for turn in wrong
        ]


def test_a_length_alone_is_no_contents() -> None:
    with star(2, for_collectives=True) as line:
        line.open(1).begin_collective(TAG, on_nic(of_steps(CollectiveStep(CollectiveAction.SEND, 1, 0, 4))))
        line.open(2).begin_collective(
            TAG, on_nic(of_steps(CollectiveStep(CollectiveAction.RECEIVE, 0, 0, 4)), np.zeros(4, np.int32))
        )
        line.run()
        assert [each.kind for each in line.done[2]] == [COLLECTIVE_FAILED]


def test_who_gets_no_answer_is_told() -> None:
    """Nobody is behind the pair."""
    with star(2, for_collectives=True, give_up_after=3) as line:
        line.open(2).close()
        line.open(1).begin_collective(TAG, on_nic(exchange(0)))
        line.run()
        assert [each.kind for each in line.done[1]] == [FAILED]


def test_closed_in_the_middle_nothing_is_left() -> None:
    with star(3, for_collectives=True) as line:
        for rank in range(2):
            line.open(rank + 1).begin_collective(TAG, on_nic(exchange(rank, 100_000), np.zeros(100_000, np.int32)))
        line.open(3).hold_collectives(True)
        line.run(100_000)
        line.open(2).close()
        line.run(200_000)
        line.open(1).close()
        line.run()
        assert not any(pairs._collectives for pairs in line.pairs.values())


def test_what_cannot_be_is_refused() -> None:
    with star(2, for_collectives=True) as line, star(2) as plain:
        pairs = line.open(1)
        pairs.begin_collective(TAG, on_nic(exchange(0)))
        for tag in (TAG, 2 * TAG + 1):
            with pytest.raises(UserError, match="it runs already, or a queue pair"):
                pairs.begin_collective(tag, on_nic(exchange(0)))
        with pytest.raises(UserError, match="that it needs is not for collectives"):
            plain.open(1).begin_collective(TAG, on_nic(exchange(0)))
        with pytest.raises(UserError, match="that it needs is not for collectives"):
            pairs.begin_collective(2 * TAG, on_nic(of_steps(CollectiveStep(CollectiveAction.SEND, 2, 0, 4))))
        with pytest.raises(UserError, match=r"at most 2\^31 bytes: a collective needs more ranks or chunks"):
            pairs.begin_collective(2 * TAG, on_nic(of_steps(CollectiveStep(CollectiveAction.SEND, 1, 0, 1 << 30))))
        many = on_nic(of_steps(*(CollectiveStep(CollectiveAction.SEND, 1, 0, 0) for _ in range((1 << 18) + 1))))
        with pytest.raises(UserError, match="at most 262,144 messages between two ranks: take fewer chunks"):
            pairs.begin_collective(2 * TAG, many)
        assert pairs.begin_collective(2 * TAG, on_nic(of_steps()))


def test_messages_of_other_pairs_are_told_as_ever() -> None:
    with star(2, for_collectives=True) as line:
        line.connect(1, 2, number_a=9, number_b=9)
        for rank in range(2):
            line.open(rank + 1).begin_collective(TAG, on_nic(exchange(rank)))
        line.open(1).send(9, 7, 5000)
        line.run()
        told: list[NicCompletion] = line.done[2]
        assert sorted(each.kind for each in told) == [RECEIVED, COLLECTIVE]
        assert [(each.pair, each.tag) for each in told if each.kind == RECEIVED] == [(9, 7)]
