"""Traffic that the data plane itself makes and counts: as simple as ns-3's OnOffApplication and PacketSink."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine, abi

_NO_LIMIT = 2**64 - 1
_DISCARD_PORT = 9
_TTL = 64
_UDP = 17


@dataclass(frozen=True)
class Generator:
    """UDP datagrams of one size, with a sequence number and the time of sending, from a host's port.

    rate_bps: of whole frames of frame_bytes (58 to 65,553, without preamble and FCS), as the rates of links. poisson:
    the pauses between frames are exponentially distributed, drawn from `seed`; otherwise all are the same. Frames are
    sent in start_ns <= time < stop_ns, `packets` at most; None: no limit. MAC addresses are six bytes.
    """

    src_mac: bytes
    dst_mac: bytes
    src_ip: IPv4Address
    dst_ip: IPv4Address
    rate_bps: int
    frame_bytes: int
    poisson: bool = False
    seed: int = 0
    start_ns: int = 0
    stop_ns: int | None = None
    packets: int | None = None
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
        """Ethernet, IPv4 with its checksum, and UDP without one (RFC 768 allows that)."""
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
    """What a sink received. Latencies are from the generator's call to the last bit's arrival.

    latency_counts is the histogram: [0] counts 0 ns, [n] 2^(n-1) to 2^n - 1 ns, the last all that is longer.
    """

    packets: int
    bytes: int
    first_ns: int
    last_ns: int
    latency_ns_total: int
    latency_ns_min: int
    latency_ns_max: int
    latency_counts: tuple[int, ...]


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
