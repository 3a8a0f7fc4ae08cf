"""Frames between two agents: sent in a window, acknowledged, and repeated until they have come."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.compression import Flags
from gradbed.formats.encoding import PAYLOAD_BYTES
from gradbed.hosts.agents.context import Interface
from gradbed.hosts.compressors.content import INDEX_BYTES, Content, Written, code_bytes, wire_bytes, written
from gradbed.hosts.compressors.methods import top_k
from gradbed.hosts.protocols.frames import Frames, met_congestion, only
from gradbed.hosts.systems.compression.frames import (
    HEADER_BYTES,
    MOST_FRAME_BYTES,
    Route,
    end_frame,
    is_end,
    part_frames,
)
from gradbed.hosts.transport.pacing import TokenBucket
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, StreamReceiver
from gradbed.hosts.transport.stream_sender import StreamSender

# ---- Frames on their way to the other end: window, repeats and pacing ----


@dataclass
class _PartFlight:
    frame: NDArray[np.uint8]
    sent_us: int
    """Last."""
    sent_once: bool = True


@dataclass(frozen=True)
class News:
    """The news in an acknowledgement."""

    size_bytes: int = 0
    """Bytes of newly acknowledged packets."""
    sent_us: int = 0
    """When the latest of them was last sent."""
    round_trip_us: int | None = None
    """Shortest round trip of those that were sent once (Karn's algorithm, RFC 6298, section 3); None: of none."""


class StreamOutput:
    """Sends frames in order, and again until they are acknowledged."""

    def __init__(
        self, interface: Interface, sender: StreamSender, first_sequence: int, bucket: TokenBucket | None
    ) -> None:
        self._interface = interface
        self._sender = sender
        self.bucket = bucket
        self._next = first_sequence
        self._waiting: deque[NDArray[np.uint8]] = deque()
        self._in_flight: dict[int, _PartFlight] = {}
        self.handed = 0
        """Frames that were sent for the first time since `begin`."""
        self.handed_bytes = 0

    @property
    def next_sequence(self) -> int:
        """Return the sequence number of the frame that is queued next."""
        return (self._next + len(self._waiting)) % PACKET_NUMBERS

    @property
    def next_new(self) -> int:
        """Return the sequence number of the frame that is sent for the first time next."""
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
        """Drop what has never been sent."""
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
                flight = self._in_flight[sequence] = _PartFlight(self._waiting.popleft(), now_us)
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
        """Return when `transmit` has something to send at the latest."""
        due_us = self._sender.deadline_us
        if due_us is not None and due_us <= now_us and self.bucket is not None:
            return self.bucket.ready_us(MOST_FRAME_BYTES)
        return due_us


# ---- A gradient on its way: written into frames, and anew when only a part of what is left is sent ----


_SHRINK = 0.98


class GradientMessage:
    """The message of one round. Bytes are those of whole frames, headers and all."""

    def __init__(
        self, content: Content, route: Route, round_number: int, outgoing: StreamOutput, *, turn: float = 0.0
    ) -> None:
        """turn: from 0 to 1, how far into the content sending begins, if its codes are more than a packet's; what is
        before that comes last."""
        self._route = route
        self._round = round_number
        self._outgoing = outgoing
        fits_a_packet = code_bytes(len(content.codes), content.width_bits) <= PAYLOAD_BYTES
        first = 0 if fits_a_packet else int(turn * len(content.codes))
        self._rest = [content.after(first), content.before(first)] if first else [content]
        """What the frames from `_begun` on are written of."""
        self._begun = 0
        self._sent: list[Content] = []
        outgoing.begin()
        self._made = self._queue()
        self.total_bytes = self._planned(self._made)
        """Of the gradient as it was to be sent at first."""
        self.planned_bytes = self.total_bytes
        self.sum_bytes = 0 if content.indices is not None else dense_bytes(len(content.codes))
        """Of the sum that comes back, as far as that does not depend on how much is sent."""

    def _queue(self) -> list[Written]:
        made = [written(content, HEADER_BYTES) for content in self._rest]
        for each in made:
            self._outgoing.queue(part_frames(self._route, each, self._round, self._outgoing.next_sequence))
        self._outgoing.queue([end_frame(self._route, self._round, self._outgoing.next_sequence)])
        return made

    def _planned(self, made: list[Written]) -> int:
        return self._outgoing.handed_bytes + sum(wire_bytes(each, HEADER_BYTES) for each in made) + HEADER_BYTES

    def cut(self, target_bytes: float) -> bool:
        """Keep the largest values of what has not been handed to the network, so that no more than target_bytes are
        sent in all, as far as that is possible still.

        False: nothing was left to be cut.
        """
        handed = self._outgoing.handed - self._begun
        if handed > sum(map(len, self._made)) or target_bytes >= self.planned_bytes:
            return False
        left = []
        for content, made in zip(self._rest, self._made, strict=True):
            packets = min(handed, len(made))
            handed -= packets
            codes = int(made.ends[packets - 1]) if packets else 0
            self._sent.append(content.before(codes))
            left.append(content.after(codes))
        # What comes last lies before the rest.
        rest = left[0] if len(left) == 1 else left[1].with_more(left[0])
        self._outgoing.withdraw()
        self._rest = [fitting(rest, int(target_bytes) - self._outgoing.handed_bytes - HEADER_BYTES)]
        self._begun = self._outgoing.handed
        self._made = self._queue()
        self.planned_bytes = self._planned(self._made)
        return True

    def sent(self) -> Iterator[Content]:
        """Return the contents of the message as it was sent, once all of it was."""
        yield from self._sent
        yield from self._rest


def dense_bytes(values: int) -> int:
    """Return the bytes of so many values in 32 bits."""
    return 4 * values + HEADER_BYTES * (1 + -(-4 * values // PAYLOAD_BYTES))


def fitting(content: Content, budget_bytes: int) -> Content:
    """The largest values of a content that can be written in so many bytes, headers counted; perhaps none."""
    if wire_bytes(written(content, HEADER_BYTES), HEADER_BYTES) <= budget_bytes:
        return content
    count = _guess(content, budget_bytes)
    while count > 0:
        kept = content.chosen(top_k(content.codes, count))
        if wire_bytes(written(kept, HEADER_BYTES), HEADER_BYTES) <= budget_bytes:
            return kept
        count = min(count - 1, int(_SHRINK * count))
    return content.chosen(np.zeros(0, np.intp))


def _guess(content: Content, budget_bytes: int) -> int:
    """Return how many values the better of bitmap and coordinate form has room for, or somewhat more."""
    if not len(content.codes):
        return 0
    bits = 8 * budget_bytes * PAYLOAD_BYTES / (PAYLOAD_BYTES + HEADER_BYTES)
    positions = content.positions
    by_bitmap = (bits - float(positions[-1] - positions[0])) / content.width_bits
    by_coordinate = bits / (8 * INDEX_BYTES + content.width_bits)
    return min(len(content.codes), max(0, int(max(by_bitmap, by_coordinate)) + 1))


# ---- What comes from the other end: which parts are new, and when to acknowledge them ----


MOST_DOUBLINGS = 3
"""A random delay is at most eight times as long as the first."""


class StreamInput:
    """The receiver's side of a stream. An acknowledgement is due after every `every` packets, at a gap, at a copy,
    and at the end of a gradient.

    A receiver of a copy of a multicast packet has answered the first one, as all others have: in the same nanosecond
    where no link has jitter. A queue shorter than their answers then loses those of the same receivers each time, so
    copies are answered after a random delay, which doubles while nothing new comes (RFC 5740, 5.3).
    """

    def __init__(self, first_sequence: int, every: int, *, spread_us: int = 0, seed: int = 0) -> None:
        """spread_us: the delay's bound at the first copy; 0: copies are answered at once."""
        self._receiver = StreamReceiver(first_sequence)
        self._every = every
        self._spread_us = spread_us
        self._random = random.Random(seed)
        self._copies = 0
        """Answers to copies since the last new packet."""
        self._unacknowledged = 0
        self._due_us: int | None = None
        self._congested = False

    def accept(self, frames: Frames, now_us: int) -> Frames:
        """Return the frames that are new."""
        if not len(frames):
            return frames
        new = np.array(self._receiver.accept(frames["sequence"].tolist()), np.bool_)
        self._congested |= bool(met_congestion(frames, Flags.CONGESTION).any())
        self._unacknowledged += len(frames)
        if new.any():
            self._copies = 0
            told = is_end(frames).any() or not new.all() or self._receiver.acknowledgement[1] != 0
            if told or self._unacknowledged >= self._every:
                self._due_us = now_us
        elif self._due_us is None:
            bound_us = self._spread_us << min(self._copies, MOST_DOUBLINGS)
            self._due_us = now_us + self._random.randrange(bound_us + 1)
            self._copies += 1
        return only(frames, new)

    @property
    def due_us(self) -> int | None:
        """Return when an acknowledgement is due; None: there is nothing to acknowledge."""
        return self._due_us

    def acknowledgement(self) -> tuple[int, int, bool]:
        """Sequence, selective, and whether congestion was met since the last one; counts as told."""
        told = (*self._receiver.acknowledgement, self._congested)
        self._unacknowledged, self._due_us, self._congested = 0, None, False
        return told

    @property
    def next_missing(self) -> int:
        return self._receiver.acknowledgement[0]
