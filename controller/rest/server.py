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
from starlette.types import ASGIApp

from gradbed.common.errors import UserError
from gradbed.common.namespaces import in_namespace_of_socket
from gradbed.common.peer_account import LoopbackPeers
from gradbed.controller.rest.access import AccessCheck
from gradbed.controller.rest.address import unix_path
from gradbed.controller.rest.bodies import BodyLimits
from gradbed.controller.rest.patience import ImpatientProtocol

BACKLOG = 1024
ACCEPTED_AT_ONCE = 128


def inherited_socket(fd: int) -> socket.socket:
    """Return the bound stream socket behind a file descriptor of the parent's.

    Raises:
        UserError: It is none.
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


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with a longer backlog than uvicorn's: connecting to a full unix socket fails with EAGAIN."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)


class RestServer:
    """uvicorn in a thread of its own; requests that arrive before it is up wait in the sockets' backlogs."""

    def __init__(self, app: ASGIApp, listeners: Sequence[socket.socket]) -> None:
        over_tcp = [listener for listener in listeners if listener.family != socket.AF_UNIX]
        self._peers = [in_namespace_of_socket(listener, LoopbackPeers) for listener in over_tcp]
        config = uvicorn.Config(
            AccessCheck(BodyLimits(app), self._peers),
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
        for each in self._peers:
            each.close()
