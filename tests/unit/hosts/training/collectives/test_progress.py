"""What a rank is told while it carries out a schedule."""

from __future__ import annotations

import numpy as np
import pytest

from gradbed.hosts.collectives.schedule import (
    CollectiveAction,
    CollectiveStep,
    Operation,
    Schedule,
    StoredSteps,
)
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, schedule
from gradbed.hosts.systems.training.collectives.progress import Progress


def of_steps(*steps: CollectiveStep, elements: int = 4) -> Schedule:
    return Schedule(StoredSteps(steps), elements, 0, elements, 0, elements)


def test_sends_are_told_once_in_the_order_in_which_they_may_begin() -> None:
    progress = Progress(schedule(Algorithm.RING, Operation.ALL_REDUCE, 4, 1, 8))
    (first,) = progress.ready()
    assert (first.step, first.peer, first.turn, first.start, first.stop) == (0, 2, 0, 0, 2)
    assert progress.ready() == []
    progress.received(0, 0)
    assert [(send.peer, send.turn, send.start) for send in progress.ready()] == [(2, 1, 6)]


def test_the_result_is_there_before_sends_are_acknowledged() -> None:
    progress = Progress(schedule(Algorithm.RING, Operation.ALL_GATHER, 2, 0, 4))
    (send,) = progress.ready()
    assert not progress.has_result
    progress.received(1, 0)
    assert progress.has_result
    assert not progress.done
    progress.sent(send.step)
    assert progress.done


def test_an_acknowledged_send_is_no_result() -> None:
    progress = Progress(schedule(Algorithm.RING, Operation.ALL_GATHER, 2, 0, 4))
    (send,) = progress.ready()
    progress.sent(send.step)
    assert not progress.has_result
    progress.received(1, 0)
    assert progress.has_result
    assert progress.done


def test_a_message_that_comes_early_waits_for_its_step() -> None:
    """What takes the place of what is being sent."""
    steps = (
        CollectiveStep(CollectiveAction.SEND, 1, 0, 4),
        CollectiveStep(CollectiveAction.RECEIVE, 1, 0, 4, after=(0,)),
        CollectiveStep(CollectiveAction.SEND, 1, 0, 4, (1,)),
    )
    buffer = np.arange(4)
    progress = Progress(of_steps(*steps), buffer)
    progress.ready()
    progress.received(1, 0, np.full(4, 7))
    assert buffer.tolist() == [0, 1, 2, 3]
    assert progress.ready() == []
    progress.sent(0)
    assert buffer.tolist() == [7, 7, 7, 7]
    assert [(send.step, send.turn) for send in progress.ready()] == [(2, 1)]


def test_messages_of_one_peer_match_by_their_turn() -> None:
    """Whatever the order in which they come, in bytes or in values."""
    steps = (CollectiveStep(CollectiveAction.ADD, 3, 0, 2), CollectiveStep(CollectiveAction.RECEIVE, 3, 2, 4))
    buffer = np.array([1, 2, 3, 4], np.int32)
    progress = Progress(of_steps(*steps), buffer)
    progress.received(3, 1, np.array([30, 40], np.int32).view(np.uint8))
    progress.received(3, 0, np.array([10, 20], np.int32))
    assert buffer.tolist() == [11, 22, 30, 40]
    assert progress.done


def test_a_copy_is_made_when_what_it_waits_for_is_complete() -> None:
    steps = (
        CollectiveStep(CollectiveAction.RECEIVE, 1, 0, 2),
        CollectiveStep(CollectiveAction.COPY, 0, 2, 4, after=(0,), source=0),
    )
    buffer = np.zeros(4, np.int64)
    progress = Progress(of_steps(*steps), buffer)
    assert not progress.has_result
    progress.received(1, 0, np.array([5, 6]))
    assert buffer.tolist() == [5, 6, 5, 6]
    assert progress.done


def test_what_is_not_expected_is_refused() -> None:
    progress = Progress(of_steps(CollectiveStep(CollectiveAction.RECEIVE, 1, 0, 2)), np.zeros(4))
    for peer, turn in ((2, 0), (1, 1)):
        with pytest.raises(ValueError, match=f"message {turn} of rank {peer} is none of this collective"):
            progress.received(peer, turn, np.zeros(2))
    for data in (np.zeros(1), None):
        with pytest.raises(ValueError, match="step 0 takes 2 elements"):
            progress.received(1, 0, data)
    with pytest.raises(ValueError, match="the buffer has 3 elements, the schedule 4"):
        Progress(of_steps(), np.zeros(3))
    assert Progress(of_steps()).done


def test_what_waits_for_a_send_and_is_no_receive_goes_on_when_it_is_told() -> None:
    steps = (
        CollectiveStep(CollectiveAction.SEND, 1, 0, 4),
        CollectiveStep(CollectiveAction.SEND, 1, 0, 4, after=(0,)),
        CollectiveStep(CollectiveAction.RECEIVE, 1, 0, 4, (1,)),
    )
    progress = Progress(of_steps(*steps))
    assert [send.step for send in progress.ready()] == [0]
    progress.sent(0)
    assert [send.step for send in progress.ready()] == [1]
