"""The live view of one command: the process that serves the page, and who looks on for it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

from gradbed.common.json_lines import own_program
from gradbed.experiments.live.observer import Feed, LiveObserver
from gradbed.experiments.live.server import address, listen, make_token


@contextlib.contextmanager
def live_view(*, paused: bool = False) -> Iterator[LiveObserver]:
    """Serve a page, and say where. At the end it stays for as long as somebody has it open, or until Ctrl-C."""
    token = make_token()
    ours, theirs = socket.socketpair()
    with listen() as listener, ours:
        with theirs:
            server = subprocess.Popen(
                own_program("gradbed.experiments.live.app", str(listener.fileno()), str(theirs.fileno())),
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno(), theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the run
            )
        assert server.stdin is not None
        server.stdin.write(token.encode() + b"\n")
        server.stdin.close()
        print(f"gradbed: live view: {address(listener, token)}", file=sys.stderr, flush=True)
        observer = LiveObserver(Feed(ours), paused=paused)
        try:
            yield observer
        except BaseException:
            observer.on_abort()
            raise
        finally:
            listener.close()
            ours.close()
            _linger(server)


def _linger(server: subprocess.Popen[bytes]) -> None:
    """Until the page is closed."""
    try:
        server.wait()
    except KeyboardInterrupt:
        server.terminate()
        server.wait()
