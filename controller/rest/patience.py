"""Connections do not wait for ever for clients that send their request in drops, or never read the answer; and there
are never so many that the process runs out of descriptors."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

_logger = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 20.0
"""From the connection, or the answer before, to the whole request, however it trickles in."""

ANSWER_TIMEOUT_S = 60.0
"""So long the rest of an answer may wait without the client taking any of it."""


MAX_CONNECTIONS = 256
"""At once: with those that wait to be taken in well below the usual 1,024 descriptors of a process. asyncio, where it
has none left, would only try again and again."""


class ImpatientProtocol(H11Protocol):
    """uvicorn's, which by itself watches over connections between an answer and the next request alone."""

    _told_of_crowd_s: ClassVar[float] = -math.inf

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._request = _Timer(REQUEST_TIMEOUT_S, lambda: self._give_up("does not send the whole of its request"))
        self._answer = _Timer(ANSWER_TIMEOUT_S, self._answer_is_late)
        self._unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_request()
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()

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

    def _make_room(self) -> None:
        """Close the oldest connection that has not sent a request: a client that wants something sends it."""
        waiting = [each for each in self.connections if isinstance(each, ImpatientProtocol) and each._request.is_on]
        first = min(waiting, key=lambda each: each._request.ends_s, default=self)
        first._request.stop()
        first.transport.abort()
        now_s = asyncio.get_running_loop().time()
        if now_s - self._told_of_crowd_s >= REQUEST_TIMEOUT_S:
            ImpatientProtocol._told_of_crowd_s = now_s
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
    """Runs once at a time, and not at all once it is stopped."""

    def __init__(self, after_s: float, then: Callable[[], None]) -> None:
        self._after_s, self._then = after_s, then
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_on(self) -> bool:
        return self._handle is not None

    @property
    def ends_s(self) -> float:
        """The event loop's time at which it runs out; infinite if it is not on."""
        return math.inf if self._handle is None else self._handle.when()

    def start(self) -> None:
        """Unless it runs already: what trickles in does not put it off."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(self._after_s, self._then)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
