"""TCP connections of the kernel, for agents that go past the context to it (AgentContext.require_kernel)."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass

CHUNK_BYTES = 1 << 16
SO_MAX_PACING_RATE = 47
"""asm-generic/socket.h; Python has no name for it."""
ANSWER = struct.Struct("!QQ")
"""Of a receiver at the end: bytes that came, and when the last of them did."""

_TCP_INFO_BYTES = 104
_RTT_AT, _RETRANSMISSIONS_AT = 68, 100
"""Places of tcpi_rtt and tcpi_total_retrans in struct tcp_info (linux/tcp.h)."""


@dataclass(frozen=True)
class StreamOutcome:
    """The outcome of a connection.

    sent_bytes: given to the kernel. received_bytes, arrived_ns: as its receiver told; None if it did not. local: its
    own end, by which StreamServer.arrivals knows it; empty: iperf3's. retransmissions: segments. rtt_us: the kernel's
    smoothed round trip at the end. error: why the connection was lost, or never came about; empty: it was not.
    """

    begin_ns: int
    sent_bytes: int
    received_bytes: int | None = None
    arrived_ns: int | None = None
    retransmissions: int = 0
    rtt_us: int | None = None
    error: str = ""
    local: str = ""


def _end(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


class StreamServer:
    """Takes in connections on a port of all addresses, each in a thread, and tells its sender what came. A context
    manager; at the end no thread is left."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_server(("", port), backlog=1024)
        self._lock = threading.Lock()
        self._taken_in: dict[socket.socket, threading.Thread] = {}
        self.arrivals: dict[str, tuple[int, int]] = {}
        """By the sender's end, bytes that came and when the last of them did, also of connections that starve."""
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> StreamServer:
        return self

    def __exit__(self, *exception: object) -> None:
        # A thread that waits in a call is not woken by close, and its descriptor may be another's by then.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._socket.close()
        with self._lock:
            left = dict(self._taken_in)
            for connection in left:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in left.values():
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, address = self._socket.accept()
                thread = threading.Thread(target=self._take_in, args=(connection, _end(address)), daemon=True)
                with self._lock:
                    self._taken_in[connection] = thread
                    thread.start()

    def _take_in(self, connection: socket.socket, sender: str) -> None:
        received, arrived_ns = 0, 0
        buffer = bytearray(CHUNK_BYTES)
        with contextlib.suppress(OSError):
            while count := connection.recv_into(buffer):
                received, arrived_ns = received + count, time.monotonic_ns()
                self.arrivals[sender] = received, arrived_ns
            connection.sendall(ANSWER.pack(received, arrived_ns))
        with self._lock:
            del self._taken_in[connection]
            connection.close()


def send_stream(
    address: tuple[str, int],
    *,
    begin_ns: int,
    size: int | None,
    end_ns: int,
    rate_bps: float | None = None,
    timeout_s: float = 5.0,
) -> StreamOutcome:
    """Send so many bytes over a connection from begin_ns on (time.monotonic_ns), or, without a size, until end_ns.

    rate_bps: a limit, which the kernel keeps. timeout_s: the longest that nothing happens.
    """
    time.sleep(max(0, begin_ns - time.monotonic_ns()) / 1e9)
    sent, answer, lost, local = 0, b"", "", ""
    connection = socket.socket()
    with connection:
        connection.settimeout(timeout_s)
        if rate_bps is not None:
            connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, max(1, round(rate_bps / 8)))
        try:
            connection.connect(address)
            local = _end(connection.getsockname())
            chunk = memoryview(bytes(CHUNK_BYTES))
            while sent < size if size is not None else time.monotonic_ns() < end_ns:
                sent += connection.send(chunk if size is None else chunk[: size - sent])
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(ANSWER.size - len(answer)):
                answer += part
        except OSError as error:
            lost = error.strerror or str(error)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    retransmissions, rtt_us = (struct.unpack_from("=I", info, place)[0] for place in (_RETRANSMISSIONS_AT, _RTT_AT))
    received, arrived_ns = ANSWER.unpack(answer) if len(answer) == ANSWER.size else (None, None)
    if received is None and not lost:
        lost = "the receiver has gone"
    return StreamOutcome(begin_ns, sent, received, arrived_ns, retransmissions, rtt_us or None, lost, local)
