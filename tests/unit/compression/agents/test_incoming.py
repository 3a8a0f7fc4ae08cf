"""When a receiver of a multicast stream acknowledges: the first packets at once, copies after a random delay."""

from __future__ import annotations

import numpy as np

from gradbed.hosts.protocols.frames import Frames
from gradbed.hosts.systems.compression.frames import part_type
from gradbed.hosts.systems.compression.transport import MOST_DOUBLINGS, StreamInput

SPREAD_US = 5000


def frames(*sequences: int) -> Frames:
    made = np.zeros(len(sequences), part_type(8))
    made["sequence"] = sequences
    return made


def delays_us(seed: int, spread_us: int = SPREAD_US) -> list[int]:
    """Of answers to ten copies of one packet, one after the other."""
    incoming = StreamInput(0, every=1, spread_us=spread_us, seed=seed)
    assert len(incoming.accept(frames(0), 100)) == 1
    assert incoming.due_us == 100, "what is new is acknowledged at once"
    found = []
    for copy in range(10):
        now_us = 1_000_000 * (copy + 1)
        incoming.acknowledgement()
        assert incoming.due_us is None
        assert len(incoming.accept(frames(0), now_us)) == 0
        assert incoming.due_us is not None
        found.append(incoming.due_us - now_us)
    return found


def test_receivers_of_one_packet_answer_its_copies_at_different_times() -> None:
    every = [delays_us(seed) for seed in range(20)]
    assert every == [delays_us(seed) for seed in range(20)]
    assert len({delays[0] for delays in every}) > 15
    for copy, delays in enumerate(zip(*every, strict=True)):
        bound_us = SPREAD_US << min(copy, MOST_DOUBLINGS)
        assert min(delays) >= 0 and bound_us / 2 < max(delays) <= bound_us


def test_one_answer_is_enough_for_copies_that_come_while_it_waits() -> None:
    incoming = StreamInput(0, every=1, spread_us=SPREAD_US, seed=1)
    incoming.accept(frames(0), 0)
    incoming.acknowledgement()
    incoming.accept(frames(0), 10)
    due_us = incoming.due_us
    incoming.accept(frames(0), 20)
    assert incoming.due_us == due_us
    incoming.accept(frames(1), 30)
    assert incoming.due_us == 30, "news are told at once"


def test_without_a_group_copies_are_acknowledged_at_once() -> None:
    assert delays_us(1, spread_us=0) == [0] * 10
