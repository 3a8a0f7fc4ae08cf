"""What a rank executes: a graph of computations and communications, whatever file it came from.

The kinds are those of MLCommons Chakra's execution traces. A rank is one accelerator with its network interface;
ranks count from 0. Times are integers of nanoseconds, sizes integers of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gradbed.hosts.collectives.schedule import Operation


class Kind(str, Enum):
    """Kinds of nodes."""

    COMPUTE = "compute"
    MEMORY = "memory"
    SEND = "send"
    RECEIVE = "receive"
    COLLECTIVE = "collective"


@dataclass(frozen=True)
class TraceNode:
    """A node of a rank's graph.

    It begins when all in `after` are complete.

    number: unique within the rank. after: numbers of the nodes that it waits for, of data and of control.
    duration_ns: of computations and memory accesses; a computation of 0 ns orders others, and occupies nothing.
    size_bytes: of sends, receives and collectives (Operation says of what). peer: the other rank of a send or
    receive. tag: sends and receives of two ranks match by it, in order. group: the ranks of a collective, in order;
    empty: all. The k-th collective of a group among a rank's nodes, in the order in which they are given, is the k-th
    of the group's other ranks. root: the rank (not its place in the group) of a broadcast, reduce, gather or scatter.
    on_cpu: a computation of the host's processor, not of the accelerator; each of them computes one node at a time.
    """

    number: int
    name: str
    kind: Kind
    after: tuple[int, ...] = ()
    duration_ns: int = 0
    size_bytes: int = 0
    peer: int | None = None
    tag: int = 0
    operation: Operation | None = None
    group: tuple[int, ...] = ()
    root: int | None = None
    on_cpu: bool = False
