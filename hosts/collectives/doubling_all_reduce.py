"""Sums by recursive doubling: the workers alone, each with log2 n others in turn.

Fragment by fragment, in the steps of recursive_doubling.py: a fragment is sent on as soon as all that it waits for is
there. Partial sums are exact, and travel as those of a ring (ring_all_reduce.py). So does the sum in the last step,
which folded workers get; the others bring it into that form themselves, so that all have the same, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.ring import RingFlags
from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.collectives.exchange import PacketExchange
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.collectives.recursive_doubling import last_step, partners
from gradbed.hosts.collectives.ring_all_reduce import (
    RingEndpoint,
    RingMessage,
    RingStream,
    partial_messages,
    read_frames,
    whole_sum,
)
from gradbed.hosts.learning.fragments import cut, join, restored, shifted
from gradbed.hosts.transport.statistics import EndpointStatistics

# ---- One round, from one worker's side: no sockets, no time ----


Outgoing = list[tuple[int, RingMessage]]
"""Each with the worker it is for."""


class DoublingReduction:
    """Worker `index` of `workers` in one round; `gradient`: its fragments, shape (fragments, lanes)."""

    def __init__(self, round_number: int, index: int, workers: int, gradient: NDArray[np.int32]) -> None:
        self._round = round_number
        self._partners = partners(workers, index)
        self._last = last_step(workers)
        self._senders = {partner.step: partner.peer for partner in self._partners if partner.receives}
        self._totals = gradient.astype(np.int64)
        self._places = [0] * len(gradient)
        """By fragment: the partner that it waits for."""
        self.sums: NDArray[np.int64] = np.zeros(gradient.shape, np.int64)
        """Global sums; whole once `finished`."""
        self.missing = len(gradient)
        """Fragments without a global sum."""
        self._halves: dict[tuple[int, int], RingMessage] = {}
        """By fragment and step: half of a partial sum that waits for the other half."""
        self._come: dict[tuple[int, int], NDArray[np.int64]] = {}
        """By fragment and step: what has come, perhaps before the fragment waits for it."""
        self._seen: set[tuple[int, int, RingFlags | None]] = set()

    @property
    def finished(self) -> bool:
        """Return whether all global sums are there."""
        return self.missing == 0

    def begin(self) -> Outgoing:
        """The messages that depend on nobody else."""
        return [each for fragment in range(len(self._totals)) for each in self._begin_step(fragment)]

    def accept(self, peer: int, message: RingMessage) -> Outgoing | None:
        """Take in what a worker sent; returns what to send on. None: it does not send that in this round, or has."""
        fragment, step = message.fragment, message.step
        if message.round != self._round or fragment >= len(self._totals) or self._senders.get(step) != peer:
            return None
        if (fragment, step, message.half) in self._seen:
            return None
        self._seen.add((fragment, step, message.half))
        if step == self._last:
            self._finish(fragment, message.lanes, message.shift)
            return []
        total = whole_sum(message, self._halves, (fragment, step))
        if total is None:
            return []
        self._come[fragment, step] = total
        return self._go_on(fragment)

    def _go_on(self, fragment: int) -> Outgoing:
        """Add what the fragment waits for, if it is there, and begin the next steps."""
        found: Outgoing = []
        while self._places[fragment] < len(self._partners):
            step = self._partners[self._places[fragment]].step
            total = self._come.pop((fragment, step), None)
            if total is None:
                break
            self._totals[fragment] += total
            self._places[fragment] += 1
            found += self._begin_step(fragment)
        return found

    def _begin_step(self, fragment: int) -> Outgoing:
        """Send what is due, up to the next step in which the fragment waits."""
        found: Outgoing = []
        while self._places[fragment] < len(self._partners):
            partner = self._partners[self._places[fragment]]
            if partner.sends and partner.step == self._last:
                lanes, shifts = shifted(self._totals[fragment][None])
                found.append(
                    (partner.peer, RingMessage(self._round, self._last, fragment, lanes[0], shift=int(shifts[0])))
                )
            elif partner.sends:
                messages = partial_messages(self._round, partner.step, fragment, self._totals[fragment])
                found += [(partner.peer, message) for message in messages]
            if partner.receives:
                return found
            self._places[fragment] += 1
        if self._last not in self._senders:
            lanes, shifts = shifted(self._totals[fragment][None])
            self._finish(fragment, lanes[0], int(shifts[0]))
        return found

    def _finish(self, fragment: int, lanes: NDArray[np.int32], shift: int) -> None:
        self.sums[fragment] = restored(lanes[None], np.array([shift]))[0]
        self.missing -= 1


# ---- The exchange ----


class DoublingExchange(PacketExchange):
    """gradbed.hosts.collectives.exchange.Exchange on an open interface.

    A worker may be a round ahead of those that wait for others: what it sends early waits.
    """

    def __init__(self, job: CollectiveJob, index: int, interface: Interface, context: AgentContext) -> None:
        super().__init__(context, job.give_up_us)
        self._job = job
        self._index = index
        self._interface = interface
        self._statistics = EndpointStatistics()
        self._endpoints: dict[int, RingEndpoint] = {}  # by the worker at the other end
        self._streams: dict[int, RingStream] = {}
        for peer in sorted({partner.peer for partner in partners(len(job.workers), index)}):
            endpoint = RingEndpoint(job, index, interface, before=peer, after=peer, statistics=self._statistics)
            self._endpoints[peer] = endpoint
            self._streams[peer] = RingStream(job, endpoint, job.sender_seed(index + len(job.workers) * (1 + peer)))
        self._early: list[tuple[int, RingMessage]] = []
        self._next_round = 0
        self._reduction: DoublingReduction | None = None

    def all_reduce(self, round_number: int, values: NDArray[np.int32]) -> NDArray[np.int64] | None:
        reduction = DoublingReduction(round_number, self._index, len(self._job.workers), cut(values, self._job.lanes))
        self._reduction, self._next_round = reduction, round_number + 1
        self._queue(reduction.begin())
        early, self._early = self._early, []
        for peer, message in early:
            self._take(peer, message)
        if not self._serve_until(lambda: reduction.finished):
            return None
        self._reduction = None
        return join(reduction.sums, len(values))

    def flush(self) -> None:
        self._serve_until(lambda: all(stream.sender.finished for stream in self._streams.values()))

    def linger(self) -> None:
        while not self._context.stopped:
            self._take_in()
            self._context.wait(self._due_us())

    def _count(self) -> object | None:
        return read_frames(self._interface, self._job, self._statistics)

    def report(self) -> dict[str, Any]:
        self._statistics.socket_drops = self._interface.drops()
        counted: Counter[str] = Counter()
        for stream in self._streams.values():
            for part in (stream.sender.statistics.to_json(), stream.receiver.statistics.to_json()):
                counted.update({name: count for name, count in part.items() if isinstance(count, int)})
        return {**self._statistics.to_json(), **counted}

    def _timeout_message(self) -> str:
        missing = 0 if self._reduction is None else self._reduction.missing
        return (
            f"no news from other workers {self._timeout_text} in round {self._next_round - 1} "
            f"({missing} of {self._job.fragments_per_round} fragments missing)"
        )

    def _due_us(self) -> int | None:
        return min(
            (due for stream in self._streams.values() if (due := stream.sender.deadline_us) is not None), default=None
        )

    def _take_in(self) -> bool:
        """Take in all that waits, and send what is due: another worker may need it before this one needs anything
        more.
        """
        news = False
        while (received := read_frames(self._interface, self._job, self._statistics)) is not None:
            self._statistics.misdirected += len(received.data) + len(received.acknowledgements)
            for peer, endpoint in self._endpoints.items():
                wanted = endpoint.wanted(received)
                self._statistics.misdirected -= len(wanted.data) + len(wanted.acknowledgements)
                stream = self._streams[peer]
                if len(wanted.acknowledgements):
                    news |= stream.take_acknowledgements(wanted.acknowledgements, self._context.now_us())
                for message in stream.take_data(wanted.data):
                    news = True
                    self._take(peer, message)
        for stream in self._streams.values():
            stream.send_due(self._context.now_us())
        return news

    def _send_due(self) -> None:
        """Do nothing: it is sent already."""

    def _take(self, peer: int, message: RingMessage) -> None:
        if message.round == self._next_round:
            self._early.append((peer, message))
            return
        outgoing = None if self._reduction is None else self._reduction.accept(peer, message)
        if outgoing is None:
            self._streams[peer].receiver.statistics.rejected += 1
        else:
            self._queue(outgoing)

    def _queue(self, outgoing: Outgoing) -> None:
        for peer, stream in self._streams.items():
            if messages := [message for to, message in outgoing if to == peer]:
                stream.queue(messages)
