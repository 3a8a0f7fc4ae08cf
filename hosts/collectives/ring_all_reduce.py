"""Sums by ring all-reduce (Patarasuk and Yuan 2009): the workers alone, each sending to the next.

The round's fragments are dealt to as many segments as there are workers. In step k of the reduce-scatter, for k from
0 to n - 2, worker i sends segment i - k (modulo n) to worker i + 1, which adds its own gradient; after step n - 2
worker i has the global sum of segment i + 1. In the all-gather, n - 1 more steps, the sums go around in the same
direction. Steps are not barriers: a fragment is passed on as soon as it is there, whatever became of the others.

Partial sums are exact. One that leaves int32 travels as two packets, its lower and its upper 32 bits; the worker
that completes a sum brings it into the form of the ACKs of the parameter server
(gradbed.hosts.learning.fragments), fragment by fragment, so that both give the same result bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.addresses import ip_integer
from gradbed.formats.datagram import NOT_ECT
from gradbed.formats.ring import RING, RingFlags
from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.collectives.exchange import PacketExchange
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.learning.fragments import cut, join, restored, shifted
from gradbed.hosts.protocols.frames import Frames, mac_array, met_congestion, pack_lane_frames, parse_lane_frames
from gradbed.hosts.transport.statistics import EndpointStatistics
from gradbed.hosts.transport.stream_receiver import PACKET_NUMBERS, StreamReceiver
from gradbed.hosts.transport.stream_sender import StreamSender

# ---- One round, from one worker's side: no sockets, no time ----


_INT32 = np.iinfo(np.int32)
_LOW_BITS = np.int64(0xFFFF_FFFF)
Key = TypeVar("Key")


@dataclass(frozen=True)
class RingMessage:
    """The contents of one packet to the next worker."""

    round: int
    step: int
    fragment: int
    lanes: NDArray[np.int32]
    """Shape (lanes,)."""
    half: RingFlags | None = None
    """LOW or HIGH: half of a partial sum; None: all of it, or of a global sum."""
    shift: int = 0
    """Shift of a global sum."""


def segment_bounds(segment: int, fragments: int, workers: int) -> tuple[int, int]:
    """First fragment of a segment, and the one after its last; segments differ by one fragment at most."""
    return segment * fragments // workers, (segment + 1) * fragments // workers


def partial_messages(round_number: int, step: int, fragment: int, total: NDArray[np.int64]) -> list[RingMessage]:
    """A partial sum, exact: one message, or two halves."""
    if total.max(initial=0) <= _INT32.max and total.min(initial=0) >= _INT32.min:
        return [RingMessage(round_number, step, fragment, total.astype(np.int32))]
    return [
        RingMessage(round_number, step, fragment, part.astype(np.int32), flag)
        for part, flag in ((total, RingFlags.LOW), (total >> 32, RingFlags.HIGH))
    ]


def whole_sum(message: RingMessage, halves: dict[Key, RingMessage], key: Key) -> NDArray[np.int64] | None:
    """The partial sum that a message completes; None: half of it is missing, and the message is kept under `key`."""
    if message.half is None:
        return message.lanes.astype(np.int64)
    other = halves.setdefault(key, message)
    if other.half == message.half:
        return None
    del halves[key]
    low, high = (message, other) if message.half is RingFlags.LOW else (other, message)
    total: NDArray[np.int64] = (high.lanes.astype(np.int64) << 32) | (low.lanes.astype(np.int64) & _LOW_BITS)
    return total


class RingReduction:
    """Worker `index` of `workers` in one round; `gradient`: its fragments, shape (fragments, lanes)."""

    def __init__(self, round_number: int, index: int, workers: int, gradient: NDArray[np.int32]) -> None:
        self._round = round_number
        self._index = index
        self._workers = workers
        self._gradient = gradient
        self.sums: NDArray[np.int64] = np.zeros(gradient.shape, np.int64)
        """Global sums; whole once `finished`."""
        self.missing = len(gradient)
        """Fragments without a global sum."""
        self._awaited_steps = [0] * len(gradient)
        """By fragment: the step in which it comes next; -1: it does not."""
        for segment in range(workers):
            first, end = segment_bounds(segment, len(gradient), workers)
            self._awaited_steps[first:end] = [(index - 1 - segment) % workers] * (end - first)
        self._halves: dict[int, RingMessage] = {}
        """By fragment: half of a partial sum that waits for the other half."""

    @property
    def finished(self) -> bool:
        """Return whether all global sums are there."""
        return self.missing == 0

    def begin(self) -> list[RingMessage]:
        """The messages that depend on nobody else."""
        if self._workers == 1:
            self.sums[:] = self._gradient
            self.missing = 0
            return []
        first, end = segment_bounds(self._index, len(self._gradient), self._workers)
        return [RingMessage(self._round, 0, fragment, self._gradient[fragment]) for fragment in range(first, end)]

    def accept(self, message: RingMessage) -> list[RingMessage] | None:
        """Take in what the worker before sent; returns what to send on. None: nobody sends that now."""
        fragment = message.fragment
        if message.round != self._round or fragment >= len(self._gradient):
            return None
        if message.step != self._awaited_steps[fragment]:
            return None
        if message.step >= self._workers - 1:
            return self._gather(message)
        total = whole_sum(message, self._halves, fragment)
        return [] if total is None else self._reduce(message.step, fragment, total)

    def _reduce(self, step: int, fragment: int, total: NDArray[np.int64]) -> list[RingMessage]:
        total = total + self._gradient[fragment]
        if step < self._workers - 2:
            self._awaited_steps[fragment] = step + self._workers
            return partial_messages(self._round, step + 1, fragment, total)
        lanes, shifts = shifted(total[None])
        whole = RingMessage(self._round, step + 1, fragment, lanes[0], shift=int(shifts[0]))
        self._finish(whole)
        return [whole]

    def _gather(self, message: RingMessage) -> list[RingMessage]:
        self._finish(message)
        return [replace(message, step=message.step + 1)] if message.step < 2 * self._workers - 3 else []

    def _finish(self, whole: RingMessage) -> None:
        self.sums[whole.fragment] = restored(whole.lanes[None], np.array([whole.shift]))[0]
        self._awaited_steps[whole.fragment] = -1
        self.missing -= 1


# ---- A worker's end: packs, sends, receives, sorts and counts frames ----


@dataclass(frozen=True)
class RingReceived:
    """Frames of a batch."""

    data: Frames
    """What is wanted of them is from the worker before."""
    acknowledgements: Frames
    """Acknowledgements from the next worker."""


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
        """Return the frames of this job from the two neighbours to this worker."""
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


# ---- Messages to one worker and from one: numbered, acknowledged, and repeated until they have come ----


class RingStream:
    """The messages that a worker sends to its endpoint's next worker, and has from the one before."""

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
        """Take in acknowledgements; return whether they told anything new."""
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
    """Return the messages in frames with lanes."""
    lanes = frames["lanes"].astype(np.int32)
    names = ("round", "step", "fragment_number", "flags", "shift")
    for row, (round_number, step, fragment, flags, shift) in zip(
        lanes, zip(*(frames[name].tolist() for name in names), strict=True), strict=True
    ):
        half = next((flag for flag in (RingFlags.LOW, RingFlags.HIGH) if flags & flag), None)
        yield RingMessage(round_number, step, fragment, row, half, shift)


