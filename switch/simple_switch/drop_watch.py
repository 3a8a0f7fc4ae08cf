"""Log lines about packets that came to nothing."""

from __future__ import annotations

import dataclasses
import logging
import threading

from gradbed.switch.engine import Engine, EngineDevice

_logger = logging.getLogger(__name__)
_INTERVAL_S = 1.0

# Fields of DeviceStatistics, and what they mean to a person. What the program drops is told by where it does.
_REASONS = {
    "no_program_drops": "there is no program yet",
    "swap_drops": "another program was loaded meanwhile",
    "no_port_drops": "egress_spec is a port that the switch does not have",
    "no_group_drops": "mcast_grp is a group without ports",
    "priority_drops": "priority is larger than the number of queues allows",
    "buffer_drops": "too long, or out of memory",
    "upcall_drops": "packet-ins and digests came faster than they were fetched",
}


class DropWatch:
    """A context manager: looks once a second, and says how many packets were dropped since, and why."""

    def __init__(self, engine: Engine, device: EngineDevice) -> None:
        self._engine = engine
        self._device = device
        self._before = self._counts()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drop watch", daemon=True)

    def __enter__(self) -> DropWatch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        self.report()

    def report(self) -> None:
        """One line for each reason that there was since the last report."""
        counts = self._counts()
        for why, count in counts.items():
            new = count - self._before.get(why, 0)
            if new > 0:
                _logger.debug("%d packet%s dropped%s", new, "" if new == 1 else "s", why)
        self._before = counts

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self.report()

    def _counts(self) -> dict[str, int]:
        statistics = dataclasses.asdict(self._device.statistics())
        counts = {f": {reason}": statistics[name] for name, reason in _REASONS.items()}
        counts |= {f" {site}": count for site, count in self._device.program_drops().items()}
        for row in self._engine.link_statistics():
            counts[f": the queue of port {row.port} ({row.direction}) was full"] = row.queue_drops
        return counts
