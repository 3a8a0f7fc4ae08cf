"""The time that a schedule takes on an idle network, by what its messages cost there."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from gradbed.hosts.systems.training.collectives.costs.network import Network
from gradbed.hosts.systems.training.collectives.progress import Progress, Send
from gradbed.hosts.systems.training.collectives.schedule import Schedule


@dataclass
class _Card:
    """A rank's: messages by peer, in turn. free_ns: of receiving."""

    waiting: dict[int, deque[tuple[Send, int]]] = field(default_factory=dict)
    turns: deque[int] = field(default_factory=deque)
    busy: bool = False
    receives_until_ns: float = 0.0


def schedule_ns(schedules: Sequence[Schedule], network: Network, *, element_bytes: int = 1, pieces: int = 1) -> float:
    """Until the last rank has its result. schedules: of all ranks, in order.

    A rank sends a piece of the next message to each of its peers in turn, as cards do with packets, and receives one
    piece after the other, as they come. Links between switches never wait: an idle network of full bisection. pieces:
    of each message; one is enough where no rank sends to, or receives from, several at once.
    """
    return _Run(schedules, network, element_bytes, pieces).ended_ns


class _Run:
    def __init__(self, schedules: Sequence[Schedule], network: Network, element_bytes: int, pieces: int) -> None:
        self.network, self.element_bytes, self.pieces = network, element_bytes, pieces
        self.ranks = [Progress(schedule) for schedule in schedules]
        self.cards = [_Card() for _ in schedules]
        self.ended_ns = 0.0
        self.events: list[tuple[float, int, str, int, Send | None, bool]] = []
        self.order = 0
        for rank in range(len(schedules)):
            self._begin(rank, 0.0)
        while self.events:
            now, _, kind, rank, send, last = heapq.heappop(self.events)
            if send is None:
                self._send(rank, now)
            elif kind == "come":
                self._receive(rank, send, last, now)
            else:
                self.ranks[send.peer].received(rank, send.turn)
                if self.ranks[send.peer].has_result:
                    self.ended_ns = now
                self.ranks[rank].sent(send.step)
                self._begin(send.peer, now)
                self._begin(rank, now)

    def _at(self, time_ns: float, kind: str, rank: int, send: Send | None = None, last: bool = False) -> None:
        self.order += 1
        heapq.heappush(self.events, (time_ns, self.order, kind, rank, send, last))

    def _size(self, send: Send) -> int:
        return (send.stop - send.start) * self.element_bytes

    def _begin(self, rank: int, now: float) -> None:
        card = self.cards[rank]
        for send in self.ranks[rank].ready():
            queue = card.waiting.setdefault(send.peer, deque())
            if not queue:
                card.turns.append(send.peer)
            queue.append((send, self.pieces))
        if card.turns and not card.busy:
            card.busy = True
            self._send(rank, now)

    def _send(self, rank: int, now: float) -> None:
        card = self.cards[rank]
        card.busy = bool(card.turns)
        if not card.busy:
            return
        peer = card.turns.popleft()
        queue = card.waiting[peer]
        send, left = queue.popleft()
        if left > 1:
            queue.appendleft((send, left - 1))
        if queue:
            card.turns.append(peer)
        sent = now + self.network.sending_ns(rank, peer, self._size(send)) / self.pieces
        self._at(sent, "free", rank)
        self._at(sent + self.network.latency_ns(rank, peer, self._size(send)), "come", rank, send, left == 1)

    def _receive(self, rank: int, send: Send, last: bool, now: float) -> None:
        card = self.cards[send.peer]
        taken = self.network.sending_ns(rank, send.peer, self._size(send)) / self.pieces
        card.receives_until_ns = max(now, card.receives_until_ns + taken)
        if last:
            self._at(card.receives_until_ns, "complete", rank, send)
