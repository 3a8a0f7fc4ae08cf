"""A network that carries messages in any order, and what each operation must give, by NumPy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.collectives.schedule import Operation, Schedule
from gradbed.hosts.systems.training.collectives.progress import Progress, Send

Vector = NDArray[np.int64]


def carried_out(schedules: Sequence[Schedule], inputs: Sequence[Vector], seed: int) -> list[Vector]:
    """Each rank's buffer in the end. Messages begin, come and are told as sent in an order drawn from the seed. What
    a send names must not change until it is told: a NIC may have to send it again."""
    draw = random.Random(seed)
    buffers, ranks = [], []
    for schedule, values in zip(schedules, inputs, strict=True):
        buffer = np.full(schedule.elements, -(1 << 40), np.int64)
        buffer[schedule.input_start : schedule.input_stop] = values
        buffers.append(buffer)
        ranks.append(Progress(schedule, buffer))
    events: list[tuple[str, int, Send, Vector]] = []

    def begin(rank: int) -> None:
        for send in ranks[rank].ready():
            events.append(("come", rank, send, buffers[rank][send.start : send.stop].copy()))

    for rank in range(len(ranks)):
        begin(rank)
    while events:
        place = draw.randrange(len(events))
        events[place], events[-1] = events[-1], events[place]
        kind, rank, send, contents = events.pop()
        if kind == "come":
            ranks[send.peer].received(rank, send.turn, contents)
            events.append(("sent", rank, send, contents))
            begin(send.peer)
        else:
            np.testing.assert_array_equal(buffers[rank][send.start : send.stop], contents)
            ranks[rank].sent(send.step)
            begin(rank)
    assert all(rank.done for rank in ranks), "a deadlock"
    return buffers


def inputs(operation: Operation, size: int, elements: int, root: int, seed: int) -> list[Vector]:
    """Random ones, of all 64 bits: sums wrap around, as NumPy's do."""
    generator = np.random.default_rng(seed)
    limits = np.iinfo(np.int64)
    made = [generator.integers(limits.min, limits.max, elements, dtype=np.int64) for _ in range(size)]
    if operation in (Operation.BROADCAST, Operation.SCATTER):
        return [values if rank == root else values[:0] for rank, values in enumerate(made)]
    return made if operation is not Operation.BARRIER else [values[:0] for values in made]


def outputs(operation: Operation, given: Sequence[Vector], root: int) -> list[Vector]:
    """What each rank must have in the end."""
    size = len(given)
    nothing = np.empty(0, np.int64)

    def split(values: Vector) -> list[Vector]:
        edges = [number * len(values) // size for number in range(size + 1)]
        return [values[start:stop] for start, stop in pairwise(edges)]

    def of_root(values: Vector) -> list[Vector]:
        return [values if rank == root else nothing for rank in range(size)]

    if operation is Operation.BROADCAST:
        return [given[root]] * size
    if operation is Operation.SCATTER:
        return split(given[root])
    if operation is Operation.BARRIER:
        return [nothing] * size
    if operation is Operation.ALL_TO_ALL:
        parts = [split(values) for values in given]
        return [np.concatenate([parts[sender][rank] for sender in range(size)]) for rank in range(size)]
    together = np.concatenate(given)
    total: Vector = np.sum(np.stack(given), axis=0, dtype=np.int64)
    return {
        Operation.ALL_REDUCE: [total] * size,
        Operation.REDUCE: of_root(total),
        Operation.REDUCE_SCATTER: split(total),
        Operation.ALL_GATHER: [together] * size,
        Operation.GATHER: of_root(together),
    }[operation]
