"""The packets of the link that somebody looks at: short captures, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.setup import PointTask
from gradbed.experiments.testbeds.interface import Testbed
from gradbed.topo.places import place

EVERY_S = 0.5
MOST_PACKETS = 20
"""In one capture: its first ones, so that a busy link does not fill the page."""

Tell = Callable[[Mapping[str, Any]], None]


class LinkWatch:
    """Each capture is a file in the point's folder, which the process that serves the page reads and removes."""

    def __init__(self, testbed: Testbed, task: PointTask[Any], tell: Tell) -> None:
        self._testbed = testbed
        self._task = task
        self._tell = tell
        self._begin_us = testbed.now_us()
        self._link: int | None = None
        self._number = 0
        self._runs = False
        self._next_s = 0.0

    def watch(self, link: int | None) -> None:
        """From now on; None: none."""
        if link != self._link:
            self._end()
            self._link = link if link is not None and link < len(self._testbed.topology.links) else None
            self._next_s = 0.0

    def read_due(self) -> None:
        now_s = time.monotonic()
        if self._link is not None and now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            self._end()
            self._start(self._link)

    def _start(self, number: int) -> None:
        link = self._testbed.topology.links[number]
        self._number += 1
        try:
            wanted = place(self._testbed.topology, f"{link.a.node}-{link.b.node}")
            self._testbed.fabric.start_capture(self._file, wanted, packets=MOST_PACKETS)
        except UserError as error:
            self._tell({"kind": "event", "level": "note", "text": str(error)})
            self._link = None
            return
        self._runs = True

    def _end(self) -> None:
        if not self._runs:
            return
        self._runs = False
        try:
            packets = self._testbed.fabric.stop_capture(self._file)
        except UserError:
            packets = 0
        if not packets:
            self._file.unlink(missing_ok=True)
            return
        self._tell({
            "kind": "captured", "link": self._link, "file": str(self._file), "begin_ns": self._begin_ns(),
            "scale": self._task.scale.factor,
        })  # fmt: skip

    @property
    def _file(self) -> Any:
        return self._task.folder / f"live-{self._number}.pcapng"

    def _begin_ns(self) -> int:
        """When the network came up, by the clock of captures: on the real clock that of the machine."""
        if self._task.configuration.clock == "virtual":
            return 1000 * self._begin_us
        return time.time_ns() - 1000 * (self._testbed.now_us() - self._begin_us)
