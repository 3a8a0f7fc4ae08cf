"""A rank: works through its graph, computes on its processor and exchanges messages with the other ranks."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.queue_pairs import QueuePairs
from gradbed.hosts.systems.training.config import Delay, TrainingJob
from gradbed.hosts.systems.training.messages import InNetworkStream, Lane, Messages, PointToPoint, begin_collective
from gradbed.hosts.systems.training.plans import INSTANCE_BITS, VALUE_BYTES, Plans, contents, digest, group_numbers
from gradbed.hosts.systems.training.traces.graph import Kind, RankGraph, TraceNode

# ---- The processor: accelerator, the accelerator's memory and the host's processor, side by side ----


class Unit(Enum):
    """A unit that does one node after the other."""

    ACCELERATOR = 0
    MEMORY = 1
    CPU = 2


class Task(NamedTuple):
    """A node that waits for its unit."""

    place: int
    """Place of the node in its graph."""
    duration_ns: int


@dataclass
class Queue:
    """The queue of a unit, in the order in which nodes became ready."""

    waiting: deque[Task] = field(default_factory=deque)
    running: Task | None = None
    ends_ns: int = 0
    busy_ns: int = 0


class Processor:
    """Everything takes `slowdown` times as long as the trace says."""

    def __init__(self, slowdown: float = 1.0) -> None:
        self._slowdown = slowdown
        self._queues = {unit: Queue() for unit in Unit}

    @property
    def compute_busy_ns(self) -> int:
        """Return how long the accelerator has computed so far, what it does now included to its end."""
        return self._queues[Unit.ACCELERATOR].busy_ns

    @property
    def next_ns(self) -> int | None:
        """Return when something ends next; None: nothing runs."""
        found = None
        for queue in self._queues.values():
            if queue.running is not None and (found is None or queue.ends_ns < found):
                found = queue.ends_ns
        return found

    def begin(self, place: int, node: TraceNode, now_ns: int) -> None:
        """Now, or once what came before has ended."""
        unit = Unit.MEMORY if node.kind is Kind.MEMORY else Unit.CPU if node.on_cpu else Unit.ACCELERATOR
        queue = self._queues[unit]
        queue.waiting.append(Task(place, round(node.duration_ns * self._slowdown)))
        if queue.running is None:
            self._start(queue, now_ns)

    def ended(self, now_ns: int) -> Iterator[tuple[int, int]]:
        """Yield what has ended by now: its place, and when."""
        for queue in self._queues.values():
            while queue.running is not None and queue.ends_ns <= now_ns:
                place, ends_ns = queue.running.place, queue.ends_ns
                queue.running = None
                self._start(queue, ends_ns)
                yield place, ends_ns

    def _start(self, queue: Queue, now_ns: int) -> None:
        if queue.waiting:
            queue.running = queue.waiting.popleft()
            queue.ends_ns = now_ns + queue.running.duration_ns
            queue.busy_ns += queue.running.duration_ns


# ---- Execution: which nodes of the graph may begin ----


class Execution:
    """A pass through a graph. Nodes are told by their places in it."""

    def __init__(self, graph: RankGraph) -> None:
        self._graph = graph
        self._waits_for: list[int] = graph.waits_for().tolist()
        self._left = len(graph)
        self._ready = [place for place, count in enumerate(self._waits_for) if not count]

    @property
    def done(self) -> bool:
        return self._left == 0

    def take(self) -> int | None:
        """The first node that may begin and was not taken yet; None: there is none now."""
        return heapq.heappop(self._ready) if self._ready else None

    def complete(self, place: int) -> None:
        """A node that was taken has ended."""
        self._left -= 1
        for follower in self._graph.followers(place).tolist():
            self._waits_for[follower] -= 1
            if not self._waits_for[follower]:
                heapq.heappush(self._ready, follower)


# ---- The rank ----


@dataclass
class Report:
    """The report of a rank on one execution of its graph, in nanoseconds of the network's clock."""

    begin_ns: int
    end_ns: int = 0
    compute_ns: int = 0
    """Time in which the accelerator computed."""
    nodes: int = 0
    collectives: list[tuple[int, int, int, int, str | None]] = field(default_factory=list)
    """Of each collective the node's place, its place among those of its group in all executions, begin, end, and a
    digest of the result, if there are contents."""
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    """Place, begin and end of each node."""


