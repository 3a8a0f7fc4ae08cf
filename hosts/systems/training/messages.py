"""A rank's messages: each two ranks have a queue pair for collectives and one for the sends of their traces."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from enum import IntEnum

from gradbed.common.errors import UserError
from gradbed.hosts.agents.addresses import AgentAddress
from gradbed.hosts.agents.card_collectives import TURN_BITS, CardCollective
from gradbed.hosts.agents.queue_pairs import CompletionKind, QueuePairOptions, QueuePairs
from gradbed.hosts.systems.training.description import JobStream
from gradbed.hosts.systems.training.stream_run import Stream

PLACE_BITS = TURN_BITS
"""Of a tag: which message it is of those between two ranks with the same subject."""
MOST_PLACES = 1 << PLACE_BITS
SUBJECT_BITS = 64 - PLACE_BITS


class Lane(IntEnum):
    """Messages of one lane between two ranks arrive in the order in which they were sent."""

    COLLECTIVE = 0
    POINT_TO_POINT = 1


class Messages:
    """All queue pairs of a rank."""

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
        self._streams: dict[int, Stream] = {}
        self._collectives: dict[int, Callable[[], None]] = {}
        self._sent_messages = 0
        self._sent_bytes = 0

    def connect(self, peers: Iterable[tuple[int, Lane]]) -> None:
        """Before the first message, at both ends."""
        for peer, lane in sorted(set(peers)):
            number = self.number(peer, lane)
            if number not in self._sent:
                peer_number, is_for = self.number(self._rank, lane), lane is Lane.COLLECTIVE
                self._pairs.connect(number, self._ranks[peer], peer_number, self._options, for_collectives=is_for)
                self._sent[number] = deque()

    def number(self, rank: int, lane: Lane) -> int:
        """Of the queue pair to that rank."""
        return self._first + 2 * rank + lane

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of all its queue pairs."""
        return tuple(self._sent)

    def send(self, peer: int, subject: int, place: int, size_bytes: int, on_sent: Callable[[], None]) -> None:
        """Of a subject (SUBJECT_BITS), message `place` to this peer, a length alone. on_sent: called once it was
        acknowledged."""
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

    def begin_collective(self, subject: int, collective: CardCollective, on_result: Callable[[], None]) -> None:
        """on_result: called once it has its result, at once if it has it already."""
        tag = subject << PLACE_BITS
        if self._pairs.begin_collective(tag, collective):
            on_result()
        else:
            self._collectives[tag] = on_result

    def add_stream(self, stream: JobStream) -> Stream:
        """This rank's end of it."""
        made = self._streams[stream.number] = Stream(self._pairs, stream, self._rank)
        return made

    def counts(self) -> dict[str, int]:
        """messages and message_bytes: sent so far. unclaimed: messages that have come and that nobody has waited
        for."""
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
