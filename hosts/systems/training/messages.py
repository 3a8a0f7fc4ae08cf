"""A rank's messages: collectives on its NIC or through switches, and the sends and receives of its trace.

Each two ranks have a queue pair for collectives and one for the sends of their traces.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.agents.queue_pairs import (
    TURN_BITS,
    CompletionKind,
    FragmentStreamStatistics,
    NicCollective,
    QueuePairOptions,
    QueuePairs,
)
from gradbed.hosts.systems.training.config import JobStream
from gradbed.hosts.systems.training.plans import Plan
from gradbed.hosts.systems.training.traces.graph import TraceNode

# ---- Streams: collectives that switches carry out, in the order of the trace at every rank ----


OnResult = Callable[[NDArray[np.int32] | None], None]
Vector = tuple[int, NDArray[np.int32] | None, OnResult]
"""Size in bytes, contents, and what is to be told."""


class InNetworkStream:
    """The stream of one group at one rank."""

    def __init__(self, pairs: QueuePairs, stream: JobStream, rank: int) -> None:
        self._pairs = pairs
        self._number = stream.number
        self._is_source = stream.ends[rank].role == "source"
        self._takes = stream.ends[rank].role == "sink" or stream.ends[rank].reply_payload
        self._next = 0
        self._waiting: dict[int, Vector] = {}
        self._under_way: dict[int, tuple[NDArray[np.int32] | None, OnResult]] = {}
        pairs.open_stream(stream.number, stream.ends[rank])

    def begin(self, instance: int, vector: Vector) -> None:
        """The instance-th of the group's collectives; it waits for those before it, as fragments are counted
        through."""
        self._waiting[instance] = vector
        while self._next in self._waiting:
            size_bytes, values, on_end = self._waiting.pop(self._next)
            self._send(self._next, size_bytes, values, on_end)
            self._next += 1

    def _send(self, instance: int, size_bytes: int, values: NDArray[np.int32] | None, on_end: OnResult) -> None:
        target = None if values is None or not self._takes else np.empty(size_bytes // 4, np.int32)
        source = values if self._is_source else None
        self._under_way[instance] = (values if target is None else target, on_end)
        # A vector has whole integers.
        self._pairs.stream(self._number, instance, -(-size_bytes // 4) * 4, source, target)

    def statistics(self) -> FragmentStreamStatistics:
        """Return the statistics of this end."""
        return self._pairs.stream_statistics(self._number)

    def ended(self, instance: int) -> None:
        result, on_end = self._under_way.pop(instance)
        on_end(result)


# ---- Queue pairs ----


PLACE_BITS = TURN_BITS
"""Of a tag: which message it is of those between two ranks with the same subject."""
MOST_PLACES = 1 << PLACE_BITS
SUBJECT_BITS = 64 - PLACE_BITS


class Lane(IntEnum):
    """Messages of one lane between two ranks arrive in the order in which they were sent."""

    COLLECTIVE = 0
    POINT_TO_POINT = 1


class Messages:
    """The queue pairs of a rank."""

    def __init__(
        self,
        pairs: QueuePairs,
        ranks: tuple[AgentAddress, ...],
        rank: int,
        options: QueuePairOptions,
        first_number: int,
    ) -> None:
        """first_number: of the queue pairs; the same for all ranks of a job, and at least 2 * ranks from that of any
        other job of these hosts."""
        self._pairs = pairs
        self._ranks = ranks
        self._rank = rank
        self._options = options
        self._first = first_number
        self._sent: dict[int, deque[Callable[[], None]]] = {}
        self._listening: dict[int, Callable[[], None]] = {}
        self._early: Counter[int] = Counter()
        self._streams: dict[int, InNetworkStream] = {}
        self._collectives: dict[int, Callable[[], None]] = {}
        self._sent_messages = 0
        self._sent_bytes = 0

    def connect(self, peers: Iterable[tuple[int, Lane]]) -> None:
        """Connect to a peer, before the first message, at both ends."""
        for peer, lane in sorted(set(peers)):
            number = self.number(peer, lane)
            if number not in self._sent:
                peer_number, is_for = self.number(self._rank, lane), lane is Lane.COLLECTIVE
                self._pairs.connect(number, self._ranks[peer], peer_number, self._options, for_collectives=is_for)
                self._sent[number] = deque()

    def number(self, rank: int, lane: Lane) -> int:
        """Return the number of the queue pair to that rank."""
        return self._first + 2 * rank + lane

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the numbers of all its queue pairs."""
        return tuple(self._sent)

    def send(self, peer: int, subject: int, place: int, size_bytes: int, on_sent: Callable[[], None]) -> None:
        """Send message `place` of a subject (SUBJECT_BITS) to a peer, a length alone.

        Args:
            peer: The receiver's rank.
            subject: The subject of both ranks' messages.
            place: Number of the message among those of the subject.
            size_bytes: Length of the message.
            on_sent: Called once it was acknowledged.
        """
        number = self.number(peer, Lane.POINT_TO_POINT)
        self._sent[number].append(on_sent)
        self._sent_messages += 1
        self._sent_bytes += size_bytes
        self._pairs.send(number, subject << PLACE_BITS | place, size_bytes)

    def listen(self, subject: int, on_message: Callable[[], None]) -> None:
        """on_message: called for each message of the subject, at once for those that have come already."""
        self._listening[subject] = on_message
        for _ in range(self._early.pop(subject, 0)):
            on_message()

    def begin_collective(self, subject: int, collective: NicCollective, on_result: Callable[[], None]) -> None:
        """on_result: called once it has its result, at once if it has it already."""
        tag = subject << PLACE_BITS
        if self._pairs.begin_collective(tag, collective):
            on_result()
        else:
            self._collectives[tag] = on_result

    def add_stream(self, stream: JobStream) -> InNetworkStream:
        """Open this rank's end of a stream."""
        made = self._streams[stream.number] = InNetworkStream(self._pairs, stream, self._rank)
        return made

    def counts(self) -> dict[str, int]:
        """Return messages and message_bytes sent so far, and unclaimed messages: received, but not waited for."""
        of_collectives = self._pairs.collective_counts()
        return {
            "messages": self._sent_messages + of_collectives.messages,
            "message_bytes": self._sent_bytes + of_collectives.bytes,
            "unclaimed": sum(self._early.values()) + of_collectives.early,
        }

    def take(self) -> None:
        """Call whoever waits for what has come about. UserError if a peer does not answer."""
        for completion in self._pairs.completions():
            peer = (completion.pair - self._first) // 2
            if completion.kind is CompletionKind.RECEIVED:
                subject = completion.tag >> PLACE_BITS
                on_message = self._listening.get(subject)
                if on_message is None:
                    self._early[subject] += 1
                else:
                    on_message()
            elif completion.kind is CompletionKind.SENT:
                self._sent[completion.pair].popleft()()
            elif completion.kind is CompletionKind.COLLECTIVE:
                self._collectives.pop(completion.tag)()
            elif completion.kind is CompletionKind.COLLECTIVE_FAILED:
                raise UserError(
                    f"rank {peer} sent {completion.size_bytes} bytes for a collective in which rank {self._rank} "
                    "does not expect them: the ranks' traces do not agree on it"
                )
            elif completion.kind is CompletionKind.STREAMED:
                self._streams[completion.pair].ended(completion.tag)
            elif completion.kind is CompletionKind.STREAM_FAILED:
                raise UserError("a collective that switches carry out does not go on any more")
            else:
                raise UserError(f"rank {peer} on {self._ranks[peer].name} does not answer any more")


