"""Serve the REST interface from a thread, on sockets that were inherited or are opened here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import socket
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from gradbed.common.errors import UserError
from gradbed.common.namespaces import in_namespace_of_socket
from gradbed.common.peer_account import LoopbackPeers
from gradbed.controller.rest.client import unix_path
from gradbed.controller.rest.middleware import AccessCheck, BodyLimits

_logger = logging.getLogger(__name__)

# ---- Listening sockets ----

BACKLOG = 1024


def inherited_socket(fd: int) -> socket.socket:
    """Return the bound stream socket behind an inherited file descriptor, and listen on it.

    Raises:
        UserError: It is no stream socket.
    """
    try:
        inherited = socket.socket(fileno=fd)
    except OSError as error:
        raise UserError(f"rest_fd {fd} is not a socket: {error.strerror}") from None
    if inherited.type != socket.SOCK_STREAM:
        raise UserError(f"rest_fd {fd} is not a stream socket")
    inherited.listen(BACKLOG)
    return inherited


def listening_socket(address: str) -> socket.socket:
    """Listen at "HOST:PORT", or on a unix socket at a path (with or without "unix:" before it).

    A unix socket that no process listens on any more is replaced.

    Raises:
        UserError: The address is wrong or in use.
    """
    path = unix_path(address)
    try:
        if path is None:
            host, _, port = address.rpartition(":")
            return socket.create_server((host, int(port)), backlog=BACKLOG)
        _remove_stale(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen(BACKLOG)
        return listener
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"cannot listen at {address}: {reason}") from None


def _remove_stale(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return  # bind says that the address is in use
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


# ---- The server ----

ACCEPTED_AT_ONCE = 128


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with a longer backlog than uvicorn's: connecting to a full unix socket fails with EAGAIN."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)


class RestServer:
    """Run uvicorn in a thread of its own; requests that arrive before it is up wait in the sockets' backlogs."""

    def __init__(self, app: ASGIApp, listeners: Sequence[socket.socket]) -> None:
        over_tcp = [listener for listener in listeners if listener.family != socket.AF_UNIX]
        self._peers = [in_namespace_of_socket(listener, LoopbackPeers) for listener in over_tcp]
        config = uvicorn.Config(
            AccessCheck(BodyLimits(app), self._peers),
            http=TimeoutProtocol,
            log_level="warning",
            access_log=False,
            lifespan="off",
            backlog=ACCEPTED_AT_ONCE,  # before any of them is looked at
        )
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": list(listeners)}, name="rest", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        for each in self._peers:
            each.close()


# ---- Timeouts of connections ----

REQUEST_TIMEOUT_S = 20.0
"""Time for a whole request, from the connection or the previous answer on, however slowly its bytes arrive."""

ANSWER_TIMEOUT_S = 60.0
"""Time after which a connection is closed if the client has read nothing of the rest of its answer."""

MAX_CONNECTIONS = 256
"""Limit of open connections. Together with the backlog it is well below the usual 1,024 descriptors of a process;
without descriptors left, asyncio would retry accept() forever."""


class TimeoutProtocol(H11Protocol):
    """Close connections whose client sends its request, or reads its answer, too slowly.

    uvicorn itself has a timeout only between an answer and the next request. Beyond MAX_CONNECTIONS the oldest
    connection without a request is closed.
    """

    _warned_at_s: ClassVar[float] = -math.inf

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._request = _Timer(REQUEST_TIMEOUT_S, lambda: self._give_up("does not send the whole of its request"))
        self._answer = _Timer(ANSWER_TIMEOUT_S, self._answer_is_late)
        self._unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_request()
        if len(self.connections) > MAX_CONNECTIONS:
            self._close_oldest()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_bytes = self.transport.get_write_buffer_size()
        self._answer.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._answer.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._request.stop()
        self._answer.stop()

    def _watch_request(self) -> None:
        # Not while the answer is being made, however long that takes.
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self._request.stop()
        elif not self.transport.is_closing():
            self._request.start()

    def _close_oldest(self) -> None:
        """Close the connection that has waited longest without sending a request."""
        waiting = [each for each in self.connections if isinstance(each, TimeoutProtocol) and each._request.is_on]
        first = min(waiting, key=lambda each: each._request.ends_s, default=self)
        first._request.stop()
        first.transport.abort()
        now_s = asyncio.get_running_loop().time()
        if now_s - self._warned_at_s >= REQUEST_TIMEOUT_S:
            TimeoutProtocol._warned_at_s = now_s
            _logger.warning(
                "the REST interface has %d connections: those that wait longest are closed for others",
                MAX_CONNECTIONS,
            )

    def _answer_is_late(self) -> None:
        before, self._unread_bytes = self._unread_bytes, self.transport.get_write_buffer_size()
        if self._unread_bytes >= before:
            self._give_up("does not read its answer")
        else:
            self._answer.stop()
            self._answer.start()

    def _give_up(self, what: str) -> None:
        _logger.warning("a client of the REST interface %s: its connection is closed", what)
        self.transport.abort()


class _Timer:
    """A timer that calls a function once after it is started, unless it is stopped before."""

    def __init__(self, after_s: float, then: Callable[[], None]) -> None:
        self._after_s, self._then = after_s, then
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_on(self) -> bool:
        return self._handle is not None

    @property
    def ends_s(self) -> float:
        """Time of the event loop at which the timer expires; infinite if it is not running."""
        return math.inf if self._handle is None else self._handle.when()

    def start(self) -> None:
        """Start the timer, unless it is running: further bytes of a request do not restart it."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(self._after_s, self._then)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
