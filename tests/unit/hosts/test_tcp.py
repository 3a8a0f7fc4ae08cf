"""Connections of the kernel's TCP, over loopback."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Iterator

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.agents.tcp import Connections, TcpListener, TcpStream

LONG = bytes(range(256)) * 40_000
"""More than the kernel's buffers take at once."""


@pytest.fixture
def connections() -> Connections:
    return Connections(select.poll())


@pytest.fixture
def pair(connections: Connections) -> Iterator[tuple[TcpStream, TcpStream]]:
    with contextlib.closing(TcpListener(0, connections)) as listener:
        one = connections.connect("127.0.0.1", listener.port, 5.0)
        connections.poll.poll(5000)
        other = listener.accept()
        assert other is not None and listener.accept() is None
    yield one, other
    one.close()
    other.close()


def wait(connections: Connections) -> None:
    """As an agent's context does."""
    assert connections.poll.poll(5000)
    connections.flush()


def test_all_bytes_come_in_order_in_both_directions(
    connections: Connections, pair: tuple[TcpStream, TcpStream]
) -> None:
    one, other = pair
    one.send(LONG)
    one.send(b"end")
    other.send(LONG[1:])
    found = {one: b"", other: b""}
    while len(found[other]) < len(LONG) + 3 or len(found[one]) < len(LONG) - 1:
        wait(connections)
        for stream in pair:
            found[stream] += stream.receive()
    assert found[other] == LONG + b"end" and found[one] == LONG[1:]
    assert one.receive() == b"" and not one.ended
    assert one.peer_ip == "127.0.0.1"


def test_the_end_of_one_is_seen_by_the_other_and_ends_no_wait_any_more(
    connections: Connections, pair: tuple[TcpStream, TcpStream]
) -> None:
    one, other = pair
    one.send(b"last words")
    one.close()
    wait(connections)
    assert other.receive() == b"last words"
    wait(connections)
    assert other.receive() == b"" and other.ended
    assert connections.poll.poll(0) == []
    other.send(LONG)  # to nobody: no complaint


def test_nobody_there_is_one_line(connections: Connections) -> None:
    with contextlib.closing(TcpListener(0, connections)) as listener:
        port = listener.port
        with pytest.raises(UserError, match=f"cannot listen for TCP at port {port}: Address"):
            TcpListener(port, connections)
    with pytest.raises(UserError, match=rf"nobody answers by TCP at 127\.0\.0\.1, port {port}: Connection refused"):
        connections.connect("127.0.0.1", port, 0.0)