# ---- Sends and receives of a trace: those of two ranks match by their tag, in order ----


_TAG_BITS = 26

OnEnd = Callable[[], None]


def _subject(sender: int, tag: int) -> int:
    return sender << _TAG_BITS | tag & (1 << _TAG_BITS) - 1


class Mailbox:
    """The messages that one rank sends this one under a tag: what has come, or who waits for it."""

    def __init__(self) -> None:
        self._come = 0
        self._waiting: deque[OnEnd] = deque()

    def received(self) -> None:
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._come += 1

    def expect(self, on_end: OnEnd) -> None:
        """on_end: called once the next one is there."""
        if self._come:
            self._come -= 1
            on_end()
        else:
            self._waiting.append(on_end)


class PointToPoint:
    """The sends and receives of one rank."""

    def __init__(self, rank: int, messages: Messages) -> None:
        self._rank = rank
        self._messages = messages
        self._counts: defaultdict[int, int] = defaultdict(int)
        self._mailboxes: dict[int, Mailbox] = {}

    def send(self, node: TraceNode, on_end: OnEnd) -> None:
        assert node.peer is not None
        subject = _subject(self._rank, node.tag)
        place = self._counts[subject] % MOST_PLACES
        self._counts[subject] += 1
        self._messages.send(node.peer, subject, place, node.size_bytes, on_end)

    def receive(self, node: TraceNode, on_end: OnEnd) -> None:
        assert node.peer is not None
        subject = _subject(node.peer, node.tag)
        mailbox = self._mailboxes.get(subject)
        if mailbox is None:
            mailbox = self._mailboxes[subject] = Mailbox()
            self._messages.listen(subject, mailbox.received)
        mailbox.expect(on_end)


# ---- One collective, which the NIC carries out ----


def begin_collective(
    plan: Plan, subject: int, messages: Messages, values: NDArray[np.int32] | None, on_end: OnResult
) -> None:
    """subject: of its messages, the same at all ranks. values: the rank's input; None: only lengths travel. on_end:
    is given the result, if there are values, once all that changes it is complete. Peers may not have all yet that
    this rank sends."""
    schedule = plan.schedule
    steps = schedule.steps
    starts, stops = steps.ranges()
    buffer = offset_bytes = source_bytes = None
    if values is not None:
        buffer = np.zeros(schedule.elements, np.int32)
        buffer[schedule.input_start : schedule.input_stop] = values
        offset_bytes, source_bytes = (
            (plan.element_bytes * elements).astype(np.uint64) for elements in (starts, steps.sources())
        )
    structure = steps.structure
    pairs = [
        messages.number(plan.group[peer], Lane.COLLECTIVE) for peer in map(steps.peer, structure.first_of_each_peer)
    ]
    size_bytes = (plan.element_bytes * (stops - starts)).astype(np.uint64)
    collective = NicCollective(
        structure.on_nic, np.array(pairs, np.uint32), size_bytes, buffer, offset_bytes, source_bytes
    )
    result = None if buffer is None else buffer[schedule.output_start : schedule.output_stop]
    messages.begin_collective(subject, collective, lambda: on_end(result))
