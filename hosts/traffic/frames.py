"""The frames of a schedule's packets: headers, zeros, and the trailer (formats/traffic.py)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.formats.addresses import ip_integer
from gradbed.formats.datagram import ETHERNET_BYTES, IPV4_BYTES, PLAIN
from gradbed.formats.traffic import TAG, TRAILER, TRAILER_BYTES, WARM_UP
from gradbed.hosts.protocols.frames import frame_type, ipv4_checksum, mac_array, pack_datagrams
from gradbed.hosts.traffic.config import EndpointConfig
from gradbed.hosts.traffic.schedule import TrafficPackets

# ---- Trailers of received frames ----


TRAILER_TYPE = np.dtype(TRAILER.columns)


def trailers(buffer: NDArray[np.uint8], lengths: NDArray[np.uint32]) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """The trailers of those frames of a receive buffer that have one, and which those are (frames,).

    buffer: (frames or more, capacity). lengths: (frames,).
    """
    ends = lengths.astype(np.int64)
    long_enough = (ends >= TRAILER_BYTES) & (ends <= buffer.shape[1])
    rows = np.flatnonzero(long_enough)
    columns = ends[rows, None] + np.arange(-TRAILER_BYTES, 0)
    found: NDArray[np.void] = buffer[rows[:, None], columns].view(TRAILER_TYPE).reshape(len(rows))
    tagged = found["tag"] == TAG
    chosen: NDArray[np.bool_] = np.zeros(len(lengths), np.bool_)
    chosen[rows[tagged]] = True
    return found[tagged], chosen


# ---- Frames that are sent ----


FIRST_PORT = 49152
PORTS = 16384
"""Dynamic ports (RFC 6335), which tell flows apart."""

_HEADER = frame_type(PLAIN)


class FrameMaker:
    """Frames of one host. warm_up: how many of them are marked as not to be measured."""

    def __init__(self, config: EndpointConfig) -> None:
        self.warm_up = 0
        self._source = config.source
        self._receivers = np.array([stream.receiver for stream in config.streams], np.uint16)
        streams = config.streams
        self._templates = [np.array([_bytes(each) for each in stream.headers or ()]) for stream in streams]
        if any(len(each) for each in self._templates):
            self._check_templates(config)
        # Not np.concatenate, which would turn the fields' bytes to the machine's order.
        self._headers = np.empty(len(streams), _HEADER)
        for place, stream in enumerate(streams):
            self._headers[place : place + 1] = pack_datagrams(
                PLAIN,
                _HEADER,
                1,
                src_mac=mac_array(config.address.mac),
                dst_mac=mac_array(stream.dst_mac or config.address.gateway_mac),
                src_ip=ip_integer(config.address.ip),
                dst_ip=ip_integer(stream.destination.ip),
                dst_port=config.udp_port,
                tos=stream.tos,
            )

    def _check_templates(self, config: EndpointConfig) -> None:
        for stream, headers in zip(config.streams, self._templates, strict=True):
            if len(headers) != stream.flows or config.sizes.kind != "fixed":
                raise UserError("headers of one's own go with frames of a fixed size, one for each flow")
            if headers.shape[1] + TRAILER_BYTES > config.sizes.frame_bytes:
                raise UserError(
                    f"a frame of {config.sizes.frame_bytes} bytes has no room for headers of {headers.shape[1]} "
                    f"and the {TRAILER_BYTES} bytes at its end by which it is known"
                )

    def frames(self, packets: TrafficPackets) -> tuple[NDArray[np.uint8], NDArray[np.uint32] | None]:
        """Rows of bytes (packets, longest), and their lengths if these differ."""
        lengths = packets.frame_bytes
        longest = int(lengths.max())
        rows = np.zeros((len(packets), longest), np.uint8)
        if any(len(each) for each in self._templates):
            for place, headers in enumerate(self._templates):
                chosen = np.flatnonzero(packets.stream == place)
                rows[chosen, : headers.shape[1]] = headers[packets.port[chosen]]
        else:
            rows[:, : _HEADER.itemsize] = self._datagram_headers(packets)
        trailer = np.zeros(len(packets), TRAILER_TYPE)
        trailer["tag"] = TAG
        trailer["source"] = self._source | np.where(packets.measured, 0, WARM_UP)
        self.warm_up += int((packets.measured == 0).sum())
        trailer["receiver"] = self._receivers[packets.stream]
        trailer["flow"], trailer["sequence"] = packets.flow, packets.sequence
        ends = trailer.view(np.uint8).reshape(len(packets), TRAILER_BYTES)
        if (lengths == longest).all():
            rows[:, -TRAILER_BYTES:] = ends
            return rows, None
        columns = lengths[:, None] + np.arange(-TRAILER_BYTES, 0)
        rows[np.arange(len(rows))[:, None], columns] = ends
        return rows, lengths.astype(np.uint32)

    def _datagram_headers(self, packets: TrafficPackets) -> NDArray[np.uint8]:
        headers = self._headers[packets.stream]
        ip_bytes = packets.frame_bytes - ETHERNET_BYTES
        headers["src_port"] = FIRST_PORT + packets.flow % PORTS
        headers["total_length"], headers["udp_length"] = ip_bytes, ip_bytes - IPV4_BYTES
        headers["header_checksum"] = 0
        rows: NDArray[np.uint8] = headers.view(np.uint8).reshape(len(packets), _HEADER.itemsize)
        headers["header_checksum"] = ipv4_checksum(rows[:, ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES])
        return rows


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(text), np.uint8)
