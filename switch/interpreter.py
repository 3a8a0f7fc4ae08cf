"""Python where packets are forwarded and entries written."""

from __future__ import annotations

import atexit
import gc
import sys

_SWITCH_INTERVAL_S = 0.0005
_YOUNG_OBJECTS = 10_000


def prepare_interpreter() -> None:
    """Prepare a process that is a switch, or several, and nothing else."""
    # A thread that changes a switch's state keeps packets waiting while it waits for the interpreter.
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    # Entries stay, and have no cycles. Python's 700 new objects before the next search cost a tenth of their writes.
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    # The last search would take a fifth of a second: all goes with the process.
    atexit.register(gc.freeze)