class Rank:
    """Rank `number` of a job, on an agent's context."""

    def __init__(
        self,
        context: AgentContext,
        job: TrainingJob,
        number: int,
        graph: RankGraph,
        pairs: QueuePairs,
        plans: Plans,
    ) -> None:
        self._context = context
        self._job = job
        self._number = number
        self._graph = graph
        self._plans = plans
        self._delay = job.delays.get(number, Delay())
        self._processor = Processor(self._delay.slowdown)
        self._pairs = pairs
        self._messages = Messages(pairs, job.ranks, number, job.queue_pairs, job.first_pair)
        self._point_to_point = PointToPoint(number, self._messages)
        self._nodes: list[TraceNode] = list(graph)
        collectives = [node for node in self._nodes if node.kind is Kind.COLLECTIVE]
        self._group_numbers = group_numbers({plans.group(node) for node in collectives}, number)
        self._turns, self._per_execution = _turns(self._nodes, plans, lambda node: True)
        self._streams = {
            (stream.operation, stream.group): self._messages.add_stream(stream)
            for stream in job.streams
            if number in stream.group
        }
        self._messages.connect(self._peers())
        self._streamed, self._streamed_per_execution = _turns(
            self._nodes, plans, lambda node: self._stream_of(node) is not None
        )
        self._executions = 0
        self._execution = Execution(graph)
        self._begun_ns: dict[int, int] = {}
        self._report = Report(0)
        self._tells_spans = number in job.timeline

    def _peers(self) -> set[tuple[int, Lane]]:
        found = set()
        for node in self._nodes:
            if node.kind is Kind.COLLECTIVE:
                if self._stream_of(node) is not None:
                    continue
                plan = self._plans.of(node, self._number)
                found |= {(plan.group[peer], Lane.COLLECTIVE) for peer in plan.peers}
            elif node.peer is not None:
                found.add((node.peer, Lane.POINT_TO_POINT))
        return found - {(self._number, lane) for lane in Lane}

    def _stream_of(self, node: TraceNode) -> InNetworkStream | None:
        """Return the stream where switches carry it out."""
        if node.operation is None or node.size_bytes < self._job.streams_from_bytes:
            return None
        return self._streams.get((node.operation, self._plans.group(node)))

    # ---- One execution ----

    def execute(self) -> Report | None:
        """Work through the graph once. None if the agent is to stop."""
        context, processor = self._context, self._processor
        if self._executions == 0 and self._delay.begins_after_ns:
            self._sleep(context.now_ns() + self._delay.begins_after_ns)
        busy_ns = processor.compute_busy_ns
        self._execution = execution = Execution(self._graph)
        self._report = report = Report(context.now_ns())
        self._begin_ready()
        while not execution.done:
            if context.stopped:
                return None
            next_ns = processor.next_ns
            context.wait(until_ns=next_ns)
            self._messages.take()
            if next_ns is not None:
                for place, end_ns in processor.ended(context.now_ns()):
                    self._end(place, end_ns)
            self._begin_ready()
        self._executions += 1
        report.end_ns = context.now_ns()
        report.compute_ns = processor.compute_busy_ns - busy_ns
        return report

    def serve(self) -> None:
        """Serve until stop; the NIC acknowledges by itself."""
        while not self._context.stopped:
            self._messages.take()
            self._context.wait()

    def statistics(self) -> dict[str, Any]:
        """Return what the rank sent, and what its NIC did for that, over all its queue pairs."""
        total: Counter[str] = Counter()
        for number in self._messages.numbers:
            of_pair = vars(self._pairs.statistics(number))
            total.update({name: of_pair[name] for name in _COUNTED})
        for stream in self._streams.values():
            of_stream = stream.statistics()
            total.update(
                sent_packets=of_stream.sent_fragments,
                retransmissions=of_stream.retransmissions,
                timeouts=of_stream.timeouts,
                received_packets=of_stream.received_fragments,
                duplicates=of_stream.duplicates,
            )
        return {
            **self._messages.counts(),
            **{name: total[name] for name in _COUNTED},
        }

    def _sleep(self, until_ns: int) -> None:
        while not self._context.stopped and self._context.now_ns() < until_ns:
            self._messages.take()
            self._context.wait(until_ns=until_ns)

    def _begin_ready(self) -> None:
        while (place := self._execution.take()) is not None:
            node = self._nodes[place]
            now_ns = self._begun_ns[place] = self._context.now_ns()
            if node.kind is Kind.COLLECTIVE:
                self._begin_collective(place, node)
            elif node.kind is Kind.SEND:
                self._point_to_point.send(node, partial(self._end, place))
            elif node.kind is Kind.RECEIVE:
                self._point_to_point.receive(node, partial(self._end, place))
            elif node.duration_ns:
                self._processor.begin(place, node, now_ns)
            else:
                self._end(place)

    def _begin_collective(self, place: int, node: TraceNode) -> None:
        group = self._plans.group(node)
        instance = self._executions * self._per_execution[group] + self._turns[place]
        subject = self._group_numbers[group] << INSTANCE_BITS | instance & (1 << INSTANCE_BITS) - 1
        on_end = partial(self._end_collective, place, instance)
        stream = self._stream_of(node)
        if stream is not None:
            values = contents(self._number, instance, node.size_bytes // VALUE_BYTES) if self._job.contents else None
            turn = self._executions * self._streamed_per_execution[group] + self._streamed[place]
            stream.begin(turn, (node.size_bytes, values, on_end))
            return
        plan = self._plans.of(node, self._number)
        values = contents(self._number, instance, plan.input_values) if self._job.contents else None
        begin_collective(plan, subject, self._messages, values, on_end)

    def _end_collective(self, place: int, instance: int, result: NDArray[np.int32] | None) -> None:
        told = None if result is None else digest(result)
        self._report.collectives.append((place, instance, self._begun_ns[place], self._context.now_ns(), told))
        self._end(place)

    def _end(self, place: int, end_ns: int | None = None) -> None:
        begin_ns = self._begun_ns.pop(place)
        self._report.nodes += 1
        if self._tells_spans:
            self._report.spans.append((place, begin_ns, self._context.now_ns() if end_ns is None else end_ns))
        self._execution.complete(place)


_COUNTED = (
    *("sent_packets", "retransmissions", "timeouts", "received_packets", "duplicates", "out_of_order", "marked"),
    *("acknowledgements_sent", "negatives_sent", "cnps_sent", "sent_bytes", "received_bytes"),
)
"""Of gradbed.hosts.agents.queue_pairs.QueuePairStatistics."""


def _turns(
    nodes: list[TraceNode], plans: Plans, counts_if: Callable[[TraceNode], bool]
) -> tuple[Mapping[int, int], Mapping[tuple[int, ...], int]]:
    """Return, for each collective by its place, which of those of its group it is; and how many each group has.

    The k-th of a group is the same collective at all of its ranks, whichever begins it first.
    """
    turns: dict[int, int] = {}
    counts: Counter[tuple[int, ...]] = Counter()
    for place, node in enumerate(nodes):
        if node.kind is Kind.COLLECTIVE and counts_if(node):
            group = plans.group(node)
            turns[place] = counts[group]
            counts[group] += 1
    return turns, counts
