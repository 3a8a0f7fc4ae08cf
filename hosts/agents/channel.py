"""How an agent and its launcher talk: one-byte commands in, JSON lines of events out."""

from __future__ import annotations

import json
import os
import select
from typing import Any

BEGIN = b"b"
STOP = b"s"


def write_event(descriptor: int, event: str, **fields: Any) -> None:
    """One JSON line in one write, so that lines of several processes do not mix (pipe(7), PIPE_BUF)."""
    os.write(descriptor, (json.dumps({"event": event, **fields}) + "\n").encode())


class Channel:
    """An agent's two ends."""

    def __init__(self, job: int, name: str, control: int, events: int) -> None:
        self.job = job
        self.name = name
        self.stopped = False
        """A stop has come; it stays."""
        self._control = control
        self._events = events

    def emit(self, event: str, **fields: Any) -> None:
        write_event(self._events, event, job=self.job, name=self.name, **fields)

    def wait_for_begin(self) -> bool:
        """Block until the launcher says begin (True) or stop (False)."""
        while not self.stopped:
            if self._read_command() == BEGIN:
                return True
        return False

    def wait(self, descriptor: int, timeout_us: int | None) -> None:
        """Block until `descriptor` is readable, a command comes, or the time is over (None: no limit)."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        # Rounded up: waking before the time would only mean waiting again.
        timeout_ms = None if timeout_us is None else max(0, -(-timeout_us // 1000))
        if any(ready == self._control for ready, _ in poll.poll(timeout_ms)):
            self._read_command()

    def _read_command(self) -> bytes:
        command = os.read(self._control, 1)
        if command in (STOP, b""):  # a closed pipe means that the launcher is gone
            self.stopped = True
        return command
