"""sendmmsg and recvmmsg on a pair of datagram sockets."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from gradbed.hosts.agents.kernel.raw_socket import ReceiveBatch, SendBatch

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with a, b:
        yield a, b


def test_frames_arrive_whole_and_in_order(pair: Pair) -> None:
    frames = np.arange(5 * 60, dtype=np.uint8).reshape(5, 60)
    assert SendBatch(8).send(pair[0].fileno(), frames) == 5
    batch = ReceiveBatch(8, 100)
    assert batch.receive(pair[1].fileno()).tolist() == [60] * 5
    np.testing.assert_array_equal(batch.buffer[:5, :60], frames)


def test_structured_rows_can_be_sent(pair: Pair) -> None:
    frames = np.zeros(2, np.dtype([("a", ">u2"), ("b", "u1")]))
    frames["a"] = [1, 2]
    frames["b"] = [3, 4]
    assert SendBatch(4).send(pair[0].fileno(), frames) == 2
    assert [pair[1].recv(9) for _ in range(2)] == [b"\0\1\3", b"\0\2\4"]


def test_more_than_a_batch_takes_several_calls(pair: Pair) -> None:
    frames = np.arange(7, dtype=np.uint8).reshape(7, 1)
    sender, receiver = SendBatch(4), ReceiveBatch(3, 10)
    assert sender.send(pair[0].fileno(), frames) == 4
    assert sender.send(pair[0].fileno(), frames[4:]) == 3
    got = []
    while len(lengths := receiver.receive(pair[1].fileno())):
        got += receiver.buffer[: len(lengths), 0].tolist()
    assert got == list(range(7))


def test_lengths_differ_and_long_frames_are_cut(pair: Pair) -> None:
    for size in (1, 64, 65):
        pair[0].send(b"x" * size)
    batch = ReceiveBatch(8, 64)
    assert batch.receive(pair[1].fileno()).tolist() == [1, 64, 64]


def test_nothing_waiting_is_no_error(pair: Pair) -> None:
    assert len(ReceiveBatch(8, 64).receive(pair[1].fileno())) == 0


def test_errors_are_raised(pair: Pair) -> None:
    pair[1].close()
    with pytest.raises(OSError) as refused:
        SendBatch(2).send(pair[0].fileno(), np.zeros((1, 4), np.uint8))
    assert refused.value.errno == errno.ECONNREFUSED
    with pytest.raises(OSError) as bad:
        ReceiveBatch(2, 4).receive(-1)
    assert bad.value.errno == errno.EBADF


def test_rows_must_lie_together(pair: Pair) -> None:
    with pytest.raises(ValueError, match="contiguous"):
        SendBatch(2).send(pair[0].fileno(), np.zeros((4, 4), np.uint8)[:, :2])


def test_nothing_to_send(pair: Pair) -> None:
    assert SendBatch(2).send(pair[0].fileno(), np.zeros((0, 4), np.uint8)) == 0
