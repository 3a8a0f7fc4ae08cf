"""Where the command line starts."""

from __future__ import annotations

import signal
from typing import NoReturn

from common.modules import seldom_searched


def start() -> NoReturn:
    """Load the command line and run it. Ctrl-C while it loads ends it at once; ./gradbed holds it back until here."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with seldom_searched():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        from cli.main import main

        main()


if __name__ == "__main__":
    start()
