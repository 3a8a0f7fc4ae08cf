"""Measures a run while it goes on: scheduler, processors, links, timers, sockets."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from gradbed.emulation.statistics import DataPlaneStatistics, DirectionStatistics
from gradbed.experiments.validity.processes import (
    SWITCH_ROLES,
    MachineTimes,
    ThreadTimes,
    machine_times,
    thread_times,
)
from gradbed.experiments.validity.verdict import ValidityMeasures, ValidityReport, judge
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from gradbed.emulation.backend import NetworkBackend

SAMPLE_INTERVAL_S = 0.2
"""Processes of a run may end before it does; what they used is known up to the last sample."""

TICKS_PER_S = os.sysconf("SC_CLK_TCK")

FULL_FRAME_BYTES = 1500

LEAST_BACKLOG_NS = 200_000_000
"""A link must have been backlogged for so long in all before its rate says anything."""


@dataclass(frozen=True)
class MonitorReading:
    """Counters of links and switches at one moment."""

    links: Sequence[DirectionStatistics] = ()
    data_plane: DataPlaneStatistics | None = None
    rates_bps: Mapping[frozenset[str], int | None] = field(default_factory=dict)
    """Rates of links from that moment on; where it has none, the topology's are valid."""

    @classmethod
    def read(cls, backend: NetworkBackend) -> MonitorReading:
        return cls(backend.link_statistics(), backend.data_plane_statistics(), backend.changed_rates_bps())


class RealtimeMonitor:
    """Monitor whether the machine keeps up with the clock: a context manager around the phase to be judged.

    read_network is called at both ends, in the thread that enters and leaves; a thread of the monitor's own samples
    /proc in between.
    """

    def __init__(self, topology: Topology, read_network: Callable[[], MonitorReading]) -> None:
        self._topology = topology
        self._read_network = read_network
        self._stop = threading.Event()
        self._sampler = threading.Thread(target=self._sample_until_stopped, name="realtime monitor", daemon=True)
        self._first: dict[tuple[int, int], ThreadTimes] = {}
        self._last: dict[tuple[int, int], ThreadTimes] = {}
        self._between: list[MonitorReading] = []

    def __enter__(self) -> RealtimeMonitor:
        self.begin()
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None:
            self.end()
        else:
            self._stop_sampling()

    def begin(self) -> None:
        """Begin to measure."""
        self._before = self._read_network()
        self._machine_before = machine_times()
        self._started_s = time.monotonic()
        self._take_sample()
        self._sampler.start()

    def rates_changed(self) -> None:
        """Take a reading: links have other rates from now on."""
        self._between.append(self._read_network())

    def end(self) -> None:
        """End measuring."""
        self._stop_sampling()
        self._take_sample()
        self._duration_s = time.monotonic() - self._started_s
        self._machine = machine_times() - self._machine_before
        self._after = self._read_network()

    def _stop_sampling(self) -> None:
        self._stop.set()
        self._sampler.join()

    def report(self, socket_drops: int = 0, socket_packets: int = 0) -> ValidityReport:
        """Return the verdict on what was measured; the arguments are those of `measures`."""
        return judge(self.measures(socket_drops, socket_packets))

    def measures(self, socket_drops: int = 0, socket_packets: int = 0) -> ValidityMeasures:
        """Return what was measured. The arguments are the agents' own counts of their sockets, to be added."""
        return measures(
            duration_s=self._duration_s,
            machine=self._machine,
            threads=[(self._first[key], last) for key, last in self._last.items()],
            topology=self._topology,
            before=self._before,
            after=self._after,
            between=self._between,
            socket_drops=socket_drops,
            socket_packets=socket_packets,
        )

    def achieved_rates(self) -> Mapping[tuple[str, str], float]:
        """Return the share of its rate that a direction of a link achieved while it was backlogged, if it was."""
        return achieved_rates(self._topology, [self._before, *self._between, self._after])

    def _sample_until_stopped(self) -> None:
        while not self._stop.wait(SAMPLE_INTERVAL_S):
            self._take_sample()

    def _take_sample(self) -> None:
        for key, times in thread_times().items():
            self._first.setdefault(key, times)
            self._last[key] = times


