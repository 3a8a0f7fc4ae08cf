"""An agent's frames on their way to the other end: window, repeats and pacing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import Interface
from gradbed.hosts.systems.compression.packets.frames import MOST_FRAME_BYTES
from gradbed.hosts.transport.pacing import TokenBucket
from gradbed.hosts.transport.packet_numbers import PACKET_NUMBERS
from gradbed.hosts.transport.stream_sender import StreamSender


@dataclass
class _Flight:
    frame: NDArray[np.uint8]
    sent_us: int
    """Last."""
    sent_once: bool = True


@dataclass(frozen=True)
class News:
    """What an acknowledgement says of packets that nobody knew about: their bytes, when the latest of them was sent
    last, and the shortest round trip of those that were sent once; None: there is none."""

    size_bytes: int = 0
    sent_us: int = 0
    round_trip_us: int | None = None


class Outgoing:
    """Sends frames in order, and again until they are acknowledged."""

    def __init__(
        self, interface: Interface, sender: StreamSender, first_sequence: int, bucket: TokenBucket | None
    ) -> None:
        self._interface = interface
        self._sender = sender
        self.bucket = bucket
        self._next = first_sequence
        self._waiting: deque[NDArray[np.uint8]] = deque()
        self._in_flight: dict[int, _Flight] = {}
        self.handed = 0
        """Frames that were sent for the first time since `begin`."""
        self.handed_bytes = 0

    @property
    def next_sequence(self) -> int:
        """Of the frame that is queued next."""
        return (self._next + len(self._waiting)) % PACKET_NUMBERS

    @property
    def next_new(self) -> int:
        """Of the frame that is sent for the first time next."""
        return self._next

    @property
    def finished(self) -> bool:
        return self._sender.finished

    def begin(self) -> None:
        self.handed = self.handed_bytes = 0

    def queue(self, frames: Sequence[NDArray[np.uint8]]) -> None:
        self._waiting.extend(frames)
        self._sender.queue(len(frames))

    def withdraw(self) -> None:
        """What has never been sent is not to be sent."""
        self._waiting.clear()
        self._sender.withdraw()

    def transmit(self, now_us: int) -> None:
        """Send what is due."""
        if self.bucket is None:
            self._send(self._sender.transmissions(now_us), now_us)
            return
        while self.bucket.holds(MOST_FRAME_BYTES, now_us):
            sequences = self._sender.transmissions(now_us, most=1)
            if not sequences:
                self.bucket.rest(now_us)
                return
            self.bucket.spend(self._send(sequences, now_us))

    def _send(self, sequences: Iterable[int], now_us: int) -> int:
        """Bytes."""
        frames = []
        for sequence in sequences:
            flight = self._in_flight.get(sequence)
            if flight is None:
                flight = self._in_flight[sequence] = _Flight(self._waiting.popleft(), now_us)
                self._next = (self._next + 1) % PACKET_NUMBERS
                self.handed += 1
                self.handed_bytes += len(flight.frame)
            else:
                flight.sent_us, flight.sent_once = now_us, False
            frames.append(flight.frame)
        for _, equally_long in groupby(frames, len):
            self._interface.send(np.stack(list(equally_long)))
        return sum(map(len, frames))

    def acknowledge(self, sequence: int, selective: int, congested: bool, now_us: int) -> News:
        numbers = self._sender.acknowledge(sequence, selective, congested, now_us)
        if not numbers:
            return News()
        flights = [self._in_flight.pop(number) for number in numbers]
        return News(
            sum(len(flight.frame) for flight in flights),
            max(flight.sent_us for flight in flights),
            min((now_us - flight.sent_us for flight in flights if flight.sent_once), default=None),
        )

    def deadline_us(self, now_us: int) -> int | None:
        """When `transmit` has something to send at the latest."""
        due_us = self._sender.deadline_us
        if due_us is not None and due_us <= now_us and self.bucket is not None:
            return self.bucket.ready_us(MOST_FRAME_BYTES)
        return due_us
