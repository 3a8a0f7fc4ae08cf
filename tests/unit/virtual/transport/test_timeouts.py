"""How long a queue pair waits for news, and what that spares a long queue."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.virtual.transport import roce_frames as rf
from tests.unit.virtual.transport.network import FAILED, SENT, Line
from topo.link import LinkModel

RECOVERIES = ("go-back-n", "selective-repeat")
MS = 1_000_000


def sent_again_ns(line: Line, until_ns: int) -> list[int]:
    """How long after the message host 2, which has no card, gets its one packet again and again."""
    times = []
    while True:
        stop = line.fabric.run_until(until_ns)
        if not line.interface(2).receive()[1].size:
            return [time - times[0] for time in times]
        times.append(stop.time_ns)


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_pauses_double_from_the_fifth_timeout_on(recovery: str) -> None:
    with Line([1, 1], LinkModel(rate_bps=10**10, delay_us=1)) as line:
        line.connect_end(1, 2, 1, 1, recovery=recovery, timeout_ns=MS, give_up_after=20)
        line.open(1).send(1, 7, 100)
        pauses = [1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64, 64, 64]
        assert sent_again_ns(line, 10**11) == [MS * sum(pauses[:count]) for count in range(20)]
        assert line.fabric.now_ns >= MS * sum([*pauses, 64])
        assert [each.kind for each in line.open(1).completions()] == [FAILED]


def test_pauses_are_short_again_when_what_was_sent_once_is_acknowledged() -> None:
    with Line([1, 1], LinkModel(rate_bps=10**10, delay_us=1)) as line:

        def acknowledge(come: int) -> None:
            line.interface(2).send(np.frombuffer(rf.acknowledgement(2, 1, come), np.uint8)[None])
            line.run(line.fabric.now_ns + 5_000)

        def send(run_ms: int) -> list[float]:
            line.open(1).send(1, 7, 100)
            return [time / MS for time in sent_again_ns(line, line.fabric.now_ns + run_ms * MS)]

        line.connect_end(1, 2, 1, 1, timeout_ns=MS)
        assert send(50) == [0, 1, 2, 3, 4, 5, 7, 11, 19, 35]
        acknowledge(1)
        assert send(100) == [0, 32, 96]
        acknowledge(2)
        assert send(60) == [0]
        acknowledge(3)
        assert send(5) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_a_queue_that_is_longer_than_timeouts_does_not_fill_with_copies(recovery: str) -> None:
    """Eight windows of dctcp are 55 ms of the link, 55 timeouts. A timeout sends one packet again, and
    acknowledgements of copies some more; whole windows would be 54 windows of copies."""
    pairs, packets, window = range(1, 9), 1024, 64
    slow = LinkModel(rate_bps=3 * 10**8, delay_us=1, queue_packets=10**6)
    with Line([1, 2], LinkModel(rate_bps=10**10, delay_us=1), between=slow) as line:
        for pair in pairs:
            line.connect(
                1, 2, pair, pair, recovery=recovery, timeout_ns=MS, window_bytes=window * 4096,
                congestion_control="dctcp",
            )  # fmt: skip
            line.open(1).send(pair, pair, packets * 4096)
        line.run()
        assert sorted(each.tag for each in line.received(2)) == list(pairs)
        assert {each.kind for each in line.done[1]} == {SENT}
        for pair in pairs:
            statistics = line.open(1).statistics(pair)
            assert statistics["timeouts"] > 0
            assert statistics["retransmissions"] < 12 * window
