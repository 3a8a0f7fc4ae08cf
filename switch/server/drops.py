"""Stream messages that no controller got, by kind and reason."""

from __future__ import annotations

import logging
from collections import Counter
from threading import Lock

LOG = logging.getLogger(__name__)

SLOW_CONTROLLER = "slow_controller"
"""Too many wait for a controller that does not read, or not fast enough."""

BUSY_SERVER = "busy_server"
"""Data planes make more than the server can hand on; the oldest goes."""

NO_HEADER = "no_header"
"""A frame of the CPU port that is shorter than the running program's packet-in header, or there is no program."""

NO_CONTROLLER = "no_controller"
"""There is no primary that may have it."""


class Drops:
    """Of one device. Any thread may count and read. Kinds are those of p4.v1.StreamMessageResponse; of digests each
    list counts once, and where a list has not been made yet each message of the data plane."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def count(self, kind: str, reason: str) -> None:
        with self._lock:
            self._counts[kind, reason] += 1
            is_first = self._counts[kind, reason] == 1
        if is_first and reason not in (NO_CONTROLLER, NO_HEADER):
            LOG.warning("device %d: the first %s message is dropped: %s", self._device_id, kind, reason)

    def by_reason(self) -> dict[str, int]:
        """KIND_REASON, such as packet_slow_controller, and how many."""
        with self._lock:
            return {f"{kind}_{reason}": count for (kind, reason), count in self._counts.items()}
