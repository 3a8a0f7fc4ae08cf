"""The source's scheduler: clusters grown from random demands, rated by hops (S3 to S6).

S3 begins with a random edge of the dependency graph and does not say how it is drawn. Here each open demand (worker
and sample) is as probable, however many holders the sample has.

A demand that no cluster takes is sent by its nearest holder, and one that several workers have is met for each of
them. The source's loss looks at the hops of the coded packet alone, so that loans seem free; `count_loans` adds
theirs.

Three numbers are bounded, which the source leaves open: samples of a worker that are tried, loans of a packet, and
clusters of greater potential that are expanded, whose queue grows exponentially (S4.5 to S4.7).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain, count, islice
from typing import ClassVar

from gradbed.controller.systems.shuffle.scheduling.instance import Cluster, DependencyGraph, ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, Loan, SendQueues, Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, members


@dataclass(frozen=True)
class Limits:
    """Bounds of the search (ours)."""

    samples: int = 8
    """Samples of a worker that may join, tried at each step."""
    loans: int = 1
    """Loans of a packet."""
    expansions: int = 8
    """Clusters of greater potential that are grown beside the first one (the queue of S4.5)."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A feasible solution of S4: a cluster, its sender, and what both borrow."""

    cluster: Cluster
    sender: int
    loans: tuple[Loan, ...]
    loss: float
    """Hops for each sample (the loss function of S4)."""


@dataclass(frozen=True)
class HopAware:
    """The source's scheduler (S3 to S6)."""

    needs_master: ClassVar[bool] = False
    timing: Timing = field(default_factory=Timing)
    limits: Limits = field(default_factory=Limits)
    count_loans: bool = False
    """Whether the loss includes the hops of loans, which the source's leaves out."""

    @property
    def name(self) -> str:
        return "hop-aware-corrected" if self.count_loans else "hop-aware"

    def schedule(self, instance: ShuffleInstance, trees: Trees, seed: int) -> Schedule:
        draw = random.Random(seed)
        graph = DependencyGraph(instance)
        queues = SendQueues(instance, trees, self.timing)
        growth = Growth(graph, trees, queues, self.limits, self.count_loans, draw)
        for worker, sample in draw.sample(instance.demands, len(instance.demands)):
            if not graph.is_open(worker, sample):
                continue
            best = growth.expanded(graph.cluster(worker, sample))
            hops, tree = trees.best(best.sender, best.cluster.workers)
            queues.add(CodedPacket(best.sender, best.cluster.receivers, tree, hops, best.loans))
            for receiver in best.cluster.receivers:
                graph.close(*receiver)
        return queues.schedule(self.name)


