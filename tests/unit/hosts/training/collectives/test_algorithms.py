"""Every algorithm does its operations exactly, in whatever order messages come."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import CollectiveAction, Operation
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms, schedule
from gradbed.hosts.systems.training.collectives.progress import Progress
from tests.examples import examples
from tests.unit.hosts.training.collectives.random_network import carried_out, inputs, outputs

PAIRS = [(algorithm, operation) for operation in Operation for algorithm in algorithms(operation)]


def random_racks(size: int, seed: int) -> tuple[int, ...]:
    """Of one size or of several, in order or mixed."""
    draw = random.Random(seed)
    if draw.random() < 0.5:
        width = draw.choice([width for width in range(1, size + 1) if size % width == 0])
        racks = [rank // width for rank in range(size)]
    else:
        racks = [draw.randrange(1, 4) for _ in range(size)]
    if draw.random() < 0.5:
        draw.shuffle(racks)
    return tuple(racks)


def check(
    algorithm: Algorithm, operation: Operation, size: int, elements: int, chunks: int, root: int, seed: int
) -> None:
    racks = random_racks(size, seed)
    draw = random.Random(seed)
    inside = draw.choice([Algorithm.RING, Algorithm.HALVING_DOUBLING, Algorithm.DIRECT])
    alone = (Algorithm.HIERARCHICAL, Algorithm.RECURSIVE_DOUBLING)
    between = draw.choice([other for other in algorithms(Operation.ALL_REDUCE) if other not in alone])
    schedules = [
        schedule(
            *(algorithm, operation, size, rank, elements),
            chunks=chunks,
            root=root,
            racks=racks,
            inside=inside,
            between=between,
        )
        for rank in range(size)
    ]
    vectors = inputs(operation, size, elements, root, seed)
    buffers = carried_out(schedules, vectors, seed)
    for one, buffer, expected in zip(schedules, buffers, outputs(operation, vectors, root), strict=True):
        np.testing.assert_array_equal(buffer[one.output_start : one.output_stop], expected)


@pytest.mark.commit_cases(137)
@pytest.mark.parametrize(("algorithm", "operation"), PAIRS)
# 32 is as much a power of two as 64.
@pytest.mark.parametrize("size", [*range(1, 18), 32, pytest.param(64, marks=pytest.mark.nightly)])
def test_results_are_those_of_numpy(algorithm: Algorithm, operation: Operation, size: int) -> None:
    """Of vectors shorter than the group, and of such as do not divide."""
    for elements, chunks in ((3, 1), (5 * size + 3, 1), (64, 3)) if size < 32 else ((3 * size + 5, 2),):
        check(algorithm, operation, size, elements, chunks, root=(size * 2) // 3, seed=size + elements)


@settings(max_examples=examples(300), deadline=None)
@given(
    pair=st.sampled_from(PAIRS),
    size=st.integers(1, 17),
    elements=st.integers(0, 200),
    chunks=st.integers(1, 9),
    root=st.integers(0, 16),
    seed=st.integers(0, 1 << 32),
)
def test_results_are_those_of_numpy_in_any_order_of_messages(
    pair: tuple[Algorithm, Operation], size: int, elements: int, chunks: int, root: int, seed: int
) -> None:
    check(*pair, size, elements, chunks, root % size, seed)


@pytest.mark.parametrize(("algorithm", "operation"), PAIRS)
@pytest.mark.parametrize("size", [1, 2, 7, 8, 12])
def test_sends_and_receives_match_and_wait_for_earlier_steps(
    algorithm: Algorithm, operation: Operation, size: int
) -> None:
    sent: dict[tuple[int, int], list[int]] = {}
    received: dict[tuple[int, int], list[int]] = {}
    for rank in range(size):
        one = schedule(algorithm, operation, size, rank, 41, chunks=2, root=size // 2, racks=random_racks(size, size))
        for place, step in enumerate(one.steps):
            assert step == one.steps[place]
            assert all(0 <= earlier < place for earlier in step.after)
            assert 0 <= step.start <= step.stop <= one.elements
            if step.action is CollectiveAction.SEND:
                sent.setdefault((rank, step.peer), []).append(step.stop - step.start)
            elif step.action is not CollectiveAction.COPY:
                received.setdefault((step.peer, rank), []).append(step.stop - step.start)
        assert one.steps.peers == {step.peer for step in one.steps if step.action is not CollectiveAction.COPY}
    assert sent == received
    assert all(sender != receiver for sender, receiver in sent)


def sends(algorithm: Algorithm, operation: Operation, size: int, rank: int, elements: int, **more: int) -> list[int]:
    """Lengths of what a rank sends."""
    steps = schedule(algorithm, operation, size, rank, elements, **more).steps
    return [step.stop - step.start for step in steps if step.action is CollectiveAction.SEND]


@pytest.mark.parametrize("size", [2, 3, 8, 16, 17])
def test_a_ring_sends_2_n_minus_1_parts(size: int) -> None:
    elements = 60 * size
    for rank in range(size):
        whole = sends(Algorithm.RING, Operation.ALL_REDUCE, size, rank, elements)
        assert whole == [60] * (2 * (size - 1))
        cut = sends(Algorithm.RING, Operation.ALL_REDUCE, size, rank, elements, chunks=4)
        assert cut == [15] * (8 * (size - 1))
        for operation, length in ((Operation.REDUCE_SCATTER, elements), (Operation.ALL_GATHER, 60)):
            assert sends(Algorithm.RING, operation, size, rank, length) == [60] * (size - 1)


@pytest.mark.parametrize("power", [1, 2, 3, 4, 5, 6])
def test_halving_and_doubling_takes_2_log_n_steps(power: int) -> None:
    size = 1 << power
    elements = 7 * size
    halves = [elements >> step for step in range(1, power + 1)]
    for rank in range(size):
        both = sends(Algorithm.HALVING_DOUBLING, Operation.ALL_REDUCE, size, rank, elements)
        assert both == [*halves, *reversed(halves)]
        assert sends(Algorithm.HALVING_DOUBLING, Operation.REDUCE_SCATTER, size, rank, elements) == halves
        assert sends(Algorithm.HALVING_DOUBLING, Operation.ALL_GATHER, size, rank, 7) == halves[::-1]


@pytest.mark.parametrize("size", [3, 5, 6, 7, 12, 17, 100])
def test_halving_and_doubling_sends_as_little_in_groups_of_other_sizes(size: int) -> None:
    """Each rank (N - 1) / N of the vector each way, in log2 N rounds, rounded up: to as many ranks."""
    rounds = (size - 1).bit_length()
    for rank in range(size):
        for operation, elements, phases in (
            (Operation.ALL_REDUCE, 6 * size, 2),
            (Operation.REDUCE_SCATTER, 6 * size, 1),
            (Operation.ALL_GATHER, 6, 1),
        ):
            steps = schedule(Algorithm.HALVING_DOUBLING, operation, size, rank, elements).steps
            out = [step for step in steps if step.action is CollectiveAction.SEND]
            assert sum(step.stop - step.start for step in out) == 6 * phases * (size - 1)
            assert len({(step.peer, step.after) for step in out}) == phases * rounds


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 31, 33, 100])
def test_recursive_doubling_sends_whole_vectors_log_n_times(size: int) -> None:
    """As MPICH does: N - 2^k folded ranks send their vectors once, and their neighbours once more than others."""
    rounds = size.bit_length() - 1
    folded = size - (1 << rounds)
    lengths = [sends(Algorithm.RECURSIVE_DOUBLING, Operation.ALL_REDUCE, size, rank, 7) for rank in range(size)]
    counts = sorted(len(each) for each in lengths)
    assert {length for each in lengths for length in each} <= {7}
    assert counts == sorted([1] * folded + [rounds + 1] * folded + [rounds] * (size - 2 * folded))


def test_between_racks_recursive_doubling_is_refused() -> None:
    with pytest.raises(UserError, match="room beside the vector"):
        schedule(
            *(Algorithm.HIERARCHICAL, Operation.ALL_REDUCE, 4, 0, 8),
            racks=(0, 0, 1, 1),
            between=Algorithm.RECURSIVE_DOUBLING,
        )


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 9, 16, 17, 33])
def test_two_trees_load_every_rank_alike(size: int) -> None:
    """Each rank has children in one tree at most: it sends the vector twice at most, and receives it so often."""
    elements, chunks = 4 * 8, 4
    for operation, most in ((Operation.ALL_REDUCE, 2), (Operation.BROADCAST, 1), (Operation.REDUCE, 1)):
        total = 0
        for rank in range(size):
            one = schedule(Algorithm.DOUBLE_BINARY_TREE, operation, size, rank, elements, chunks=chunks)
            out = sum(step.stop - step.start for step in one.steps if step.action is CollectiveAction.SEND)
            into = sum(step.stop - step.start for step in one.steps if step.action is not CollectiveAction.SEND)
            assert out <= most * elements
            assert into <= most * elements
            total += out
        assert total == most * (size - 1) * elements


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 64])
def test_a_barrier_takes_log_n_rounds(size: int) -> None:
    rounds = (size - 1).bit_length()
    for rank in range(size):
        assert sends(Algorithm.DISSEMINATION, Operation.BARRIER, size, rank, 0) == [0] * rounds


@pytest.mark.parametrize("size", [2, 3, 8, 13])
def test_nobody_leaves_a_barrier_before_all_have_come(size: int) -> None:
    for late in range(size):
        ranks = [
            Progress(schedule(Algorithm.DISSEMINATION, Operation.BARRIER, size, rank, 0)) for rank in range(size)
        ]
        waiting = [(rank, send) for rank in range(size) if rank != late for send in ranks[rank].ready()]
        while waiting:
            sender, send = waiting.pop()
            ranks[sender].sent(send.step)
            if send.peer != late:
                ranks[send.peer].received(sender, send.turn)
                waiting += [(send.peer, more) for more in ranks[send.peer].ready()]
        assert not any(rank.has_result for rank in ranks)


@pytest.mark.parametrize("algorithm", [Algorithm.PAIRWISE, Algorithm.DIRECT])
def test_an_all_to_all_sends_each_part_once(algorithm: Algorithm) -> None:
    for rank in range(9):
        assert sends(algorithm, Operation.ALL_TO_ALL, 9, rank, 90) == [10] * 8


def test_in_pairwise_exchange_no_two_ranks_send_to_the_same_one() -> None:
    schedules = [schedule(Algorithm.PAIRWISE, Operation.ALL_TO_ALL, 7, rank, 70) for rank in range(7)]
    peers = [[step.peer for step in one.steps if step.action is CollectiveAction.SEND] for one in schedules]
    for chosen in zip(*peers, strict=True):
        assert sorted(chosen) == list(range(7))


def test_equal_calls_share_a_schedule_and_ranks_what_waits_for_what() -> None:
    racks = tuple(rank // 8 for rank in range(1024))
    for algorithm in (Algorithm.RING, Algorithm.HIERARCHICAL):
        one, again, other = (
            schedule(algorithm, Operation.ALL_REDUCE, 1024, rank, 1 << 20, racks=racks) for rank in (7, 7, 15)
        )
        assert again is one
        assert other.steps.structure is one.steps.structure
        assert one.steps[5:7] == [one.steps[5], one.steps[6]]
    assert len(schedule(Algorithm.RING, Operation.ALL_REDUCE, 1024, 7, 1 << 20).steps) == 4 * 1023


def test_ranks_of_a_large_ring_need_little_memory() -> None:
    """1,024 ranks of four thousand steps: less than a byte for each step, where the step itself would take 200."""
    schedule(Algorithm.RING, Operation.ALL_REDUCE, 1024, 0, 77)
    tracemalloc.start()
    schedules = [schedule(Algorithm.RING, Operation.ALL_REDUCE, 1024, rank, 77) for rank in range(1, 1024)]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < sum(len(one.steps) for one in schedules)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UserError, match=r"ring does no broadcast: choose binary-tree or double"):
        schedule(Algorithm.RING, Operation.BROADCAST, 4, 0, 1)
    for size, rank, root in ((0, 0, 0), (4, 4, 0), (4, -1, 0), (4, 0, 4)):
        with pytest.raises(UserError, match="the group's places"):
            schedule(Algorithm.RING, Operation.ALL_REDUCE, size, rank, 1, root=root)
    with pytest.raises(UserError, match="at least one chunk"):
        schedule(Algorithm.RING, Operation.ALL_REDUCE, 4, 0, 1, chunks=0)
