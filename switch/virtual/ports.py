"""Ports in memory: what a host has in place of an interface, and generators and sinks of traffic."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine, abi
from gradbed.switch.engine.abi import MAX_FRAME_BYTES, NEVER_NOTIFY
from gradbed.switch.engine.queue_pairs import HostQueuePairs

# ---- Host interfaces ----


_FIRST_FRAMES = 64
_FIRST_FRAME_BYTES = 2048


class HostInterface:
    """The host's end of a switch port, made by SimulatedNetwork.interface; sends and receives as raw sockets do.

    `receive_coalescing_us`: how long after the first frame of a batch the host is notified (rx-usecs of ethtool(8)).
    """

    def __init__(self, engine: Engine, device_id: int, port: int, receive_coalescing_us: int) -> None:
        if receive_coalescing_us < 0:
            raise UserError(f"receive_coalescing_us is not negative, got {receive_coalescing_us}")
        self.device_id = device_id
        self.port = port
        self.receive_coalescing_us = receive_coalescing_us
        self._engine = engine
        self.number = self._listen(receive_coalescing_us * 1000)
        if self.number < 0:
            raise UserError(f"port {port} of switch {device_id} does not lead to a host in memory")
        self._longest = ctypes.c_uint32()
        self._longest_pointer = ctypes.byref(self._longest)
        self._make_room(_FIRST_FRAMES, _FIRST_FRAME_BYTES)
        self.times_ns: NDArray[np.int64] = self._times_ns[:0]
        """When the frames of the last batch arrived, in nanoseconds of the virtual clock."""

    def _listen(self, receive_coalescing_ns: int) -> int:
        number: int = self._engine.call("open_inbox", self.device_id, self.port, receive_coalescing_ns)
        return number

    def set_quiet(self, quiet: bool) -> None:
        """Set whether the host is never notified: it receives when it likes, and time does not stop for it."""
        self._listen(NEVER_NOTIFY if quiet else self.receive_coalescing_us * 1000)

    def send(
        self,
        frames: NDArray[np.generic],
        lengths: NDArray[np.uint32] | None = None,
        times_ns: NDArray[np.int64] | None = None,
    ) -> int:
        """Offer whole Ethernet frames, one in each row, to the link in order; return how many.

        A full queue of the link drops and counts frames. Raises ValueError for frames that are too long.

        `lengths` (frames,): bytes of each row that are the frame; None: all. `times_ns` (frames,): when each is
        offered, now if that is over; None: now.
        """
        count = len(frames)
        if count == 0:
            return 0
        frames = np.ascontiguousarray(frames)
        stride = frames.nbytes // count
        if lengths is not None:
            lengths = np.ascontiguousarray(lengths, np.uint32)
            if lengths.shape != (count,):
                raise ValueError(f"{count} frames, but lengths of shape {lengths.shape}")
        if times_ns is not None:
            times_ns = np.ascontiguousarray(times_ns, np.int64)
            if times_ns.shape != (count,):
                raise ValueError(f"{count} frames, but times of shape {times_ns.shape}")
        at = None if lengths is None else lengths.ctypes.data
        times = None if times_ns is None else times_ns.ctypes.data
        code = self._engine.call("send", self.number, frames.ctypes.data, stride, at, times, count)
        if code == -errno.EMSGSIZE:
            raise ValueError(f"a frame is longer than its row, or than {MAX_FRAME_BYTES} bytes")
        if code == -errno.ENOMEM:
            raise MemoryError("too many packets are under way")
        if code < 0:
            raise UserError(f"the interface at port {self.port} of switch {self.device_id} was closed")
        return count

    def receive(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """Return the frames that the host was notified of: a buffer (frames, capacity) and lengths (frames,); empty
        if none wait.

        Valid until the next call, as are `times_ns` (frames,).
        """
        count = self._engine.call("inbox_waiting", self.number, self._longest_pointer)
        if count <= 0:
            self.times_ns = self._times_ns[:0]
            return self._frames[:0], self._lengths[:0]
        capacity, row_bytes = self._frames.shape
        if count > capacity or self._longest.value > row_bytes:
            self._make_room(max(capacity, 2 * count), max(row_bytes, self._longest.value))
        self._engine.call("receive", self.number, *self._pointers, count)
        self.times_ns = self._times_ns[:count]
        return self._frames[:count], self._lengths[:count]

    def open_queue_pairs(self) -> HostQueuePairs:
        """Return the queue pairs of its NIC, which is notified together with the interface."""
        return HostQueuePairs(self._engine, self.device_id, self.port)

    def close(self) -> None:
        """Stop receiving: what waits and what comes is lost. May be repeated."""
        self._engine.call("close_inbox", self.number)

    def _make_room(self, frames: int, row_bytes: int) -> None:
        self._frames = np.empty((frames, row_bytes), np.uint8)
        self._lengths = np.empty(frames, np.uint32)
        self._times_ns = np.empty(frames, np.int64)
        self._pointers = (self._frames.ctypes.data, row_bytes, self._lengths.ctypes.data, self._times_ns.ctypes.data)


# ---- Generators and sinks, as simple as ns-3's OnOffApplication and PacketSink ----


_NO_LIMIT = 2**64 - 1
_DISCARD_PORT = 9
_TTL = 64
_UDP = 17


@dataclass(frozen=True)
class Generator:
    """UDP datagrams of one size, with a sequence number and the time of sending, from a host's port.

    Frames are sent in start_ns <= time < stop_ns. MAC addresses are six bytes.
    """

    src_mac: bytes
    dst_mac: bytes
    src_ip: IPv4Address
    dst_ip: IPv4Address
    rate_bps: int
    """Rate of whole frames in bit/s, as the rates of links."""
    frame_bytes: int
    """Size of a frame, 58 to 65,553 bytes without preamble and FCS."""
    poisson: bool = False
    """Whether pauses between frames are exponentially distributed, drawn from `seed`; otherwise all are the same."""
    seed: int = 0
    start_ns: int = 0
    stop_ns: int | None = None
    packets: int | None = None
    """Number of packets at most; None: no limit."""
    src_port: int = _DISCARD_PORT
    dst_port: int = _DISCARD_PORT

    def __post_init__(self) -> None:
        if not abi.TRAFFIC_LEAST_BYTES <= self.frame_bytes <= abi.MAX_FRAME_BYTES:
            raise UserError(
                f"generated frames have {abi.TRAFFIC_LEAST_BYTES} to {abi.MAX_FRAME_BYTES} bytes, not "
                f"{self.frame_bytes}"
            )
        if self.rate_bps <= 0:
            raise UserError(f"a generator's rate is positive, not {self.rate_bps} bit/s")

    def header(self) -> bytes:
        """Return the Ethernet, IPv4 (with checksum) and UDP headers; UDP without a checksum, which RFC 768 allows."""
        ip_bytes = self.frame_bytes - 14
        fields = (0x45, 0, ip_bytes, 0, 0, _TTL, _UDP)
        addresses = self.src_ip.packed + self.dst_ip.packed
        words = struct.unpack("!10H", struct.pack("!BBHHHBBH", *fields, 0) + addresses)
        total = sum(words)
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        ip = struct.pack("!BBHHHBBH", *fields, ~total & 0xFFFF) + addresses
        udp = struct.pack("!4H", self.src_port, self.dst_port, ip_bytes - 20, 0)
        return self.dst_mac + self.src_mac + b"\x08\x00" + ip + udp

    def options(self) -> abi.GeneratorOptionsStruct:
        return abi.GeneratorOptionsStruct(
            rate_bps=self.rate_bps,
            start_ns=self.start_ns,
            stop_ns=_NO_LIMIT if self.stop_ns is None else self.stop_ns,
            packets=_NO_LIMIT if self.packets is None else self.packets,
            seed=self.seed % 2**64,
            frame_bytes=self.frame_bytes,
            poisson=self.poisson,
            header=(ctypes.c_uint8 * abi.TRAFFIC_HEADER_BYTES)(*self.header()),
        )


@dataclass(frozen=True)
class SinkStatistics:
    """Counts of a sink. Latencies are from the generator's call to the last bit's arrival."""

    packets: int
    bytes: int
    first_ns: int
    last_ns: int
    latency_ns_total: int
    latency_ns_min: int
    latency_ns_max: int
    latency_counts: tuple[int, ...]
    """Histogram: [0] counts 0 ns, [n] 2^(n-1) to 2^n - 1 ns, the last all that is longer."""


def add_generator(engine: Engine, device_id: int, port: int, generator: Generator) -> None:
    code = engine.call("add_generator", device_id, port, ctypes.byref(generator.options()))
    if code == -errno.ENOMEM:
        raise MemoryError("out of memory for a generator")
    _check(code, device_id, port)


def add_sink(engine: Engine, device_id: int, port: int, udp_port: int) -> None:
    code = engine.call("add_sink", device_id, port, udp_port)
    if code == -errno.EEXIST:
        raise UserError(f"port {port} of switch {device_id} has a sink already")
    _check(code, device_id, port)


def sink_statistics(engine: Engine, device_id: int, port: int) -> SinkStatistics:
    row = abi.SinkStatisticsStruct()
    code = engine.call("sink_statistics", device_id, port, ctypes.byref(row))
    if code == -errno.ENXIO:
        raise UserError(f"port {port} of switch {device_id} has no sink")
    values = {**abi.values(row), "latency_counts": tuple(row.latency_counts)}
    return SinkStatistics(**values)  # type: ignore[arg-type]


def _check(code: int, device_id: int, port: int) -> None:
    if code == -errno.ENXIO:
        raise UserError(f"port {port} of switch {device_id} does not lead to a host in memory")
    if code < 0:
        raise UserError(f"port {port} of switch {device_id}: {os.strerror(-code)}")
