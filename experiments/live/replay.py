"""Shows the recording of a run that is over."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from gradbed.experiments.live.recording import recordings
from gradbed.experiments.live.server import Pages, address, listen, make_token, page_server
from gradbed.experiments.live.shown import Replayed


def replay(run: Path) -> int:
    """Serve the page until Ctrl-C. UserError if the run has no recording."""
    shown = Replayed(recordings(run))
    token = make_token()
    with listen() as listener:
        print(f"gradbed: replay of {run}: {address(listener, token)} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(page_server(shown, Pages(), token).serve(sockets=[listener]))
    return 0
