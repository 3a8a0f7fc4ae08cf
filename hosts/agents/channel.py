"""How an agent and its launcher talk: one-byte commands in, JSON lines of events out."""

from __future__ import annotations

import json
import os
from typing import Any

BEGIN = b"b"
STOP = b"s"

INTERFACES = "interfaces"
"""The event at the end of an agent's life: what its interfaces carried (interface_counts.py)."""


def write_event(descriptor: int, event: str, **fields: Any) -> None:
    """One JSON line in one write, so that lines of several processes do not mix (pipe(7), PIPE_BUF)."""
    os.write(descriptor, (json.dumps({"event": event, **fields}) + "\n").encode())
