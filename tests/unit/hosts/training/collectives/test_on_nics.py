"""Collectives over queue pairs of NICs, through a P4 switch on the virtual clock: sums are right, costs as told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms, schedule
from gradbed.hosts.systems.training.collectives.costs import cost_ns, star
from gradbed.hosts.systems.training.collectives.progress import Progress
from gradbed.topo.link import LinkModel
from tests.unit.hosts.training.collectives.random_network import inputs, outputs
from tests.unit.virtual.transport.network import FAILED, RECEIVED, Line

RATE_BPS, DELAY_US = 100 * 10**9, 1


class Star:
    """Ranks are hosts 1, 2, ... of one switch. queue_packets: enough that nothing is lost."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.line = Line([1] * size, LinkModel(rate_bps=RATE_BPS, delay_us=DELAY_US, queue_packets=1 << 20))
        for a in range(1, size + 1):
            for b in range(a + 1, size + 1):
                self.line.connect(a, b, number_a=b, number_b=a)

    def run(self, ranks: list[Progress], element_bytes: int) -> float:
        """Nanoseconds until the last one has its result."""
        for rank in range(self.size):
            self._begin(ranks, rank, element_bytes)
        ended = dict.fromkeys(range(self.size), 0)
        while True:
            stop = self.line.simulated.run_until(None)
            for interface in stop.interfaces:
                rank = self.line.interfaces.index(interface)
                for completion in self.line.pairs[rank + 1].completions():
                    assert completion.kind != FAILED
                    had_result = ranks[rank].has_result
                    if completion.kind == RECEIVED:
                        ranks[rank].received(completion.pair - 1, completion.tag & 0xFFFFFFFF, completion.data)
                    else:
                        ranks[rank].sent(completion.tag >> 32)
                    if not had_result and ranks[rank].has_result:
                        ended[rank] = completion.time_ns
                    self._begin(ranks, rank, element_bytes)
            if stop.idle:
                assert all(rank.done for rank in ranks)
                return max(ended.values())

    def _begin(self, ranks: list[Progress], rank: int, element_bytes: int) -> None:
        buffer = ranks[rank].buffer
        for send in ranks[rank].ready():
            data: Any = None if buffer is None else buffer[send.start : send.stop]
            tag, size_bytes = send.step << 32 | send.turn, (send.stop - send.start) * element_bytes
            self.line.open(rank + 1).send(send.peer + 1, tag, size_bytes, data)


CASES = [
    (algorithm, operation, chunks)
    for operation in Operation
    for algorithm in algorithms(operation)
    for chunks in ((1, 4) if algorithm in (Algorithm.RING, Algorithm.DOUBLE_BINARY_TREE) else (1,))
]


@pytest.mark.parametrize(("algorithm", "operation", "chunks"), CASES)
def test_time_is_within_2_per_cent_of_the_cost(algorithm: Algorithm, operation: Operation, chunks: int) -> None:
    size, racks = 8, (0, 0, 0, 0, 1, 1, 1, 1)
    size_bytes = 50_003 if operation in (Operation.ALL_GATHER, Operation.GATHER) else 400_003
    schedules = [
        schedule(algorithm, operation, size, rank, size_bytes, chunks=chunks, racks=racks) for rank in range(size)
    ]
    star_of_nics = Star(size)
    with star_of_nics.line:
        found = star_of_nics.run([Progress(one) for one in schedules], element_bytes=1)
    network = star(RATE_BPS, 1000 * DELAY_US)
    expected = cost_ns(algorithm, operation, size, size_bytes, network, chunks=chunks, racks=racks)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("algorithm", "operation"),
    [(algorithm, operation) for operation in Operation for algorithm in algorithms(operation)],
)
def test_results_are_those_of_numpy(algorithm: Algorithm, operation: Operation) -> None:
    size, racks, elements = 5, (0, 0, 1, 1, 1), 1003
    schedules = [
        schedule(algorithm, operation, size, rank, elements, chunks=3, root=2, racks=racks) for rank in range(size)
    ]
    vectors = inputs(operation, size, elements, 2, seed=1)
    ranks = []
    for one, values in zip(schedules, vectors, strict=True):
        buffer = np.zeros(one.elements, np.int64)
        buffer[one.input_start : one.input_stop] = values
        ranks.append(Progress(one, buffer))
    star_of_nics = Star(size)
    with star_of_nics.line:
        star_of_nics.run(ranks, element_bytes=8)
    for one, rank, expected in zip(schedules, ranks, outputs(operation, vectors, 2), strict=True):
        assert rank.buffer is not None
        np.testing.assert_array_equal(rank.buffer[one.output_start : one.output_stop], expected)
