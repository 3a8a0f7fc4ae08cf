"""The agents' one clock."""

from __future__ import annotations

import time


def now_us() -> int:
    """Microseconds of the monotonic clock."""
    return time.monotonic_ns() // 1000
