"""Collectives in the alpha-beta model: a message of m bytes takes alpha + m beta, and m gamma to be added.

R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH" (International
Journal of High Performance Computing Applications 19, 2005), E. Chan et al., "Collective communication: theory,
practice, and experience" (Concurrency and Computation 19, 2007), and for trees of chunks P. Sanders, J. Speck,
J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (Parallel Computing 35, 2009). A
rank sends one message and receives one at a time. What packets, switches and links add: idle_network.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms
from gradbed.hosts.systems.training.execution import Operation


@dataclass(frozen=True)
class AlphaBeta:
    """alpha_ns: of a message, whatever its size. beta_ns_per_byte: of each byte sent. gamma_ns_per_byte: of each
    byte added."""

    alpha_ns: float
    beta_ns_per_byte: float
    gamma_ns_per_byte: float = 0.0

    def time_ns(self, messages: float, sent_bytes: float, added_bytes: float = 0.0) -> float:
        """One after the other."""
        return messages * self.alpha_ns + sent_bytes * self.beta_ns_per_byte + added_bytes * self.gamma_ns_per_byte


@dataclass(frozen=True)
class _Asked:
    """vector_bytes: all parts of an all-gather or gather."""

    operation: Operation
    size: int
    vector_bytes: float
    chunks: int
    model: AlphaBeta

    @property
    def share(self) -> float:
        """What is not the rank's own of a vector."""
        return self.vector_bytes * (self.size - 1) / self.size

    @property
    def rounds(self) -> int:
        """log2 N, rounded up."""
        return (self.size - 1).bit_length()

    @property
    def added(self) -> float:
        return self.share if self.operation in (Operation.ALL_REDUCE, Operation.REDUCE_SCATTER) else 0.0

    @property
    def phases(self) -> int:
        return 2 if self.operation is Operation.ALL_REDUCE else 1


def _ring(asked: _Asked) -> float:
    """Chunks of a part are sent one after the other: they cost alpha each."""
    rounds = asked.phases * (asked.size - 1)
    return asked.model.time_ns(rounds * asked.chunks, asked.phases * asked.share, asked.added)


def _halving_doubling(asked: _Asked) -> float:
    return asked.model.time_ns(asked.phases * asked.rounds, asked.phases * asked.share, asked.added)


def _recursive_doubling(asked: _Asked) -> float:
    """The whole vector in each round. Groups that are no power of two are folded: two more, of which one is added."""
    rounds = asked.size.bit_length() - 1
    folded = asked.size != 1 << rounds
    messages, vector = rounds + 2 * folded, asked.vector_bytes
    return asked.model.time_ns(messages, messages * vector, (rounds + folded) * vector)


def _tree(asked: _Asked, *, trees: int) -> float:
    """A chunk goes down from level to level, to two children one after the other, while the next follow. An inner
    rank handles each chunk of its tree twice in a broadcast, three times in an all-reduce (two trees: four, for two
    chunks); an all-reduce's first chunk goes all the way up and down."""
    depth = asked.size.bit_length() - 1
    chunk = asked.vector_bytes / (asked.chunks * trees)
    each = {(1, 1): 2, (1, 2): 3, (2, 1): 2, (2, 2): 4}[trees, asked.phases]
    fill = 2 * depth * asked.phases
    messages = fill + each * (asked.chunks - 1)
    added = messages if asked.operation is not Operation.BROADCAST else 0
    return asked.model.time_ns(messages, messages * chunk, added / asked.phases * chunk)


def _at_once(asked: _Asked) -> float:
    """alpha once: the messages are on their way together."""
    return asked.model.time_ns(asked.phases, asked.phases * asked.share, asked.added)


def _server(asked: _Asked) -> float:
    """Its link carries each other rank's vector in, then out; with chunks, in and out together."""
    chunk = (asked.size - 1) * asked.vector_bytes / asked.chunks
    return asked.model.time_ns(2, (asked.chunks + 1) * chunk, (asked.size - 1) * asked.vector_bytes)


_FORMULAS: Mapping[Algorithm, Callable[[_Asked], float]] = {
    Algorithm.RING: _ring,
    Algorithm.HALVING_DOUBLING: _halving_doubling,
    Algorithm.RECURSIVE_DOUBLING: _recursive_doubling,
    Algorithm.BINARY_TREE: lambda asked: _tree(asked, trees=1),
    Algorithm.DOUBLE_BINARY_TREE: lambda asked: _tree(asked, trees=2),
    Algorithm.PARAMETER_SERVER: _server,
    Algorithm.SHARDED_PARAMETER_SERVER: _at_once,
    Algorithm.PAIRWISE: lambda asked: asked.model.time_ns(asked.size - 1, asked.share),
    Algorithm.DIRECT: _at_once,
    Algorithm.DISSEMINATION: lambda asked: asked.model.time_ns(asked.rounds, 0),
}


def alpha_beta_ns(
    algorithm: Algorithm,
    operation: Operation,
    group_size: int,
    size_bytes: float,
    model: AlphaBeta,
    *,
    chunks: int = 1,
    ranks_per_rack: int = 1,
) -> float:
    """size_bytes: of a rank's input (Operation). ranks_per_rack: for hierarchical with rings inside and between racks
    of equal size. UserError if the algorithm does not do the operation."""
    if algorithm not in algorithms(operation):
        raise UserError(f"{algorithm.value} does no {operation.value}")
    if group_size == 1:
        return 0.0
    gathers = operation in (Operation.ALL_GATHER, Operation.GATHER)
    vector = size_bytes * group_size if gathers else size_bytes
    if algorithm is Algorithm.HIERARCHICAL:
        return _hierarchical(group_size, vector, model, ranks_per_rack)
    return _FORMULAS[algorithm](_Asked(operation, group_size, vector, chunks, model))


def _hierarchical(size: int, vector: float, model: AlphaBeta, width: int) -> float:
    """Reduce-scatter, all-reduce of one part, all-gather: three rings."""
    if width < 1 or size % width:
        raise UserError(f"racks of {width} ranks do not divide a group of {size}")
    inside = 0.0
    for operation in (Operation.REDUCE_SCATTER, Operation.ALL_GATHER):
        inside += _ring(_Asked(operation, width, vector, 1, model))
    return inside + _ring(_Asked(Operation.ALL_REDUCE, size // width, vector / width, 1, model))