@dataclass(frozen=True)
class Growth:
    """Grow clusters on the demands that are still open (S4)."""

    graph: DependencyGraph
    trees: Trees
    queues: SendQueues
    limits: Limits
    count_loans: bool
    draw: random.Random
    _loans: dict[tuple[int, int], Loan | None] = field(default_factory=dict)

    def expanded(self, cluster: Cluster) -> Solution:
        """Return the solution of least loss among the local optima that can be reached from a cluster (S4.1 to
        S4.7)."""
        start = self.solution(cluster, ())
        assert start is not None, "a worker that stores a sample can send it on its own"
        order = count()
        waiting: list[tuple[int, int, Solution]] = []
        seen: set[frozenset[tuple[int, int]]] = set()
        best = start
        expansions = self.limits.expansions
        current: Solution | None = start
        while current is not None:
            compared = [
                solution
                for receiver, loans in self.joinable_edges(current)
                if (solution := self._joined(current, receiver, loans)) is not None
            ]
            found = min([current, *compared], key=lambda solution: solution.loss)  # S4.4
            if expansions:  # S4.5
                potential = self.potential(found)
                for solution in compared:
                    key = frozenset(solution.cluster.receivers)
                    if key not in seen and (own := self.potential(solution)) > potential:
                        seen.add(key)
                        heappush(waiting, (-own, next(order), solution))
            if found is not current:  # S4.6
                current = found
                continue
            if found.loss < best.loss:
                best = found
            current = None
            if waiting and expansions:
                expansions -= 1
                current = heappop(waiting)[2]  # S4.7
        return best

    def joinable_edges(self, solution: Solution) -> Iterator[tuple[tuple[int, int], tuple[Loan, ...]]]:
        """Yield edges (worker, sample) that may join, with what is borrowed then, the sender's loans left out
        (S4.1)."""
        for worker in self.joinable_nodes(solution.cluster, self._loans_left(solution)):
            yield from self._edges_of(solution, worker)

    def _loans_left(self, solution: Solution) -> int:
        """Return the loans that are left; the sender's do not count, since another may send."""
        return self.limits.loans - sum(loan.borrower != solution.sender for loan in solution.loans)

    def _edges_of(self, solution: Solution, worker: int) -> Iterator[tuple[tuple[int, int], tuple[Loan, ...]]]:
        cluster = solution.cluster
        left = self._loans_left(solution)
        own = self._borrowed(worker, [sample for _, sample in cluster.receivers])
        if own is None or len(own) > left:
            return
        borrowed = (*(loan for loan in solution.loans if loan.borrower != solution.sender), *own)
        complete, one_short = self.graph.joinable_or_short(cluster, worker)
        samples = self._tried(worker, complete)
        for sample in samples:
            yield (worker, sample), borrowed
        if left > len(own) and len(samples) < self.limits.samples:
            for sample in self._tried(worker, one_short):
                (short,) = (each for each, _ in cluster.receivers if not self.graph.holders[sample] >> each & 1)
                lent = self._borrowed(short, [sample])
                if lent is not None:
                    yield (worker, sample), (*borrowed, *lent)

    def joinable_nodes(self, cluster: Cluster, loans: int) -> Iterator[int]:
        """Yield workers outside that store every sample of the cluster, or could borrow what is missing (S4)."""
        # lacking[n]: those who lack n of the samples, and have neighbours for them.
        lacking = [-1, *(0 for _ in range(loans))]
        for _, sample in cluster.receivers:
            stored = self.graph.holders[sample]
            near = self.graph.reach(self.trees, sample) & ~stored
            lacking = [fewer & stored | before & near for fewer, before in zip(lacking, [0, *lacking], strict=False)]
        return members(sum(lacking) & ~cluster.workers)

    def potential(self, solution: Solution) -> int:
        """Return the potential: receivers, and nodes that could join (the potential function of S4)."""
        nodes = self.joinable_nodes(solution.cluster, self._loans_left(solution))
        joinable = sum(any(True for _ in self._edges_of(solution, worker)) for worker in nodes)
        return len(solution.cluster.receivers) + joinable

    def _tried(self, worker: int, places: int) -> Sequence[int]:
        """Return as many of a worker's samples as are tried, from a random one on."""
        own = self.graph.samples[worker]
        if places.bit_count() > self.limits.samples:
            start = self.draw.randrange(len(own))
            above = places >> start << start
            chosen: Iterable[int] = islice(chain(members(above), members(places ^ above)), self.limits.samples)
        else:
            chosen = members(places)
        return [own[place] for place in chosen]

    def _joined(self, former: Solution, receiver: tuple[int, int], loans: tuple[Loan, ...]) -> Solution | None:
        return self.solution(self.graph.joined(former.cluster, *receiver), loans)

    def solution(self, cluster: Cluster, loans: tuple[Loan, ...]) -> Solution | None:
        """Return a cluster with the sender of least loss (S4.2, S4.3); None if none can send it in time (S5).

        loans: those to its receivers.
        """
        best: Solution | None = None
        samples = [sample for _, sample in cluster.receivers]
        left = self.limits.loans - len(loans) if len(samples) > 1 else 0
        senders = list(self.joinable_nodes(cluster, left))
        for sender, hops in zip(senders, self.trees.hops_of_each(senders, cluster.workers), strict=True):
            own = self._borrowed(sender, samples)
            if own is None or len(own) > left or any(loan.borrower == sender for loan in loans):
                continue
            borrowed = (*loans, *own)
            if self.count_loans:
                hops += sum(int(self.trees.distances[loan.lender, loan.borrower]) for loan in borrowed)
            loss = hops / len(samples)  # the loss function of S4
            if (best is None or loss < best.loss) and self.queues.fits(sender, borrowed):
                best = Solution(cluster, sender, borrowed, loss)
        return best

    def _borrowed(self, worker: int, samples: Sequence[int]) -> tuple[Loan, ...] | None:
        """Return loans for what a worker lacks, each from its nearest neighbour that has it; None if none has."""
        found = []
        for sample in samples:
            if not self.graph.holders[sample] >> worker & 1:
                loan = self._loan(worker, sample)
                if loan is None:
                    return None
                found.append(loan)
        return tuple(found)

    def _loan(self, worker: int, sample: int) -> Loan | None:
        if (worker, sample) not in self._loans:
            lenders = list(members(self.graph.holders[sample] & self.trees.neighbours[worker]))
            away = self.trees.distances[lenders, worker].tolist()
            nearest = min(zip(away, lenders, strict=True), default=None)
            self._loans[worker, sample] = None if nearest is None else Loan(nearest[1], worker, sample)
        return self._loans[worker, sample]
