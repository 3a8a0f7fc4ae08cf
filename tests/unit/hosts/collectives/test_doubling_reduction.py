"""Recursive doubling of fragments among workers: exact sums in any order of messages, and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.hosts.collectives.doubling_all_reduce import DoublingReduction
from gradbed.hosts.collectives.ring_all_reduce import RingMessage
from gradbed.hosts.learning.fragments import as_sent

LARGEST = (1 << 31) - 1


@settings(max_examples=200, deadline=None)
@given(
    workers=st.integers(1, 20),
    fragments=st.integers(0, 4),
    largest=st.sampled_from([3, 1 << 20, LARGEST]),
    seed=st.integers(0, 1 << 32),
)
def test_all_have_the_exact_sum_in_whatever_order_messages_come(
    workers: int, fragments: int, largest: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    gradients = draw.integers(-largest - 1, largest, (workers, fragments, 3), np.int32, endpoint=True)
    reductions = [DoublingReduction(7, index, workers, gradients[index]) for index in range(workers)]
    order = random.Random(seed)
    on_way = [(index, *each) for index, one in enumerate(reductions) for each in one.begin()]
    sent = len(on_way)
    while on_way:
        sender, receiver, message = on_way.pop(order.randrange(len(on_way)))
        found = reductions[receiver].accept(sender, message)
        assert found is not None
        assert reductions[receiver].accept(sender, message) is None
        on_way += [(receiver, *each) for each in found]
        sent += len(found)
    # What a parameter server would have sent back (gradbed.hosts.learning.fragments), bit for bit.
    expected = as_sent(gradients.sum(axis=0, dtype=np.int64).reshape(-1), 3)
    for one in reductions:
        assert one.finished
        assert one.sums.reshape(-1).tolist() == expected.tolist()
    if largest == 3:
        # MPICH: a power of two of ranks in log2 of them rounds, the others once in and once out.
        power = 1 << (workers.bit_length() - 1)
        assert sent == fragments * (power * (workers.bit_length() - 1) + 2 * (workers - power))


@pytest.mark.parametrize(
    ("peer", "wrong"),
    [(1, {"round": 6}), (1, {"fragment": 1}), (1, {"step": 2}), (1, {"step": 9}), (2, {}), (3, {})],
)
def test_what_nobody_sends_now_is_refused(peer: int, wrong: dict[str, int]) -> None:
    """Worker 0 of 4 hears worker 1 in step 1 and worker 2 in step 2."""
    message = RingMessage(5, 1, 0, np.array([1], np.int32))
    gradient = np.array([[1]], np.int32)
    assert DoublingReduction(5, 0, 4, gradient).accept(1, message) is not None
    assert DoublingReduction(5, 0, 4, gradient).accept(peer, replace(message, **wrong)) is None  # type: ignore[arg-type]
