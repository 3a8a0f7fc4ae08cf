"""How the executables end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence

from gradbed.common.errors import nobody_reads


def status_of(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """The command's status; where nobody reads what it writes (`| head`), that of a program which SIGPIPE ended."""
    try:
        status = command(arguments)
        sys.stdout.flush()
    except OSError as error:
        if not nobody_reads(error):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python still wants to write at its end
        return 128 + signal.SIGPIPE
    return status
