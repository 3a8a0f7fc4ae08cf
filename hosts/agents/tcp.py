"""The kernel's TCP, for agents that are compared with it: connections behind the context on the machine's clock."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from pathlib import Path

from gradbed.common.errors import UserError

RECEIVE_BYTES = 1 << 18
_CONNECT_RETRY_S = 0.05


class Connections:
    """The connections of an agent. poll: what ends its waiting."""

    def __init__(self, poll: select.poll) -> None:
        self.poll = poll
        self.streams: list[TcpStream] = []

    def connect(self, ip: str, port: int, timeout_s: float) -> TcpStream:
        """UserError if nobody answers there for timeout_s."""
        end_s = time.monotonic() + timeout_s
        while True:
            left_s = max(_CONNECT_RETRY_S, end_s - time.monotonic())
            try:
                return TcpStream(socket.create_connection((ip, port), timeout=left_s), self)
            except OSError as error:
                if time.monotonic() >= end_s:
                    reason = error.strerror or str(error)
                    raise UserError(f"nobody answers by TCP at {ip}, port {port}: {reason}") from None
                time.sleep(_CONNECT_RETRY_S)

    def flush(self) -> None:
        """Hand over to the kernel what it takes now."""
        for stream in tuple(self.streams):
            stream.flush()


class TcpStream:
    """A connection. What the kernel does not take at once leaves while the agent waits."""

    def __init__(self, connection: socket.socket, connections: Connections) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer_ip: str = connection.getpeername()[0]
        self.ended = False
        """The other end has closed, or is gone."""
        self._connection = connection
        self._connections = connections
        self._unsent = bytearray()
        connections.poll.register(connection, select.POLLIN)
        connections.streams.append(self)

    def send(self, data: bytes) -> None:
        """Send bytes behind what was sent before."""
        if not self.ended:
            self._unsent += data
            self.flush()

    def flush(self) -> None:
        """Hand over to the kernel what it takes now."""
        if not self._unsent or self.ended:
            return
        try:
            del self._unsent[: self._connection.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._end()
            return
        self._connections.poll.modify(self._connection, select.POLLIN | (select.POLLOUT if self._unsent else 0))

    def receive(self) -> bytes:
        """Return what has come, without waiting; nothing if nothing has."""
        if self.ended:
            return b""
        try:
            data = self._connection.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._end()
        return data

    def _end(self) -> None:
        self.ended = True
        self._connections.poll.unregister(self._connection)
        self._connections.streams.remove(self)

    def close(self) -> None:
        if not self.ended:
            self._end()
        self._connection.close()


class TcpListener:
    """Takes connections to a port."""

    def __init__(self, port: int, connections: Connections) -> None:
        """port: 0 for any that is free. UserError if it is taken."""
        self._connections = connections
        try:
            self._socket = socket.create_server(("", port), backlog=1024)
        except OSError as error:
            raise UserError(f"cannot listen for TCP at port {port}: {error.strerror}") from None
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        connections.poll.register(self._socket, select.POLLIN)

    def accept(self) -> TcpStream | None:
        """The next connection, if one waits."""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            connection, _ = self._socket.accept()
            return TcpStream(connection, self._connections)
        return None

    def close(self) -> None:
        self._connections.poll.unregister(self._socket)
        self._socket.close()


def retransmitted_segments() -> int:
    """Return the retransmissions of all TCP connections in this network namespace; the kernel does not tell why."""
    names, values = (
        line.split() for line in Path("/proc/self/net/snmp").read_text().splitlines() if line[:4] == "Tcp:"
    )
    return int(values[names.index("RetransSegs")])
