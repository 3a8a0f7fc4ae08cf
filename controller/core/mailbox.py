"""Hands on what the southbound tells, in turn and from a thread of its own."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from gradbed.controller.southbound.interface import Message, SouthboundListener, SwitchStatus

_logger = logging.getLogger(__name__)


class Mailbox:
    """Implements gradbed.controller.southbound.interface.SouthboundListener for one that uses the southbound in turn:
    the southbound's own threads must not wait for it."""

    def __init__(self, listener: SouthboundListener) -> None:
        self._listener = listener
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._deliver, name="mailbox", daemon=True)
        self._thread.start()

    def switch_changed(self, status: SwitchStatus) -> None:
        self._waiting.put(lambda: self._listener.switch_changed(status))

    def message(self, switch: str, message: Message) -> None:
        self._waiting.put(lambda: self._listener.message(switch, message))

    def stop(self) -> None:
        """Return once everything that was put in before has been handed on."""
        self._waiting.put(None)
        self._thread.join()

    def _deliver(self) -> None:
        while (deliver := self._waiting.get()) is not None:
            try:
                deliver()
            except Exception:
                # Nobody waits for what comes of it, and the next ones must be delivered.
                _logger.exception("what a switch told could not be dealt with")
