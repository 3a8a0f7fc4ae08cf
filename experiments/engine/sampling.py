"""Samples while a phase runs: queue lengths, link throughput and register values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradbed.emulation.statistics import DirectionStatistics
from gradbed.experiments.configuration.sections import SampleOrder
from gradbed.experiments.conservation.counts import LinkBytes, LinkRows
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.scale import Scale
from gradbed.topo.graph import Direction


class LinkThroughput:
    """Measures the bytes that links carry in a phase, from a while after the agents begin until everything is sent.

    What waits in queues afterwards belongs to no time that is measured.
    """

    def __init__(self, runtime: Runtime, from_us: int, note: Callable[[], None]) -> None:
        """Begin when the agents do, or from_us (emulated) later. note: called then, if that is later than now."""
        self._runtime = runtime
        self._begin_us = runtime.now_us()
        self._note = note
        self._measured: LinkBytes | None = None
        if from_us:
            runtime.call_after(from_us, self._open_later)
        self._open()

    def _open_later(self) -> None:
        self._note()
        self._open()

    def _open(self) -> None:
        # Links are asked last here and first in `measured`: they carried it in no shorter time.
        self._from_us = self._runtime.now_us()
        self._before = self._rows()

    def _rows(self) -> LinkRows:
        return {(row.from_node, row.to_node): row for row in self._runtime.backend.link_statistics()}

    def measured(self) -> LinkBytes:
        """Return what was carried up to the first call."""
        if self._measured is None:
            self._measured = self._take()
        return self._measured

    def _take(self) -> LinkBytes:
        now, before = self._rows(), self._before
        carried = {direction: row.bytes - before[direction].bytes for direction, row in now.items()}
        to_us = self._runtime.now_us() - self._begin_us
        return LinkBytes(carried, self._from_us - self._begin_us, to_us, before, now)


class Sampler:
    """Takes the samples of one phase on a runtime, between `start` and its cancel_calls."""

    def __init__(self, runtime: Runtime, order: SampleOrder, scale: Scale) -> None:
        self._runtime = runtime
        self._order = order
        self._scale = scale
        self._links: list[dict[str, Any]] = []
        self._registers: list[dict[str, Any]] = []
        self._begin_us = 0
        self._last_us = 0
        self._last: Mapping[Direction, DirectionStatistics] = {}

    def start(self) -> None:
        """Set the time to 0; the first samples come after an interval."""
        self._begin_us = self._last_us = self._runtime.now_us()
        self._last = self._read()
        self._later(1)

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return rows by table, in the order of their times, which are nominal; empty tables are left out.

        link_samples: time_us, from_node, to_node, queue_packets (that wait now; None: unknown), and since the sample
        before: packets, bytes, queue_drops, and load, the part of the link's rate that was used (None: it has none).
        register_samples: time_us, switch, register, index, value; of cells that are not zero.
        """
        tables = {"link_samples": self._links, "register_samples": self._registers}
        return {name: rows for name, rows in tables.items() if rows}

    def _later(self, number: int) -> None:
        # From the beginning, so that delays do not add up.
        due_us = self._begin_us + number * self._order.interval_us
        self._runtime.call_after(max(0, due_us - self._runtime.now_us()), lambda: self._take(number))

    def _take(self, number: int) -> None:
        now_us = self._runtime.now_us()
        time_us = self._scale.nominal_time(now_us - self._begin_us)
        links = self._read()
        for direction, row in links.items():
            self._links.append({"time_us": time_us, **self._link_row(direction, row, now_us - self._last_us)})
        for switch, register in self._order.registers:
            for index, value in self._runtime.registers(switch, register).items():
                cell = {"switch": switch, "register": register, "index": index, "value": value}
                self._registers.append({"time_us": time_us, **cell})
        self._last, self._last_us = links, now_us
        self._later(number + 1)

    def _read(self) -> dict[Direction, DirectionStatistics]:
        chosen = None if self._order.links is None else set(self._order.links)
        rows = {(row.from_node, row.to_node): row for row in self._runtime.backend.link_statistics()}
        return {direction: row for direction, row in rows.items() if chosen is None or direction in chosen}

    def _link_row(self, direction: Direction, row: DirectionStatistics, taken_us: int) -> dict[str, Any]:
        before = self._last[direction]
        size = row.bytes - before.bytes
        rate_bps = self._runtime.topology.link(*direction).model.rate_bps
        return {
            "from_node": direction[0],
            "to_node": direction[1],
            "queue_packets": row.queued,
            "packets": row.packets - before.packets,
            "bytes": size,
            "queue_drops": row.queue_drops - before.queue_drops,
            "load": 8e6 * size / (rate_bps * taken_us) if rate_bps and taken_us else None,
        }
