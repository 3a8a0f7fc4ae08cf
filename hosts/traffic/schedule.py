"""What a host sends, window by window: the packets of all its streams in the order of their times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.traffic import TRAILER_BYTES
from gradbed.hosts.traffic.config import Arrivals, EndpointConfig, FlowSizes, Sizes, TrafficStream

# ---- Sizes of frames and flows ----
#
# The flow sizes are those of two clusters as their publications show them, at the points where most simulators read
# the curves, with straight lines between these:
#
# - web search: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 2.2, figure 4 (and as the web
#   search workload of "pFabric", SIGCOMM 2013).
# - data mining: A. Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009, figure 2 (and
#   as the data mining workload of "pFabric").


_Points = tuple[tuple[float, float], ...]

FLOW_SIZES: dict[FlowSizes, _Points] = {
    "web-search": (
        (0, 0.0),
        (10e3, 0.15),
        (20e3, 0.2),
        (30e3, 0.3),
        (50e3, 0.4),
        (80e3, 0.53),
        (200e3, 0.6),
        (1e6, 0.7),
        (2e6, 0.8),
        (5e6, 0.9),
        (10e6, 0.97),
        (30e6, 1.0),
    ),
    "data-mining": (
        (0, 0.0),
        (180, 0.1),
        (216, 0.2),
        (560, 0.3),
        (900, 0.4),
        (1100, 0.5),
        (1870, 0.6),
        (3160, 0.7),
        (10e3, 0.8),
        (400e3, 0.9),
        (3.16e6, 0.95),
        (100e6, 0.98),
        (1e9, 1.0),
    ),
}
"""Bytes, and the share of flows that are not longer."""


def longest_frame_bytes(sizes: Sizes) -> int:
    return sizes.most_bytes if sizes.kind == "exponential" else sizes.frame_bytes


def least_frame_bytes(sizes: Sizes) -> int:
    """Return the length of the shortest frame."""
    return sizes.frame_bytes if sizes.kind == "fixed" else min(sizes.least_bytes, sizes.frame_bytes)


def has_flows(sizes: Sizes) -> bool:
    """Return whether what arrives are flows of many frames."""
    return sizes.kind in FLOW_SIZES


def mean_frame_bytes(sizes: Sizes) -> float:
    """Return the mean size of frames, of flows that of all frames but the last."""
    return float(sizes.frame_bytes) if has_flows(sizes) else mean_bytes(sizes)


def mean_bytes(sizes: Sizes) -> float:
    """Return the mean size of a frame or a flow, as `draw` draws them (before rounding to whole bytes)."""
    if sizes.kind == "fixed":
        return float(sizes.frame_bytes)
    if sizes.kind == "uniform":
        return (sizes.least_bytes + sizes.frame_bytes) / 2
    if sizes.kind == "exponential":
        # The integral of P(X > x) from 0 to the greatest size, where P is 1 below the least.
        least, most, mean = sizes.least_bytes, sizes.most_bytes, sizes.frame_bytes
        return float(least + mean * (np.exp(-least / mean) - np.exp(-most / mean)))
    return _mean_flow(FLOW_SIZES[sizes.kind], sizes.most_flow_bytes)


def _mean_flow(points: _Points, most_bytes: int | None) -> float:
    total = 0.0
    for (low, low_share), (high, high_share) in pairwise(points):
        if most_bytes is None or high <= most_bytes:
            part = (low + high) / 2
        elif low >= most_bytes:
            part = float(most_bytes)
        else:
            below = (most_bytes - low) / (high - low)
            part = below * (low + most_bytes) / 2 + (1 - below) * most_bytes
        total += (high_share - low_share) * part
    return total


def draw(sizes: Sizes, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return the sizes of `count` frames or flows in bytes, shape (count,)."""
    if sizes.kind == "fixed":
        return np.full(count, sizes.frame_bytes, np.int64)
    if sizes.kind == "uniform":
        return random.integers(sizes.least_bytes, sizes.frame_bytes, count, endpoint=True)
    if sizes.kind == "exponential":
        drawn = random.exponential(sizes.frame_bytes, count)
        return np.rint(np.clip(drawn, sizes.least_bytes, sizes.most_bytes)).astype(np.int64)
    bytes_, shares = np.array(FLOW_SIZES[sizes.kind]).T
    found = np.interp(random.random(count), shares, bytes_)
    if sizes.most_flow_bytes is not None:
        found = np.minimum(found, sizes.most_flow_bytes)
    whole: NDArray[np.int64] = np.maximum(1, np.rint(found)).astype(np.int64)
    return whole


