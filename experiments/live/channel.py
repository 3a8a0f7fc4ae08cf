"""Between a process that runs a network and the one that shows it: rows one way, commands of the page the other."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from typing import Any

from gradbed.experiments.live.recording import Row

BUFFER_BYTES = 4_000_000
"""So much may wait before the network's process does."""


class Feed:
    """The end of the network's process. When the other one has gone, nobody looks on any more, and all goes on."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""
        self.is_open = True
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)

    def send(self, row: Row) -> None:
        if not self.is_open:
            return
        try:
            self._connection.sendall(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        except OSError:
            self.is_open = False

    def has_room(self) -> bool:
        """Whether a row can be sent at once."""
        poll = select.poll()
        poll.register(self._connection, select.POLLOUT)
        return bool(poll.poll(0))

    def commands(self, timeout_s: float = 0.0) -> list[dict[str, Any]]:
        """What has come; waits so long for the first of them."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        # Less than nothing would be without end.
        if not self.is_open or not poll.poll(1000 * max(0.0, timeout_s)):
            return []
        with contextlib.suppress(BlockingIOError):
            piece = self._connection.recv(65536)
            if not piece:
                self.is_open = False
            self._unread += piece
        *lines, self._unread = self._unread.split(b"\n")
        return [json.loads(line) for line in lines]
