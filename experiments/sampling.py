"""Samples while a phase runs: what waits in queues, what links carry, and what registers hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from emulation.links.link_statistics import DirectionStatistics
from experiments.configuration.sections import Section, option
from experiments.scale import Scale
from topo.graph import Topology

if TYPE_CHECKING:
    from experiments.testbeds.testbed import Testbed

Direction = tuple[str, str]
"""Of a link: sender and receiver."""


LinkRows = Mapping[Direction, DirectionStatistics]


@dataclass(frozen=True)
class SampleOrder:
    """What is sampled, and how often, from when the agents begin.

    interval_us: emulated. links: directions; None: all of them. registers: switch and name of each.
    """

    interval_us: int
    links: Collection[Direction] | None = None
    registers: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class LinkBytes:
    """What each direction carried between two times, in emulated microseconds since the agents began. before, after:
    all that links told then."""

    bytes: Mapping[Direction, int] = field(default_factory=dict)
    from_us: int = 0
    to_us: int = 0
    before: LinkRows = field(default_factory=dict)
    after: LinkRows = field(default_factory=dict)


class SamplesSection(Section):
    """Samples, as part of a system's configuration."""

    interval_us: int | None = option(None, "Sample queues, links and registers so often.", name="sample_us", ge=1)
    links: tuple[str, ...] = option(
        (), "Of links SENDER-RECEIVER, such as e1-h1 (default: all).", name="sample_links"
    )
    registers: tuple[str, ...] = option(
        (), "Of registers NAME, or SWITCH:NAME of one switch.", name="sample_registers"
    )

    def order(self, topology: Topology, scale: Scale) -> SampleOrder | None:
        """None: nothing is asked for. UserError for links and switches that the topology does not have."""
        if self.interval_us is None:
            if self.links or self.registers:
                raise UserError("--sample-us: say how often samples are to be taken")
            return None
        return SampleOrder(
            max(1, scale.time_us(self.interval_us)),
            [_direction(name, topology) for name in self.links] or None,
            [pair for name in self.registers for pair in _registers(name, topology)],
        )


def _direction(name: str, topology: Topology) -> Direction:
    sender, separator, receiver = name.partition("-")
    if not separator:
        raise UserError(f"--sample-links: {name!r} is no SENDER-RECEIVER such as e1-h1")
    topology.link(sender, receiver)
    return sender, receiver


def _registers(name: str, topology: Topology) -> list[tuple[str, str]]:
    switch, separator, register = name.rpartition(":")
    if separator:
        return [(topology.switch(switch).name, register)]
    return [(each.name, register) for each in topology.switches]


class Carried:
    """What links carry while a phase is going on, from so long after the agents begin until everything is sent: what
    waits in queues afterwards belongs to no time that is measured."""

    def __init__(self, testbed: Testbed, from_us: int) -> None:
        """Now the agents begin. from_us: emulated."""
        self._testbed = testbed
        self._begin_us = testbed.now_us()
        if from_us:
            testbed.call_after(from_us, self._open)
        self._open()

    def _open(self) -> None:
        # Links are asked last here and first in `taken`: they carried it in no shorter time.
        self._from_us = self._testbed.now_us()
        self._before = self._rows()

    def _rows(self) -> LinkRows:
        return {(row.from_node, row.to_node): row for row in self._testbed.link_statistics()}

    def taken(self) -> LinkBytes:
        now, before = self._rows(), self._before
        carried = {direction: row.bytes - before[direction].bytes for direction, row in now.items()}
        to_us = self._testbed.now_us() - self._begin_us
        return LinkBytes(carried, self._from_us - self._begin_us, to_us, before, now)


class Sampler:
    """Takes the samples of one phase on a test bed, between `start` and its cancel_calls."""

    def __init__(self, testbed: Testbed, order: SampleOrder, scale: Scale) -> None:
        self._testbed = testbed
        self._order = order
        self._scale = scale
        self._links: list[dict[str, Any]] = []
        self._registers: list[dict[str, Any]] = []
        self._begin_us = 0
        self._last_us = 0
        self._last: Mapping[Direction, DirectionStatistics] = {}

    def start(self) -> None:
        """Now is the time 0; the first samples come after an interval."""
        self._begin_us = self._last_us = self._testbed.now_us()
        self._last = self._read()
        self._later(1)

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows by table, in the order of their times, which are nominal; empty tables are left out.

        link_samples: time_us, from_node, to_node, queue_packets (that wait now), and since the sample before:
        packets, bytes, queue_drops, and load, the part of the link's rate that was used (None: it has none).
        register_samples: time_us, switch, register, index, value; of cells that are not zero.
        """
        tables = {"link_samples": self._links, "register_samples": self._registers}
        return {name: rows for name, rows in tables.items() if rows}

    def _later(self, number: int) -> None:
        # From the beginning, so that delays do not add up.
        due_us = self._begin_us + number * self._order.interval_us
        self._testbed.call_after(max(0, due_us - self._testbed.now_us()), lambda: self._take(number))

    def _take(self, number: int) -> None:
        now_us = self._testbed.now_us()
        time_us = self._scale.nominal_time(now_us - self._begin_us)
        links = self._read()
        for direction, row in links.items():
            self._links.append({"time_us": time_us, **self._link_row(direction, row, now_us - self._last_us)})
        for switch, register in self._order.registers:
            for index, value in self._testbed.registers(switch, register).items():
                cell = {"switch": switch, "register": register, "index": index, "value": value}
                self._registers.append({"time_us": time_us, **cell})
        self._last, self._last_us = links, now_us
        self._later(number + 1)

    def _read(self) -> dict[Direction, DirectionStatistics]:
        chosen = None if self._order.links is None else set(self._order.links)
        rows = {(row.from_node, row.to_node): row for row in self._testbed.link_statistics()}
        return {direction: row for direction, row in rows.items() if chosen is None or direction in chosen}

    def _link_row(self, direction: Direction, row: DirectionStatistics, taken_us: int) -> dict[str, Any]:
        before = self._last[direction]
        size = row.bytes - before.bytes
        rate_bps = self._testbed.topology.link(*direction).model.rate_bps
        return {
            "from_node": direction[0],
            "to_node": direction[1],
            "queue_packets": row.queued,
            "packets": row.packets - before.packets,
            "bytes": size,
            "queue_drops": row.queue_drops - before.queue_drops,
            "load": 8e6 * size / (rate_bps * taken_us) if rate_bps and taken_us else None,
        }
