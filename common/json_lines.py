"""A child process that takes commands and gives events: JSON objects, one a line, on stdin and stdout."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from gradbed.common.errors import ProcessLost, UserError
from gradbed.common.store import cache_dir, make_cache_folder

USER_ERROR_STATUS = 2


def own_program(module: str, *arguments: str) -> list[str]:
    """Return the command of a process that runs a module of this project as Python was told to run this one.

    Isolated (-I), and with what it compiles in another folder (-X pycache_prefix). What lies in the current directory
    is none of its modules (-P, since Python 3.11).
    """
    options = ["-P"] if sys.version_info >= (3, 11) else []
    if sys.flags.isolated:
        options = ["-I"]
    if sys.pycache_prefix:
        options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    return [sys.executable, *options, "-m", module, *arguments]


def told_file(argument: str) -> Path:
    """Return the file of an argument in such a process.

    For "-" it is the one that the parent names once it is there: {"command": "configure", "file": ...}.

    Raises:
        UserError: The parent names none.
    """
    if argument != "-":
        return Path(argument)
    line = sys.stdin.readline()
    try:
        return Path(json.loads(line)["file"])
    except (ValueError, KeyError, TypeError):
        raise UserError(f"no configuration: standard input said {line!r}") from None


class JsonLinesProcess:
    """Starts with the object; its standard error goes to the file `log`. keep_open: descriptors that it inherits.

    name: what it is in messages ("switch process"). Ending with status 2 and a last line in its log means that the
    user can put that right (UserError, with that line); any other end, and silence, is a ProcessLost, and nonsense a
    RuntimeError.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, keep_open: Sequence[int] = ()) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as standard_error:
            # In a session of its own, so that Ctrl-C reaches it only through stop().
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=standard_error,
                start_new_session=True,
                pass_fds=keep_open,
            )
        self._unread = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, command: str, **arguments: Any) -> None:
        """Write one command. Raises if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"command": command, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._death() from None

    def event(self, timeout_s: float) -> dict[str, Any]:
        """Return the next event.

        Raises:
            ProcessLost: The process has ended, or is silent for so long.
        """
        line = self._line(time.monotonic() + timeout_s)
        try:
            event: dict[str, Any] = json.loads(line)
            event["event"]
        except (ValueError, KeyError, TypeError):
            raise RuntimeError(f"the {self.name} said {line!r}, which is no event") from None
        return event

    def has_event(self, timeout_s: float) -> bool:
        """Return whether an event comes in that time, or the end of the process."""
        output = self._process.stdout
        assert output is not None
        return b"\n" in self._unread or bool(_poller(output).poll(1000 * max(0.0, timeout_s)))

    def expect(self, name: str, timeout_s: float) -> dict[str, Any]:
        """Return the next event called `name`; others before it are skipped, but for "error", which is raised."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = self.event(deadline - time.monotonic())
            if event["event"] == name:
                return event
            if event["event"] == "error":
                if event.get("is_users"):
                    raise UserError(event["message"])
                raise RuntimeError(f"the {self.name} refused a command: {event['message']}")

    def stop(self, timeout_s: float) -> None:
        """Close its standard input, which ends it; kill it if it has not ended in time. May be called again."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        self._process.kill()
        self._process.wait()

    def terminate(self, timeout_s: float) -> None:
        """Stop a process that ends on SIGTERM, as `stop` does."""
        self._process.terminate()
        self.stop(timeout_s)

    def _line(self, deadline: float) -> bytes:
        output = self._process.stdout
        assert output is not None
        readable = _poller(output)
        while b"\n" not in self._unread:
            if not readable.poll(1000 * max(0.0, deadline - time.monotonic())):
                raise self._lost("does not answer")
            piece = os.read(output.fileno(), 65536)
            if not piece:
                raise self._death()
            self._unread += piece
        line, self._unread = self._unread.split(b"\n", 1)
        return line

    def _death(self) -> Exception:
        """Return the exception for a process that has gone."""
        status = self._process.wait()
        words = self.log.read_text(errors="replace").strip()
        if status == USER_ERROR_STATUS and words:
            return UserError(words.splitlines()[-1].removeprefix("gradbed: "))
        return self._lost(ended(status))

    def _lost(self, what: str) -> ProcessLost:
        return process_lost(self.name, what, self.log)

    def check(self) -> None:
        """Raises if it has ended."""
        if self._process.poll() is not None:
            raise self._death()


def ended(status: int | None) -> str:
    """Return how a process ended, from the status that subprocess gives."""
    if status is None:
        return "ended"
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by signal {-status} ({signal.strsignal(-status)})"


def process_lost(name: str, what: str, log: Path) -> ProcessLost:
    """Return the error, with a copy of the log where it stays.

    The log itself goes with the run's temporary folder.
    """
    words = log.read_text(errors="replace").strip() if log.exists() else ""
    kept = cache_dir() / "logs" / f"{name.replace(' ', '-')}.log"
    where = f"its log: {kept}"
    try:
        make_cache_folder(kept.parent)
        kept.write_text(f"{words}\n", encoding="utf-8")
    except (OSError, UserError) as error:
        where = f"its log cannot be kept ({getattr(error, 'strerror', None) or error})"
    return ProcessLost(f"the {name} {what}; {where}", words)


def _poller(stream: IO[bytes]) -> select.poll:
    readable = select.poll()  # select(2) knows 1024 descriptors, and a large network has more
    readable.register(stream, select.POLLIN)
    return readable