# ---- The exchange ----


class RingExchange(PacketExchange):
    """gradbed.hosts.collectives.exchange.Exchange on an open interface.

    The worker before may be a round ahead, since it needs nothing of this one to begin: what it sends early waits.
    """

    def __init__(self, job: CollectiveJob, index: int, interface: Interface, context: AgentContext) -> None:
        super().__init__(context, job.give_up_us)
        self._job = job
        self._index = index
        self._endpoint = RingEndpoint(job, index, interface)
        self._stream = RingStream(job, self._endpoint, job.sender_seed(index))
        self._early: list[RingMessage] = []
        self._next_round = 0
        self._reduction: RingReduction | None = None

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        reduction = RingReduction(round_number, self._index, len(self._job.workers), cut(values, self._job.lanes))
        self._reduction, self._next_round = reduction, round_number + 1
        self._stream.queue(reduction.begin())
        early, self._early = self._early, []
        for message in early:
            self._take(message)
        if not self._serve_until(lambda: reduction.finished):
            return None
        self._reduction = None
        return join(reduction.sums, len(values))

    def flush(self) -> None:
        self._serve_until(lambda: self._stream.sender.finished)

    def linger(self) -> None:
        while not self._context.stopped:
            self._take_in()
            self._context.wait(self._due_us())

    def _count(self) -> object | None:
        return self._endpoint.receive()

    def report(self) -> dict[str, Any]:
        return {
            **self._endpoint.report(),
            **self._stream.sender.statistics.to_json(),
            **self._stream.receiver.statistics.to_json(),
        }

    def _timeout_message(self) -> str:
        missing = 0 if self._reduction is None else self._reduction.missing
        return (
            f"no news on the ring {self._timeout_text} in round {self._next_round - 1} "
            f"({missing} of {self._job.fragments_per_round} fragments missing)"
        )

    def _due_us(self) -> int | None:
        return self._stream.sender.deadline_us

    def _take_in(self) -> bool:
        """Take in all that waits, and send what is due: the next worker may need it before this one needs anything
        more.
        """
        news = False
        while (received := self._endpoint.receive()) is not None:
            news |= self._stream.take_acknowledgements(received.acknowledgements, self._context.now_us())
            for message in self._stream.take_data(received.data):
                news = True
                self._take(message)
        self._stream.send_due(self._context.now_us())
        return news

    def _send_due(self) -> None:
        """Do nothing: it is sent already."""

    def _take(self, message: RingMessage) -> None:
        if message.round == self._next_round:
            self._early.append(message)
            return
        messages = None if self._reduction is None else self._reduction.accept(message)
        if messages is None:
            self._stream.receiver.statistics.rejected += 1
        else:
            self._stream.queue(messages)
