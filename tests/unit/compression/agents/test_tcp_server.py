"""The server over TCP, on streams and a clock that a test drives: whom it waits for, and what counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradbed.formats.compression import Flags
from gradbed.hosts.compressors.content import Content, Written, written
from gradbed.hosts.learning.settings import SyntheticSettings
from gradbed.hosts.systems.compression.frames import RECORD_BYTES, Route, end_frame, part_frames
from gradbed.hosts.systems.compression.gradients import Assembly
from gradbed.hosts.systems.compression.tcp import LENGTH_BYTES, RecordReader, TcpServer, records
from tests.unit.compression.jobs import job_of

VALUES = 900
"""Three packets."""
LEFT_AFTER_US = 50_000


JOB = job_of(
    3,
    protocol="tcp",
    pacing="none",
    left_after_us=LEFT_AFTER_US,
    workload=SyntheticSettings(rounds=1, values=VALUES),
)


class Stream:
    """gradbed.hosts.agents.tcp.TcpStream to the worker of that number, or to a stranger."""

    def __init__(self, index: int) -> None:
        self.peer_ip = f"10.0.0.{2 + index}"
        self.ended = False
        self.closed = False
        self.came = b""
        self.told = b""

    def receive(self) -> bytes:
        data, self.came = self.came, b""
        return data

    def send(self, data: bytes) -> None:
        self.told += data

    def close(self) -> None:
        self.closed = True

    def total(self) -> np.ndarray[Any, Any] | None:
        """The sum, if it has come whole."""
        found = Assembly(VALUES)
        for record in RecordReader().take(self.told):
            if not record["flags"][0] & int(Flags.ACK):
                found.add(record)
        return found.values if found.end_sequence is not None else None


class Bench:
    """gradbed.hosts.agents.context.AgentContext and gradbed.hosts.agents.kernel.tcp.TcpListener: each wait is a step
    of the test."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        self.steps = list(steps)
        self.now = 0
        self.waited_until: list[int | None] = []
        self.stopped = False
        self.events: list[dict[str, Any]] = []
        self.knocking: list[Stream] = []

    def now_us(self) -> int:
        return self.now

    def wait(self, until_us: int | None = None) -> None:
        self.waited_until.append(until_us)
        if self.steps:
            self.steps.pop(0)()
        else:
            self.stopped = True

    def emit(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})

    def accept(self) -> Stream | None:
        return self.knocking.pop(0) if self.knocking else None

    def of(self, event: str) -> list[int]:
        return [each["worker"] for each in self.events if each["event"] == event]


def gradient(index: int) -> np.ndarray[Any, Any]:
    return np.arange(VALUES, dtype=np.int64) * 10**index


def packets(index: int) -> Written:
    return written(Content(VALUES, gradient(index)), RECORD_BYTES + LENGTH_BYTES)


def sent(index: int, count: int | None = None) -> bytes:
    """Of a gradient, so many packets; None: all, and the end."""
    worker = JOB.workers[index]
    route = Route(JOB.job, worker, JOB.server.ip, worker.gateway_mac)
    parts = part_frames(route, packets(index), 0, 0)
    return records(parts[:count] if count is not None else [*parts, end_frame(route, 0, len(parts))])


def serve(bench: Bench) -> None:
    TcpServer(JOB, bench, bench).run()  # type: ignore[arg-type]


def connected(count: int = 3) -> tuple[list[Stream], Bench]:
    streams, bench = [Stream(index) for index in range(count)], Bench()
    bench.knocking = list(streams)
    return streams, bench


def test_a_connection_that_ends_is_not_waited_for_and_what_came_counts() -> None:
    streams, bench = connected()

    def one_dies() -> None:
        streams[0].came, streams[1].came, streams[2].came = sent(0), sent(1, 1), sent(2)
        streams[1].ended = True

    bench.steps = [one_dies]
    serve(bench)
    assert bench.of("left") == [1] and bench.now == 0
    part = gradient(1)
    part[packets(1).ends[0] :] = 0
    for index in (0, 2):
        total = streams[index].total()
        assert total is not None and np.array_equal(total, gradient(0) + part + gradient(2))
    assert streams[1].closed and bench.of("received") == [1, 0, 2]


@pytest.mark.parametrize("count", [2, 3])
def test_a_worker_that_falls_silent_or_never_connects_is_not_waited_for_after_a_while(count: int) -> None:
    streams, bench = connected(count)

    def all_but_the_last() -> None:
        bench.now = 1000
        for index in (0, 1):
            streams[index].came = sent(index)

    def patience_ends() -> None:
        assert bench.of("left") == [] and streams[0].total() is None
        due_us = bench.waited_until[-1]
        assert due_us == LEFT_AFTER_US  # nothing was ever heard of it
        bench.now = due_us

    bench.steps = [all_but_the_last, patience_ends]
    serve(bench)
    assert bench.of("left") == [2]
    total = streams[1].total()
    assert total is not None and np.array_equal(total, gradient(0) + gradient(1))


def test_while_nobody_is_done_nobody_is_waited_for() -> None:
    _, bench = connected()

    def much_later() -> None:
        bench.now = 100 * LEFT_AFTER_US

    bench.steps = [much_later, much_later]
    serve(bench)
    assert bench.of("left") == [] and bench.waited_until == [None, None, None]


def test_strangers_and_second_connections_are_closed() -> None:
    streams, bench = connected()
    stranger, again = Stream(7), Stream(0)
    bench.knocking += [stranger, again]

    def both_are_closed() -> None:
        assert stranger.closed and again.closed and not streams[0].closed

    bench.steps = [lambda: None, both_are_closed]
    serve(bench)
    assert bench.of("left") == [] and not bench.steps
