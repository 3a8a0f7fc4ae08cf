"""Where the command line starts."""

from __future__ import annotations

import gc
import signal
from typing import NoReturn

YOUNG_OBJECTS = 50_000
"""Made since the last search for cycles, before the next one. Python's 700 cost a tenth of what loading modules and
planning take: nearly all that they make stays."""


def start() -> NoReturn:
    """Load the command line and run it. Ctrl-C while it loads ends it at once; ./gradbed holds it back until here."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    from gradbed.cli.main import main

    try:
        main()
    finally:
        # Python's last search for cycles would take half a second after a figure: all goes with the process.
        gc.freeze()
