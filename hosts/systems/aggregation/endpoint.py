"""One agent's end of a job: packs, sends, receives, sorts and counts the job's frames."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradbed.formats.addresses import ip_integer
from gradbed.formats.aggregation import GRADIENT, Designation, Flags
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.agents.context import Interface
from gradbed.hosts.protocols.frames import (
    Frames,
    as_bytes,
    as_frames,
    distinct_beginnings,
    lane_frame_type,
    mac_array,
)
from gradbed.hosts.systems.aggregation.config import AggregationJob
from gradbed.hosts.systems.aggregation.gradient_frames import pack_frames, parse_frames
from gradbed.hosts.transport.statistics import EndpointStatistics

_ACK = Flags.ACK.value
_CHECKED_BYTES = DATAGRAM_BYTES + GRADIENT.offset_bytes("packet_number")
"""At the beginning of a frame: what says whether an endpoint takes it in, apart from its length."""
_MOST_HEADERS = 4096


def label_array(designations: Sequence[Designation]) -> NDArray[np.int64]:
    """switch_number, fan_in, next_switch and next_fan_in of each, shape (designations, 4)."""
    return np.array([(d.switch_number, d.fan_in, d.next_switch, d.next_fan_in) for d in designations], np.int64)


def _rows_of(headers: Collection[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(headers), np.uint8).reshape(-1, _CHECKED_BYTES)


class Received(NamedTuple):
    """The wanted frames of a batch."""

    frames: Frames
    """Gradients and sums, or global sums."""
    requests: list[int]
    """Packet numbers of NACKs."""


class GradientEndpoint:
    """Sends one kind of frame, gradients or acknowledgements, and takes in the other."""

    def __init__(
        self,
        job: AggregationJob,
        own: AgentAddress,
        peers: Sequence[AgentAddress],
        interface: Interface,
        *,
        sends_acknowledgements: bool,
        group_ips: Collection[str] = (),
    ) -> None:
        """peers: whose frames are taken in. group_ips: multicast addresses that are ours, too."""
        self._job = job
        self._interface = interface
        self._sends_acknowledgements = sends_acknowledgements
        self._own_ip = ip_integer(own.ip)
        self._own_mac = mac_array(own.mac)
        self._gateway_mac = mac_array(own.gateway_mac)
        self._own_ips = np.array([ip_integer(ip) for ip in (own.ip, *group_ips)], np.uint32)
        self._peer_ips = np.array([ip_integer(peer.ip) for peer in peers], np.uint32)
        self._frame_type = lane_frame_type(GRADIENT, job.lanes)
        self._wanted_headers: set[bytes] = set()
        """First bytes of wanted frames with lanes; a frame that begins like them need not be checked again."""
        self.known_headers = _rows_of(self._wanted_headers)
        """The same, shape (headers, bytes)."""
        self.statistics = EndpointStatistics()
        acknowledgements = self.statistics.acknowledgement_sent, self.statistics.acknowledgement_received
        gradients = self.statistics.gradient_sent, self.statistics.gradient_received
        self._sent_kind = (acknowledgements if sends_acknowledgements else gradients)[0]
        self._received_kind = (gradients if sends_acknowledgements else acknowledgements)[1]

    def send(
        self,
        lanes: NDArray[np.int32],
        *,
        packet_numbers: ArrayLike,
        worker_bitmap: int,
        dst_ip: ArrayLike,
        flags: ArrayLike = 0,
        labels: NDArray[np.int64] | None = None,
        magnitude: ArrayLike | None = None,
        dst_mac: ArrayLike | None = None,
    ) -> None:
        """Send one frame per row of `lanes`, shape (frames, lanes), to the gateway unless told otherwise.

        labels: the designations, shape (frames, 4), columns as in `label_array`; None: past all switches. magnitude:
        as in `pack_frames`.
        """
        self.send_frames(
            self._packed(
                lanes,
                labels,
                dst_mac=self._gateway_mac if dst_mac is None else dst_mac,
                dst_ip=dst_ip,
                packet_number=packet_numbers,
                worker_bitmap=worker_bitmap,
                flags=flags,
                magnitude=magnitude,
            )
        )

    def headers(self, labels: NDArray[np.int64], *, worker_bitmap: int, dst_ip: int) -> NDArray[np.uint8]:
        """Return headers of gradients, shape (labels, bytes); labels: their designations, as in `send`."""
        lanes = np.zeros((len(labels), self._job.lanes), np.int32)
        frames = self._packed(lanes, labels, dst_mac=self._gateway_mac, worker_bitmap=worker_bitmap, dst_ip=dst_ip)
        return as_bytes(frames)[:, : -lanes[0].nbytes].copy()

    def _packed(self, lanes: NDArray[np.int32], labels: NDArray[np.int64] | None, **values: Any) -> Frames:
        if labels is None:
            labels = np.zeros((1, 4), np.int64)
        names = ("switch_number", "fan_in", "next_switch", "next_fan_in")
        return pack_frames(
            lanes,
            src_mac=self._own_mac,
            src_ip=self._own_ip,
            job=self._job.job,
            **dict(zip(names, labels.T, strict=True)),
            **values,
        )

    def send_frames(self, frames: Frames) -> None:
        """Send whole frames of the kind that this end sends."""
        sent = self._interface.send(frames)
        self._sent_kind.add(sent, frames.itemsize)
        self.statistics.send_failures += len(frames) - sent

    def count(self, received: int, sent: int, failed: int = 0) -> None:
        """Count so many wanted frames with lanes that have come, so many that have left, and so many that had no
        room, past this.
        """
        self._received_kind.add(received, self._frame_type.itemsize)
        self._sent_kind.add(sent, self._frame_type.itemsize)
        self.statistics.send_failures += failed

    def receive(self) -> Received | None:
        """The wanted ones (perhaps none) among one batch of frames; None: nothing waits. Does not block."""
        buffer, lengths = self._interface.receive()
        if len(lengths) == 0:
            return None
        count, size = len(lengths), self._frame_type.itemsize
        headers = distinct_beginnings(buffer[:count], _CHECKED_BYTES)
        if headers <= self._wanted_headers and lengths.tolist().count(size) == count:  # as usual
            self._received_kind.add(count, size)
            return Received(as_frames(buffer[:count, :size].copy(), self._frame_type), [])
        parsed = parse_frames(buffer, lengths, self._job.lanes)
        self.statistics.malformed += parsed.malformed
        requests = parsed.without_lanes
        if len(requests):
            requests = self._wanted(requests)
        frames = self._wanted(parsed.with_lanes)
        if len(frames) == count:
            if len(self._wanted_headers) > _MOST_HEADERS:
                self._wanted_headers.clear()
            self._wanted_headers |= headers
            self.known_headers = _rows_of(self._wanted_headers)
        return Received(frames, requests["packet_number"].tolist())

    def _wanted(self, frames: Frames) -> Frames:
        """Count frames of one length, and pick those that are for this agent."""
        acknowledgement = frames["flags"] & _ACK != 0
        acknowledgements = int(np.count_nonzero(acknowledgement))
        self.statistics.acknowledgement_received.add(acknowledgements, frames.itemsize)
        self.statistics.gradient_received.add(len(frames) - acknowledgements, frames.itemsize)
        wanted = (
            (acknowledgement != self._sends_acknowledgements)
            & (frames["job"] == self._job.job)
            & (frames["dst_ip"][:, None] == self._own_ips).any(axis=1)
            & (frames["src_ip"][:, None] == self._peer_ips).any(axis=1)
        )
        self.statistics.misdirected += len(frames) - int(np.count_nonzero(wanted))
        return frames if wanted.all() else frames[wanted]

    def drain(self) -> None:
        """Count what is waiting, and forget it."""
        while self.receive() is not None:
            pass

    def report(self) -> dict[str, Any]:
        """The statistics so far, as JSON."""
        self.statistics.socket_drops = self._interface.drops()
        return self.statistics.to_json()
