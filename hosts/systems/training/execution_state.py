"""Which nodes of a rank's graph may begin, while it is executed."""

from __future__ import annotations

import heapq

from gradbed.hosts.systems.training.traces.graph import RankGraph


class Execution:
    """One pass through a graph. Nodes are told by their places in it."""

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