# ---- Arrivals: processes with a given mean distance, drawn in blocks ----


BLOCK = 256

Times = NDArray[np.float64]


def arrival_times(arrivals: Arrivals, distance_ns: float, random: np.random.Generator) -> Iterator[Times]:
    """Blocks of rising times in nanoseconds from 0 on, without end. distance_ns: between two arrivals, the mean."""
    if arrivals.kind == "constant":
        return _constant(distance_ns, random.random() * distance_ns)
    if arrivals.kind == "poisson":
        return _poisson(distance_ns, random)
    share = arrivals.on_us / (arrivals.on_us + arrivals.off_us)
    return _in_bursts(_constant(distance_ns * share, 0.0), _bursts(arrivals, random))


def _constant(distance_ns: float, first_ns: float) -> Iterator[Times]:
    begin = 0
    while True:
        yield first_ns + np.arange(begin, begin + BLOCK, dtype=np.float64) * distance_ns
        begin += BLOCK


def _poisson(distance_ns: float, random: np.random.Generator) -> Iterator[Times]:
    last_ns = 0.0
    while True:
        times_ns = last_ns + np.cumsum(random.exponential(distance_ns, BLOCK))
        last_ns = float(times_ns[-1])
        yield times_ns


def _bursts(arrivals: Arrivals, random: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Lengths of a burst and of the pause after it, in nanoseconds."""
    means_ns = (1000 * arrivals.on_us, 1000 * arrivals.off_us)
    while True:
        if arrivals.bursts == "constant":
            yield means_ns
        else:
            on_ns, off_ns = random.exponential(means_ns)
            yield float(on_ns), float(off_ns)


def _in_bursts(times: Iterator[Times], bursts: Iterator[tuple[float, float]]) -> Iterator[Times]:
    """Times of a clock that stands still in the pauses, as times of one that goes on."""
    end_ns, paused_ns, next_pause_ns = 0.0, 0.0, 0.0
    for block in times:
        shifted = np.empty_like(block)
        begin = 0
        while begin < len(block):
            if block[begin] >= end_ns:
                paused_ns += next_pause_ns
                on_ns, next_pause_ns = next(bursts)
                end_ns += on_ns
                continue
            end = int(np.searchsorted(block, end_ns, "left"))
            shifted[begin:end] = block[begin:end] + paused_ns
            begin = end
        yield shifted


# ---- Schedules ----


WINDOW_PACKETS = 1024
"""About so many packets of a host are in a window, or a quarter of what the host may keep,"""
LONGEST_WINDOW_NS = 50_000_000
"""and it is not longer than this, since what was handed over is sent."""

_FOREVER_NS = 10**18

LEAST_FRAME_BYTES = 64
"""Shortest frame without FCS that holds headers and trailer, in round numbers."""


@dataclass(frozen=True)
class TrafficPackets:
    """Packets in the order of their times; every field has the shape (packets,)."""

    times_ns: NDArray[np.int64]
    stream: NDArray[np.int64]
    """Place of the packet's stream."""
    flow: NDArray[np.int64]
    sequence: NDArray[np.int64]
    frame_bytes: NDArray[np.int64]
    port: NDArray[np.int64]
    """Number of the flow among those of its stream."""
    measured: NDArray[np.int64]
    """1 if the packet is measured, else 0."""

    def __len__(self) -> int:
        return len(self.times_ns)

    def __getitem__(self, chosen: slice | NDArray[np.int64]) -> TrafficPackets:
        return TrafficPackets(*(field[chosen] for field in self._fields()))

    def _fields(self) -> tuple[NDArray[np.int64], ...]:
        return (self.times_ns, self.stream, self.flow, self.sequence, self.frame_bytes, self.port, self.measured)

    @classmethod
    def joined(cls, parts: list[TrafficPackets]) -> TrafficPackets:
        if not parts:
            return cls(*(np.zeros(0, np.int64) for _ in range(7)))
        return cls(*(np.concatenate(fields) for fields in zip(*(part._fields() for part in parts), strict=True)))


@dataclass(frozen=True)
class Flow:
    """A flow that was begun. packets and bytes: of whole frames, all those of them that are measured."""

    stream: int
    begin_ns: int
    packets: int
    bytes: int


class _Source:
    """The arrivals of a stream."""

    def __init__(self, place: int, stream: TrafficStream, config: EndpointConfig) -> None:
        self.place = place
        self.stream = stream
        self.drawn = 0
        self.first_flow = 0
        self._sizes = config.sizes
        self._left = stream.packets
        times_random, self._sizes_random = (
            np.random.default_rng([config.seed % 2**63, config.source, place, part]) for part in (0, 1)
        )
        distance_ns = 8e9 * mean_wire_bytes(self._sizes) / stream.rate_bps
        self._blocks = arrival_times(config.arrivals, distance_ns, times_random)
        self._times = next(self._blocks)

    @property
    def is_over(self) -> bool:
        return self._left == 0

    def until(self, end_ns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Times and sizes of what arrives before; nothing of it comes again."""
        parts: list[NDArray[np.float64]] = []
        while self._times[-1] < end_ns and (self._left is None or sum(len(part) for part in parts) < self._left):
            parts.append(self._times)
            self._times = next(self._blocks)
        count = int(np.searchsorted(self._times, end_ns, "left"))
        parts.append(self._times[:count])
        self._times = self._times[count:] if count < len(self._times) else next(self._blocks)
        times_ns = np.concatenate(parts)
        if self._left is not None:
            times_ns = times_ns[: self._left]
            self._left -= len(times_ns)
        self.drawn += len(times_ns)
        return np.floor(times_ns).astype(np.int64), draw(self._sizes, len(times_ns), self._sizes_random)


def flow_frames(flow_bytes: NDArray[np.int64], frame_bytes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Frames that carry flows of so many bytes, and the length of the last of each (at least LEAST_FRAME_BYTES)."""
    payload_bytes = frame_bytes - DATAGRAM_BYTES
    frames = -(-flow_bytes // payload_bytes)
    last = np.maximum(DATAGRAM_BYTES + flow_bytes - (frames - 1) * payload_bytes, LEAST_FRAME_BYTES)
    return frames, last


def mean_wire_bytes(sizes: Sizes) -> float:
    """Return the mean size of what arrives, in whole frames; of flows nearly."""
    mean = mean_bytes(sizes)
    if has_flows(sizes):
        mean *= sizes.frame_bytes / (sizes.frame_bytes - DATAGRAM_BYTES)
    return mean


def flow_arrivals(config: EndpointConfig) -> list[tuple[int, int, int]]:
    """Return the arrivals of sizes that are those of flows: when each begins (nanoseconds), the place of its stream,
    and its bytes; all until the duration is over, or else as many as the streams have.
    """
    end_ns = _FOREVER_NS if config.duration_us is None else 1000 * config.duration_us
    arrived = []
    for place, stream in enumerate(config.streams):
        times_ns, flow_bytes = _Source(place, stream, config).until(end_ns)
        arrived += [
            (begin_ns, place, size) for begin_ns, size in zip(times_ns.tolist(), flow_bytes.tolist(), strict=True)
        ]
    return sorted(arrived)


class TrafficSchedule:
    """The packets that a host sends from a time on. `windows` yields it; `flows` are those begun so far, by their
    number.
    """

    def __init__(self, config: EndpointConfig, begin_ns: int) -> None:
        self.flows: list[Flow] = []
        self._config = config
        self._begin_ns = begin_ns
        self._measured_ns = 1000 * config.warm_up_us
        self._sources = [_Source(place, stream, config) for place, stream in enumerate(config.streams)]
        self._has_flows = has_flows(config.sizes)
        if not self._has_flows:
            for source in self._sources:
                source.first_flow = len(self.flows)
                self.flows += [Flow(source.place, begin_ns, 0, 0)] * source.stream.flows
        self._waiting: list[TrafficPackets] = []
        """Of flows that have begun, in the order of their times."""
        self._free_ns = 0.0
        """When the flows before have been sent."""

    @property
    def _window_ns(self) -> int:
        rate_bps = sum(stream.rate_bps for stream in self._config.streams)
        distance_ns = 8e9 * mean_frame_bytes(self._config.sizes) / rate_bps
        packets = min(WINDOW_PACKETS, max(1, self._config.kept_packets // 4))
        return max(1, min(LONGEST_WINDOW_NS, round(packets * distance_ns)))

    @property
    def measured_ns(self) -> tuple[int, int]:
        """Begin and end of the time in which what is measured is sent; an empty one if it has no set end."""
        duration_us = self._config.duration_us
        if duration_us is None:
            return 0, 0
        return self._begin_ns + self._measured_ns, self._begin_ns + 1000 * duration_us

    def windows(self) -> Iterator[tuple[int, TrafficPackets]]:
        """The time at which each window begins, and its packets, which may be none."""
        if not self._sources:
            return
        window_ns, begin_ns = self._window_ns, 0
        duration_us = self._config.duration_us
        last_ns = None if duration_us is None else 1000 * duration_us
        while last_ns is None or begin_ns < last_ns:
            end_ns = begin_ns + window_ns if last_ns is None else min(begin_ns + window_ns, last_ns)
            packets = self._flows_until(end_ns) if self._has_flows else self._packets_until(end_ns)
            yield self._begin_ns + begin_ns, packets
            begin_ns = end_ns
            if not self._waiting and all(source.is_over for source in self._sources):
                return
        # Flows that have begun are sent to their end.
        if self._waiting:
            yield self._begin_ns + begin_ns, self._shifted(TrafficPackets.joined(self._waiting))

    def _shifted(self, packets: TrafficPackets) -> TrafficPackets:
        return TrafficPackets(packets.times_ns + self._begin_ns, *packets._fields()[1:])

    def _packets_until(self, end_ns: int) -> TrafficPackets:
        parts = []
        for source in self._sources:
            numbers = source.drawn
            times_ns, frame_bytes = source.until(end_ns)
            if not len(times_ns):
                continue
            place = numbers + np.arange(len(times_ns))
            port = place % source.stream.flows
            stream = np.full(len(times_ns), source.place)
            flow = source.first_flow + port
            measured = (times_ns >= self._measured_ns).astype(np.int64)
            sequence = place // source.stream.flows
            parts.append(TrafficPackets(times_ns, stream, flow, sequence, frame_bytes, port, measured))
            self._count(source, port, measured, frame_bytes * measured)
        packets = TrafficPackets.joined(parts)
        return self._shifted(packets[np.argsort(packets.times_ns, kind="stable")])

    def _count(self, source: _Source, port: NDArray[np.int64], *counted: NDArray[np.int64]) -> None:
        """counted: packets and bytes of each packet that was added."""
        more = (np.rint(np.bincount(port, each, source.stream.flows)).astype(np.int64).tolist() for each in counted)
        for place, (packets, size) in enumerate(zip(*more, strict=True), source.first_flow):
            flow = self.flows[place]
            self.flows[place] = Flow(flow.stream, flow.begin_ns, flow.packets + packets, flow.bytes + size)

    def _flows_until(self, end_ns: int) -> TrafficPackets:
        """Flows are sent one after the other, as they come, at the link's rate."""
        arrived = []
        for source in self._sources:
            times_ns, flow_bytes = source.until(end_ns)
            arrived += [(begin_ns, source.place, size) for begin_ns, size in zip(times_ns, flow_bytes, strict=True)]
        for begin_ns, place, size in sorted(arrived):
            self._begin_flow(int(begin_ns), place, int(size))
        packets = TrafficPackets.joined(self._waiting)
        count = int(np.searchsorted(packets.times_ns, end_ns, "left"))
        self._waiting = [packets[count:]] if count < len(packets) else []
        return self._shifted(packets[:count])

    def _begin_flow(self, begin_ns: int, place: int, flow_bytes: int) -> None:
        full_bytes = self._config.sizes.frame_bytes
        frames, last_bytes = (int(each[0]) for each in flow_frames(np.array([flow_bytes]), full_bytes))
        number = len(self.flows)
        start_ns = max(float(begin_ns), self._free_ns)
        times_ns = start_ns + np.arange(frames) * (8e9 * full_bytes / self._config.link_rate_bps)
        self._free_ns = float(times_ns[-1]) + 8e9 * last_bytes / self._config.link_rate_bps
        frame_bytes = np.full(frames, full_bytes, np.int64)
        frame_bytes[-1] = last_bytes
        is_measured = int(begin_ns >= self._measured_ns)
        self._waiting.append(
            TrafficPackets(
                np.ceil(times_ns).astype(np.int64),
                np.full(frames, place),
                np.full(frames, number),
                np.arange(frames),
                frame_bytes,
                np.full(frames, number),
                np.full(frames, is_measured),
            )
        )
        sent_bytes = (frames - 1) * full_bytes + last_bytes
        self.flows.append(Flow(place, self._begin_ns + begin_ns, is_measured * frames, is_measured * sent_bytes))


assert LEAST_FRAME_BYTES >= DATAGRAM_BYTES + TRAILER_BYTES
