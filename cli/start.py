"""The entry point of the command line."""

from __future__ import annotations

import gc
import signal
from typing import NoReturn

YOUNG_OBJECTS = 50_000
"""Threshold of the youngest generation of the garbage collector. Python's default of 700 costs a tenth of the time of
loading modules and planning, which make objects that stay."""


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
