"""Messages to one worker and from one: numbered, acknowledged, and repeated until they have come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gradbed.formats.ring import RingFlags
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.collectives.ring_endpoint import RingEndpoint
from gradbed.hosts.collectives.ring_reduction import RingMessage
from gradbed.hosts.protocols.datagram_frames import Frames, met_congestion
from gradbed.hosts.transport.packet_numbers import PACKET_NUMBERS
from gradbed.hosts.transport.stream_receiver import StreamReceiver
from gradbed.hosts.transport.stream_sender import StreamSender


class RingStream:
    """What a worker sends to the endpoint's next worker, and has from the one before."""

    def __init__(self, job: CollectiveJob, endpoint: RingEndpoint, seed: int) -> None:
        self._endpoint = endpoint
        self.sender = StreamSender(
            window_packets=job.window_fragments,
            min_timeout_us=job.min_timeout_us,
            congestion_control=job.congestion_control,
            first_sequence=job.first_packet_number,
            seed=seed,
        )
        self.receiver = StreamReceiver(job.first_packet_number)
        self._next_sequence = job.first_packet_number
        self._in_flight: dict[int, RingMessage] = {}  # by sequence

    def queue(self, messages: Sequence[RingMessage]) -> None:
        """Send these when the window allows."""
        for message in messages:
            self._in_flight[self._next_sequence] = message
            self._next_sequence = (self._next_sequence + 1) % PACKET_NUMBERS
        self.sender.queue(len(messages))

    def send_due(self, now_us: int) -> None:
        """Send what the window allows, and repeat what is due."""
        if sequences := self.sender.transmissions(now_us):
            self._endpoint.send([self._in_flight[sequence] for sequence in sequences], sequences)

    def take_acknowledgements(self, frames: Frames, now_us: int) -> bool:
        """Whether they told anything new."""
        marks = met_congestion(frames, RingFlags.CONGESTION).tolist()
        columns = (frames["sequence"].tolist(), frames["selective"].tolist(), marks)
        acknowledged = [
            sequence
            for number, selective, marked in zip(*columns, strict=True)
            for sequence in self.sender.acknowledge(number, selective, marked, now_us)
        ]
        for sequence in acknowledged:
            del self._in_flight[sequence]
        return bool(acknowledged)

    def take_data(self, frames: Frames) -> list[RingMessage]:
        """The new messages among them; all are acknowledged."""
        if not len(frames):
            return []
        new = self.receiver.accept(frames["sequence"].tolist())
        # One acknowledgement tells of the whole batch.
        congested = bool(met_congestion(frames, RingFlags.CONGESTION).any())
        self._endpoint.acknowledge(*self.receiver.acknowledgement, congested)
        return list(messages_of(frames[np.array(new)]))


def messages_of(frames: Frames) -> Iterable[RingMessage]:
    """What frames with lanes carry."""
    lanes = frames["lanes"].astype(np.int32)
    names = ("round", "step", "fragment_number", "flags", "shift")
    for row, (round_number, step, fragment, flags, shift) in zip(
        lanes, zip(*(frames[name].tolist() for name in names), strict=True), strict=True
    ):
        half = next((flag for flag in (RingFlags.LOW, RingFlags.HIGH) if flags & flag), None)
        yield RingMessage(round_number, step, fragment, row, half, shift)
