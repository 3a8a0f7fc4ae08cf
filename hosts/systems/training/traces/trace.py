"""What all traces are, whatever they come from: ranks, and the graph of each."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gradbed.hosts.systems.training.traces.graph import RankGraph


class Trace(ABC):
    """ranks: how many; they count from 0. name: for people."""

    name: str
    ranks: int

    def __init__(self) -> None:
        self._graphs: dict[int, RankGraph] = {}

    def nodes(self, rank: int) -> RankGraph:
        """A rank's nodes: a sequence of execution.Node. It is read or made when it is asked for first, and kept; what
        ranks have alike is kept once. UserError with file, rank and node if it is broken."""
        if rank not in self._graphs:
            if not 0 <= rank < self.ranks:
                raise IndexError(f"rank {rank} of {self.ranks}")
            self._graphs[rank] = self._read(rank)
        return self._graphs[rank]

    @abstractmethod
    def _read(self, rank: int) -> RankGraph:
        """UserError if it is broken."""

    def place(self, rank: int) -> str:
        """Of a rank, for messages: its file, if it has one."""
        return f"{self.name}: rank {rank}"
