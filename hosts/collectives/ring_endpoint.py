"""A worker's end of a ring: packs, sends, receives, sorts and counts frames to the next and from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradbed.formats.addresses import ip_integer
from gradbed.formats.datagram import NOT_ECT
from gradbed.formats.ring import RING, RingFlags
from gradbed.hosts.agents.context import Interface
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.collectives.ring_reduction import RingMessage
from gradbed.hosts.protocols.datagram_frames import Frames, mac_array
from gradbed.hosts.protocols.lane_frames import pack_lane_frames, parse_lane_frames
from gradbed.hosts.transport.statistics import EndpointStatistics


@dataclass(frozen=True)
class RingReceived:
    """Frames of a batch."""

    data: Frames
    """What is wanted of them is from the worker before."""
    acknowledgements: Frames
    """From the next one."""


class RingEndpoint:
    """Worker `index` of a job between two others: its neighbours on the ring, if nothing else is said."""

    def __init__(
        self,
        job: CollectiveJob,
        index: int,
        interface: Interface,
        *,
        before: int | None = None,
        after: int | None = None,
        statistics: EndpointStatistics | None = None,
    ) -> None:
        """statistics: those of an interface that several endpoints share."""
        self._job = job
        self._interface = interface
        own = job.workers[index]
        self._own_ip = ip_integer(own.ip)
        self._own_mac = mac_array(own.mac)
        count = len(job.workers)
        source = job.workers[(index - 1) % count if before is None else before]
        target = job.workers[(index + 1) % count if after is None else after]
        self._before_ip, self._before_mac = ip_integer(source.ip), mac_array(own.mac_towards(source))
        self._next_ip, self._next_mac = ip_integer(target.ip), mac_array(own.mac_towards(target))
        self.statistics = EndpointStatistics() if statistics is None else statistics

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
        received = read_frames(self._interface, self._job, self.statistics)
        if received is None:
            return None
        wanted = self.wanted(received)
        for before, after in ((received.data, wanted.data), (received.acknowledgements, wanted.acknowledgements)):
            self.statistics.misdirected += len(before) - len(after)
        return wanted

    def wanted(self, received: RingReceived) -> RingReceived:
        """Those of this job, from the two others to this worker."""
        return RingReceived(
            self._wanted(received.data, self._before_ip), self._wanted(received.acknowledgements, self._next_ip)
        )

    def _wanted(self, frames: Frames, src_ip: int) -> Frames:
        wanted = (frames["job"] == self._job.job) & (frames["dst_ip"] == self._own_ip) & (frames["src_ip"] == src_ip)
        return frames if wanted.all() else frames[wanted]

    def report(self) -> dict[str, Any]:
        """The statistics so far, as JSON."""
        self.statistics.socket_drops = self._interface.drops()
        return self.statistics.to_json()


def read_frames(interface: Interface, job: CollectiveJob, statistics: EndpointStatistics) -> RingReceived | None:
    """The well-formed ones among one batch of frames, counted; None: nothing waits. Does not block."""
    buffer, lengths = interface.receive()
    if len(lengths) == 0:
        return None
    parsed = parse_lane_frames(RING, buffer, lengths, job.lanes, RingFlags.ACK, RingFlags.ACK)
    statistics.malformed += parsed.malformed
    data, acknowledgements = parsed.with_lanes, parsed.without_lanes
    statistics.gradient_received.add(len(data), data.itemsize)
    statistics.acknowledgement_received.add(len(acknowledgements), acknowledgements.itemsize)
    return RingReceived(data, acknowledgements)
