"""The fabric process (python -m switch.fabric) as its parent sees it: JSON lines on standard input and output."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from switch.errors import UserError

READY_TIMEOUT_S = 60.0
"""Covers a first build of the switch's runtime library by a slow C compiler."""

COMMAND_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5.0
USER_ERROR_STATUS = 2


def fabric_command(config: Path) -> list[str]:
    return [sys.executable, "-m", "switch.fabric", str(config)]


class FabricProcess:
    """Starts with the object; `wait_ready` returns once it serves. Its standard error goes to the log file."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as standard_error:
            # In a session of its own, so that Ctrl-C reaches it only through stop().
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=standard_error,
                start_new_session=True,
            )
        self._unread = b""
        self.grpc_ports: tuple[int, ...] = ()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        """UserError in the fabric's words if it cannot serve."""
        self.grpc_ports = tuple(self._event("ready", READY_TIMEOUT_S)["grpc_ports"])

    def link_statistics(self) -> list[dict[str, Any]]:
        """One row per link direction: the fields of switch.engine.LinkStatistics."""
        rows: list[dict[str, Any]] = self._ask("link_statistics", COMMAND_TIMEOUT_S)["rows"]
        return rows

    def quiesce(self, timeout_s: float) -> bool:
        """Wait until no packet is queued or in flight; False if some still are after `timeout_s`."""
        return bool(self._ask("quiesce", timeout_s + COMMAND_TIMEOUT_S, timeout_s=timeout_s)["idle"])

    def stop(self) -> None:
        """Ask it to end, and kill it if it does not. May be called again."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._send({"command": "stop"})
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _ask(self, command: str, wait_s: float, **arguments: Any) -> dict[str, Any]:
        try:
            self._send({"command": command, **arguments})
        except OSError:
            raise self._death() from None
        return self._event(command, wait_s)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _event(self, name: str, timeout_s: float) -> dict[str, Any]:
        """The next event called `name`; answers to questions that were given up are skipped."""
        deadline = time.monotonic() + timeout_s
        while True:
            line = self._line(name, deadline)
            try:
                event: dict[str, Any] = json.loads(line)
                if event["event"] == "error":
                    raise RuntimeError(f"the fabric process refused a command: {event['message']}")
                if event["event"] == name:
                    return event
            except (ValueError, KeyError, TypeError):
                raise RuntimeError(f"the fabric process said {line!r}, which is no event") from None

    def _line(self, wanted: str, deadline: float) -> bytes:
        output = self._process.stdout
        assert output is not None
        while b"\n" not in self._unread:
            if not select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise RuntimeError(f"the fabric process did not answer ({wanted}); its log is {self.log}")
            piece = os.read(output.fileno(), 65536)
            if not piece:
                raise self._death()
            self._unread += piece
        line, self._unread = self._unread.split(b"\n", 1)
        return line

    def _death(self) -> Exception:
        """What to raise when it has gone: its own words if the user can put them right."""
        status = self._process.wait()
        words = self.log.read_text(errors="replace").strip()
        if status == USER_ERROR_STATUS and words:
            return UserError(words.splitlines()[-1])
        return RuntimeError(f"the fabric process ended with status {status}:\n{words}")
