"""Serves the REST interface from a thread, on sockets that were inherited or are opened here."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from common.errors import UserError
from controller.rest.address import unix_path
from controller.rest.body_limits import BodyLimits
from controller.rest.patience import ImpatientProtocol

BACKLOG = 1024
ACCEPTED_AT_ONCE = 128
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def inherited_socket(fd: int) -> socket.socket:
    """The bound stream socket behind a file descriptor of the parent's; UserError if it is none."""
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

    A unix socket that nobody listens on any more is replaced. UserError if it cannot be.
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


class HostCheck:
    """Answers over TCP only requests for a loopback name, this machine's name, or the address that was called.

    Otherwise a web page could point a name of its own at 127.0.0.1, and the reader's browser would let it command
    the switches (DNS rebinding). No browser calls a unix socket.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address, port = scope.get("server") or ("", None)
        app = self._app
        if port is not None:
            called = f"[{address}]" if ":" in address else address
            names = [*LOOPBACK_NAMES, socket.gethostname(), called]
            app = TrustedHostMiddleware(app, names, www_redirect=False)
        await app(scope, receive, send)


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's `backlog` is also how many may wait: who then calls a full unix socket is refused (EAGAIN)."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)


class RestServer:
    """uvicorn in a thread of its own; requests that arrive before it is up wait in the sockets' backlogs."""

    def __init__(self, app: FastAPI, listeners: Sequence[socket.socket]) -> None:
        config = uvicorn.Config(
            HostCheck(BodyLimits(app)),
            http=ImpatientProtocol,
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
