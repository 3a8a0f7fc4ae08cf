"""When what happened in a phase: faults one by one, and of each kind of event that agents tell the first and the
last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradbed.experiments.configuration.faults import Fault
from gradbed.experiments.scale import Scale
from gradbed.experiments.testbeds.interface import Testbed

MEASURING, COMPLETE = "measuring begins", "complete"
"""Between these loads of links are measured; without the first since the agents begin."""


class Timeline:
    """Takes notes from when it is made, which is when the agents begin."""

    def __init__(self, testbed: Testbed, scale: Scale) -> None:
        self._testbed = testbed
        self._scale = scale
        self.begun_us = testbed.now_us()
        self._rows: list[dict[str, Any]] = []
        self._of_kind: dict[str, dict[str, Any]] = {}

    def fault(self, fault: Fault) -> None:
        self._add("fault", fault.words)

    def event(self, event: Mapping[str, Any]) -> None:
        kind = str(event["event"])
        row = self._of_kind.get(kind) or self._of_kind.setdefault(kind, self._add("event", kind))
        row["last_us"] = self._now_us()
        row["count"] += 1

    def measuring(self) -> None:
        """From here on, later than the agents begin, links are measured."""
        self._add("phase", MEASURING)

    def complete(self) -> None:
        self._add("phase", COMPLETE)

    def rows(self) -> list[dict[str, Any]]:
        """In the order of their beginnings: what ("fault", "event", "phase"), name, count, and the times of the first
        and the last, time_us and last_us: nominal microseconds since the agents began."""
        return sorted(self._rows, key=lambda row: row["time_us"])

    def _add(self, what: str, name: str) -> dict[str, Any]:
        now_us = self._now_us()
        count = 0 if what == "event" else 1
        row = {"time_us": now_us, "last_us": now_us, "what": what, "name": name, "count": count}
        self._rows.append(row)
        return row

    def _now_us(self) -> float:
        return self._scale.nominal_time(self._testbed.now_us() - self.begun_us)
