"""A session in another process, so that this one stays in its own namespaces (real clock).

`python -m gradbed.experiments.sessions.remote SOCKET` is that process. Through the socket, a descriptor, calls of
NetworkSession come and their results go (multiprocessing.connection).
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from gradbed.common.errors import UserError
from gradbed.common.json_lines import ended, own_program, process_lost
from gradbed.common.namespaces import require_root
from gradbed.common.resources import scratch_folder
from gradbed.common.sandbox import run_in_sandbox
from gradbed.experiments.sessions.session import NetworkSession, task_of

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
    """Yield a session whose network is in another process.

    Args:
        order: As of gradbed.experiments.sessions.session.task_of.

    Raises:
        UserError: Something is wrong with the order, or this is not root.
    """
    require_root("gradbed.up on the real clock")
    ours, theirs = socket.socketpair()
    with scratch_folder() as folder, Connection(ours.detach()) as connection:
        log = folder / "network.log"
        with theirs, log.open("wb") as errors:
            process = subprocess.Popen(
                own_program("gradbed.experiments.sessions.remote", str(theirs.fileno())),
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


# ---- The other process ----


def main(descriptor: int) -> int:
    # Ctrl-C is for the owner of the network, which closes its end of the socket when that is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(descriptor)
    order: Mapping[str, Any] = connection.recv()
    with scratch_folder() as folder:
        return run_in_sandbox(lambda: _serve(connection, order, folder), "gradbed.up on the real clock")


def _serve(connection: Connection, order: Mapping[str, Any], folder: Path) -> int:
    from gradbed.experiments.sessions.real import open_session

    try:
        with open_session(*task_of(order, folder)) as session:
            connection.send(("done", None))
            while True:
                verb, arguments, named = connection.recv()
                try:
                    connection.send(("done", attrgetter(verb)(session)(*arguments, **named)))
                except UserError as error:
                    connection.send(("refused", str(error)))
    except EOFError:
        return 0
    except UserError as error:
        connection.send(("refused", str(error)))
        return 2


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
