"""Traces of nodes that a test has."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.hosts.systems.training.traces.graph import RankGraph, TraceNode, graph_of
from gradbed.hosts.systems.training.traces.trace import Trace


class MadeTrace(Trace):
    """Of every rank its nodes."""

    def __init__(self, *ranks: Sequence[TraceNode]) -> None:
        super().__init__()
        self.name, self.ranks, self._of = "made", len(ranks), ranks

    def _read(self, rank: int) -> RankGraph:
        return graph_of(self._of[rank])
