"""A session in another process, so that this one stays in its own namespaces (real clock)."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from gradbed.common.errors import UserError
from gradbed.common.json_lines import ended, own_program, process_lost
from gradbed.common.namespaces import require_root
from gradbed.common.resources import scratch_folder
from gradbed.experiments.sessions.session import NetworkSession

STOP_TIMEOUT_S = 20.0


class RemoteSession:
    """The other process, which carries out calls of NetworkSession's methods, and of its backend's."""

    def __init__(self, connection: Connection, process: subprocess.Popen[bytes], log: Path) -> None:
        self._connection, self._process, self._log = connection, process, log

    def ask(self, question: Any) -> Any:
        """Return the answer to a question: first the order, then calls (verb, arguments, named arguments)."""
        try:
            self._connection.send(question)
            outcome, answer = self._connection.recv()
        except (EOFError, OSError):
            raise self._death() from None
        if outcome == "refused":
            raise UserError(answer)
        return answer

    def _death(self) -> Exception:
        status = self._process.wait()
        words = self._log.read_text(errors="replace").strip()
        if status == 2 and words:
            return UserError(words.splitlines()[-1].removeprefix("gradbed: "))
        return process_lost("process of the network", ended(status), self._log)


class _RemoteVerb:
    """An attribute of the session in the other process: a method to be called, or an object that has some."""

    def __init__(self, session: RemoteSession, *path: str) -> None:
        self._session, self._path = session, path

    def __getattr__(self, name: str) -> _RemoteVerb:
        if name.startswith("_"):
            raise AttributeError(name)
        return _RemoteVerb(self._session, *self._path, name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._session.ask((".".join(self._path), arguments, named))


@contextmanager
def open_session(order: Mapping[str, Any]) -> Iterator[NetworkSession]:
    """Yield a session whose network lives in another process.

    order: as of gradbed.experiments.sessions.session.task_of. UserError for what is wrong with it, and without root.
    """
    require_root("gradbed.up on the real clock")
    ours, theirs = socket.socketpair()
    with scratch_folder() as folder, Connection(ours.detach()) as connection:
        log = folder / "network.log"
        with theirs, log.open("wb") as errors:
            process = subprocess.Popen(
                own_program("gradbed.experiments.sessions.server", str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )
        try:
            remote = RemoteSession(connection, process, log)
            remote.ask(dict(order))
            yield cast(NetworkSession, _RemoteVerb(remote))
        finally:
            connection.close()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
