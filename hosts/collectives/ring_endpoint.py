"""A worker's end of a ring: packs, sends, receives, sorts and counts frames to the next and from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formats.addresses import ip_integer
from formats.datagram import NOT_ECT
from formats.ring import RING, RingFlags
from hosts.agents.context import Interface
from hosts.collectives.job import CollectiveJob
from hosts.collectives.ring_reduction import RingMessage
from hosts.protocols.datagram_frames import Frames, mac_array
from hosts.protocols.lane_frames import pack_lane_frames, parse_lane_frames
from hosts.transport.statistics import EndpointStatistics


@dataclass(frozen=True)
class RingReceived:
    """The wanted frames of a batch."""

    data: Frames
    """From the worker before."""
    acknowledgements: Frames
    """From the next one."""


class RingEndpoint:
    """Worker `index` of a job between its neighbours."""

    def __init__(self, job: CollectiveJob, index: int, interface: Interface) -> None:
        self._job = job
        self._interface = interface
        own = job.workers[index]
        self._own_ip = ip_integer(own.ip)
        self._own_mac = mac_array(own.mac)
        before, after = job.workers[index - 1], job.workers[(index + 1) % len(job.workers)]
        self._before_ip, self._before_mac = ip_integer(before.ip), mac_array(own.mac_towards(before))
        self._next_ip, self._next_mac = ip_integer(after.ip), mac_array(own.mac_towards(after))
        self.statistics = EndpointStatistics()

    def send(self, messages: Sequence[RingMessage], sequences: Sequence[int]) -> None:
        """Send messages to the next worker under their sequence numbers."""
        frames = pack_lane_frames(
            RING,
            np.stack([message.lanes for message in messages]),
            src_mac=self._own_mac,
            dst_mac=self._next_mac,
            src_ip=self._own_ip,
            dst_ip=self._next_ip,
            job=self._job.job,
            sequence=sequences,
            flags=[int(message.half or 0) for message in messages],
            round=[message.round for message in messages],
            fragment_number=[message.fragment for message in messages],
            step=[message.step for message in messages],
            shift=[message.shift for message in messages],
        )
        sent = self._interface.send(frames)
        self.statistics.gradient_sent.add(sent, frames.itemsize)
        self.statistics.send_failures += len(frames) - sent

    def acknowledge(self, sequence: int, selective: int, congested: bool) -> None:
        """Tell the worker before what has come."""
        frames = pack_lane_frames(
            RING,
            np.empty((1, 0), np.int32),
            src_mac=self._own_mac,
            dst_mac=self._before_mac,
            src_ip=self._own_ip,
            dst_ip=self._before_ip,
            job=self._job.job,
            sequence=sequence,
            selective=np.uint64(selective),
            flags=int(RingFlags.ACK | (RingFlags.CONGESTION if congested else 0)),
            tos=NOT_ECT,
        )
        sent = self._interface.send(frames)
        self.statistics.acknowledgement_sent.add(sent, frames.itemsize)
        self.statistics.send_failures += 1 - sent

    def receive(self) -> RingReceived | None:
        """The wanted ones (perhaps none) among one batch of frames; None: nothing waits. Does not block."""
        buffer, lengths = self._interface.receive()
        if len(lengths) == 0:
            return None
        parsed = parse_lane_frames(RING, buffer, lengths, self._job.lanes, RingFlags.ACK, RingFlags.ACK)
        statistics = self.statistics
        statistics.malformed += parsed.malformed
        data, acknowledgements = parsed.with_lanes, parsed.without_lanes
        statistics.gradient_received.add(len(data), data.itemsize)
        statistics.acknowledgement_received.add(len(acknowledgements), acknowledgements.itemsize)
        return RingReceived(self._wanted(data, self._before_ip), self._wanted(acknowledgements, self._next_ip))

    def _wanted(self, frames: Frames, src_ip: int) -> Frames:
        wanted = (frames["job"] == self._job.job) & (frames["dst_ip"] == self._own_ip) & (frames["src_ip"] == src_ip)
        self.statistics.misdirected += len(frames) - int(np.count_nonzero(wanted))
        return frames if wanted.all() else frames[wanted]

    def report(self) -> dict[str, Any]:
        """The statistics so far, as JSON."""
        self.statistics.socket_drops = self._interface.drops()
        return self.statistics.to_json()
