"""A child process that takes commands and gives events, each a JSON object on a line of its own."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from switch.errors import UserError


class JsonLinesProcess:
    """Start `command`; its standard error goes to the file `log`. `keep_open` are descriptors it inherits."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, keep_open: Sequence[int] = ()) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, pass_fds=keep_open
            )
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name=f"{name} events", daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._events.put(json.loads(line))
        self._events.put(None)

    def send(self, command: str, **arguments: Any) -> None:
        """Send a command. Raises UserError if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"command": command, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def event(self, timeout_s: float) -> dict[str, Any]:
        """The next event. Raises UserError if the process has ended, or is silent for `timeout_s`."""
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            raise UserError(f"the {self.name} has been silent for {timeout_s:.0f} s; see {self._log}") from None
        if event is None:
            raise self._ended()
        return event

    def expect(self, name: str, timeout_s: float) -> dict[str, Any]:
        """Skip events until one with this name."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = self.event(max(0.0, deadline - time.monotonic()))
            if event["event"] == name:
                return event

    def terminate(self) -> None:
        """End the process and wait for it."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ended(self) -> UserError:
        self._process.wait()
        lines = self._log.read_text(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit status {self._process.returncode}"
        return UserError(f"the {self.name} ended: {reason}")
