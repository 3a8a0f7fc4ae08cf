"""What serves the page of a network: the process beside one that runs, which takes its rows in and keeps them, and
the recording of one that is over.

The process's arguments are the descriptors of a listening socket and of the channel; the token comes on standard
input, which others cannot see in the list of processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from pathlib import Path

from gradbed.experiments.live.recording import recordings
from gradbed.experiments.live.server import Pages, address, listen, make_token, page_server
from gradbed.experiments.live.shown import LONGEST_ROW_BYTES, Growing, Replayed

# ---- Of a run that is over ----


def replay(run: Path) -> int:
    """Serve the page until Ctrl-C. UserError if the run has no recording."""
    shown = Replayed(recordings(run))
    token = make_token()
    with listen() as listener:
        print(f"gradbed: replay of {run}: {address(listener, token)} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(page_server(shown, Pages(), token).serve(sockets=[listener]))
    return 0


# ---- Beside one that runs ----


GONE_S = 3.0
"""When the network has gone, and no page was open for so long, nobody wants to look any more; a page that is loaded
anew is back earlier."""
LOOK_S = 0.2


async def serve(listener: socket.socket, channel: socket.socket, token: str) -> None:
    """Until the network has gone and the last page was closed."""
    shown, pages = Growing(), Pages()
    server = page_server(shown, pages, token)
    reader, writer = await asyncio.open_unix_connection(sock=channel, limit=LONGEST_ROW_BYTES)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    listening = asyncio.create_task(shown.listen(reader, writer))
    await shown.ended.wait()
    await listening
    quiet_s = GONE_S
    if pages.open and shown.stays:
        quiet_s = 0.0
        print("gradbed: the live view stays until its page is closed, or Ctrl-C", file=sys.stderr, flush=True)
    while quiet_s < GONE_S and not serving.done():
        await asyncio.sleep(LOOK_S)
        quiet_s = 0.0 if pages.open else quiet_s + LOOK_S
    server.should_exit = True
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def main() -> None:
    listener, channel = (socket.socket(fileno=int(argument)) for argument in sys.argv[1:3])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(serve(listener, channel, sys.stdin.readline().strip()))


if __name__ == "__main__":
    main()
