"""TCP connections of agents, over loopback: what becomes of them is told, and nothing of them stays."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from gradbed.hosts.agents.kernel.streams import StreamOutcome, StreamServer, send_stream
from gradbed.hosts.traffic import connections
from gradbed.hosts.traffic.connections import Connection, ConnectionsConfig

LOCAL = "127.0.0.1"
PATIENCE_S = 20.0


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server((LOCAL, 0)) as probe:
        number = int(probe.getsockname()[1])
    threads = set(threading.enumerate())
    yield number
    end = time.monotonic() + PATIENCE_S
    while set(threading.enumerate()) - threads:
        assert time.monotonic() < end, "a thread goes on"
        time.sleep(0.01)


def send(port: int, size: int | None = 10, timeout_s: float = 5.0) -> StreamOutcome:
    now = time.monotonic_ns()
    return send_stream((LOCAL, port), begin_ns=now, size=size, end_ns=now + 10**9, rate_bps=None, timeout_s=timeout_s)


def test_what_came_is_told_to_the_sender(port: int) -> None:
    with StreamServer(port):
        outcomes = [send(port, size) for size in (1, 70_000, 200_000)]
    assert [(each.sent_bytes, each.received_bytes) for each in outcomes] == [
        (size, size) for size in (1, 70_000, 200_000)
    ]
    assert all(each.arrived_ns is not None and each.arrived_ns >= each.begin_ns for each in outcomes)
    assert {each.error for each in outcomes} == {""}


def test_after_the_end_nobody_listens_and_no_thread_reads(port: int) -> None:
    """The fixture sees to the threads."""
    with StreamServer(port):
        idle = socket.create_connection((LOCAL, port), timeout=PATIENCE_S)
        idle.sendall(b"half")
        time.sleep(0.1)  # both threads read now
    assert idle.recv(100) == b"", "its receiver has ended"
    idle.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOCAL, port), timeout=PATIENCE_S)
    with StreamServer(port):
        assert send(port).received_bytes == 10


def test_a_connection_that_is_lost_says_why(port: int) -> None:
    refused = send(port)
    assert (refused.sent_bytes, refused.received_bytes, refused.error) == (0, None, "Connection refused")
    with socket.create_server((LOCAL, port)) as silent:
        lost: list[StreamOutcome] = []
        sender = threading.Thread(target=lambda: lost.append(send(port, None)))
        sender.start()
        connection, _ = silent.accept()
        # As a host does that goes away.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        sender.join(PATIENCE_S)
    assert lost[0].received_bytes is None
    assert lost[0].error in ("Connection reset by peer", "Broken pipe")
    with socket.create_server((LOCAL, port)):
        assert send(port, timeout_s=0.05).error == "timed out"


def test_a_receiver_has_what_came_of_a_connection_that_starves(port: int) -> None:
    with StreamServer(port) as server, socket.create_connection((LOCAL, port), timeout=PATIENCE_S) as starved:
        starved.sendall(bytes(1000))
        host, number = starved.getsockname()
        end = time.monotonic() + PATIENCE_S
        while server.arrivals.get(f"{host}:{number}", (0, 0))[0] < 1000:
            assert time.monotonic() < end, server.arrivals
            time.sleep(0.01)
    with StreamServer(port) as server:
        outcome = send(port, 5000)
    assert server.arrivals[outcome.local] == (5000, outcome.arrived_ns)


def test_what_breaks_in_a_thread_breaks_the_agent(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was as if the connection had never been asked for."""

    def broken(*arguments: object, **options: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(connections, "send_stream", broken)
    config = ConnectionsConfig(
        program="tcp", connections=(Connection(destination=LOCAL, port=port, bytes=1),), duration_us=1000
    )
    running = connections.Running(config, time.monotonic_ns())
    with pytest.raises(MemoryError, match="no room"):
        while not running.is_over:
            time.sleep(0.01)
        running.raise_failure()