def measures(
    *,
    duration_s: float,
    machine: MachineTimes,
    threads: Sequence[tuple[ThreadTimes, ThreadTimes]],
    topology: Topology,
    before: MonitorReading,
    after: MonitorReading,
    between: Sequence[MonitorReading] = (),
    socket_drops: int,
    socket_packets: int,
) -> ValidityMeasures:
    """Differences between two moments, as shares. threads: (first, last) sample of each. between: after each change
    of a link's rate."""
    switches = [(a, b) for a, b in threads if b.role in SWITCH_ROLES]
    agents = [(a, b) for a, b in threads if b.role == "agents"]
    waits = sum(b.waits - a.waits for a, b in agents)
    achieved = achieved_rates(topology, [before, *between, after])
    late = _lateness(before.data_plane, after.data_plane)
    drops, frames = _sockets(before.data_plane, after.data_plane)
    return ValidityMeasures(
        duration_s=duration_s,
        machine_busy=machine.busy / machine.total if machine.total else None,
        machine_stolen=machine.stolen / machine.total if machine.total else None,
        machine_others=_others(machine, threads, duration_s),
        switch_busy=_largest_share(switches, "busy_ns", duration_s),
        switch_waiting=_largest_share(switches, "waiting_ns", duration_s),
        agent_busy=_largest_share(agents, "busy_ns", duration_s),
        agent_waiting=_largest_share(agents, "waiting_ns", duration_s),
        agent_wait_us=sum(b.waiting_ns - a.waiting_ns for a, b in agents) / 1e3 / waits if waits else None,
        link_achieved=max(achieved.values(), key=lambda share: abs(1 - share), default=None),
        links_backlogged=len(achieved),
        late_mean_us=late.mean_us if late else None,
        late_p99_us=late.p99_us if late else None,
        late_max_us=late.max_us if late else None,
        packet_time_us=_packet_time_us(topology),
        socket_drops=socket_drops + drops,
        socket_packets=socket_packets + frames,
    )


def achieved_rates(topology: Topology, moments: Sequence[MonitorReading]) -> dict[tuple[str, str], float]:
    """Rate achieved over rate configured, of each link direction that was backlogged long enough between the first
    and the last of these moments, of which each tells the rates until the next."""
    taken_ns: Counter[tuple[str, str]] = Counter()
    sent_bits: Counter[tuple[str, str]] = Counter()
    due_bits: Counter[tuple[str, str]] = Counter()
    for earlier, later in pairwise(moments):
        first = {(row.from_node, row.to_node): row for row in earlier.links}
        for row in later.links:
            link = (row.from_node, row.to_node)
            rate_bps = earlier.rates_bps.get(frozenset(link), topology.link(*link).model.rate_bps)
            if rate_bps:
                before = first.get(link)
                span_ns = row.backlogged_ns - (before.backlogged_ns if before else 0)
                taken_ns[link] += span_ns
                sent_bits[link] += 8 * (row.backlogged_bytes - (before.backlogged_bytes if before else 0))
                due_bits[link] += span_ns * rate_bps
    return {link: 1e9 * sent_bits[link] / due_bits[link] for link, ns in taken_ns.items() if ns >= LEAST_BACKLOG_NS}


@dataclass(frozen=True)
class Lateness:
    """Lateness of the link model's timers."""

    mean_us: float
    p99_us: float
    """Upper end of the histogram's interval that has it."""
    max_us: float
    """As of p99_us."""


def _lateness(before: DataPlaneStatistics | None, after: DataPlaneStatistics | None) -> Lateness | None:
    """Return the lateness between two readings; None without statistics or events."""
    if after is None:
        return None
    counts, total_ns = list(after.late_counts), after.late_ns_total
    if before is not None:
        counts = [b - a for a, b in zip(before.late_counts, counts, strict=True)]
        total_ns -= before.late_ns_total
    if not sum(counts):
        return None
    return Lateness(total_ns / sum(counts) / 1e3, _quantile_us(counts, 0.99), _quantile_us(counts, 1.0))


def _quantile_us(counts: Sequence[int], share: float) -> float:
    """The time that this share of the events kept within; counts[n] were late by less than 2^n us."""
    needed = share * sum(counts)
    seen = 0
    for power, count in enumerate(counts):
        seen += count
        if seen >= needed:
            return float(2**power)
    raise ValueError("there are no events")


def _largest_share(threads: Sequence[tuple[ThreadTimes, ThreadTimes]], name: str, duration_s: float) -> float | None:
    shares = [(getattr(b, name) - getattr(a, name)) / 1e9 / duration_s for a, b in threads]
    return max(shares, default=None)


def _others(
    machine: MachineTimes, threads: Sequence[tuple[ThreadTimes, ThreadTimes]], duration_s: float
) -> float | None:
    """Return the share of all processors that other programs used: all use less that of the run's threads."""
    if not machine.total or not threads:
        return None
    processors = machine.total / (TICKS_PER_S * duration_s)
    own_s = sum(b.busy_ns - a.busy_ns for a, b in threads) / 1e9
    return max(0.0, machine.busy / machine.total - own_s / (processors * duration_s))


def _packet_time_us(topology: Topology) -> float | None:
    rates = [link.model.rate_bps for link in topology.links if link.model.rate_bps]
    return 8e6 * FULL_FRAME_BYTES / min(rates) if rates else None


def _sockets(before: DataPlaneStatistics | None, after: DataPlaneStatistics | None) -> tuple[int, int]:
    """Return how many frames the switches' packet sockets dropped, and of how many."""
    if after is None:
        return 0, 0
    if before is None:
        return after.socket_drops, after.socket_frames
    return after.socket_drops - before.socket_drops, after.socket_frames - before.socket_frames
