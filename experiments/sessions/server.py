"""A network of the kernel in a process of its own: `python -m gradbed.experiments.sessions.server SOCKET`, a socket's
descriptor, through which calls of NetworkSession come and their results go (multiprocessing.connection)."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.common.resources import scratch_folder
from gradbed.common.sandbox import run_in_sandbox
from gradbed.experiments.sessions.session import task_of


def main(descriptor: int) -> int:
    # Ctrl-C is for who holds the network; its end of the socket says when that is over.
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
