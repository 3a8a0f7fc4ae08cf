"""What publications say that collectives cost: the alpha-beta model, lower bounds, and ASTRA-sim's network.

In the alpha-beta model a message of m bytes takes alpha + m beta, and m gamma to be added: R. Thakur,
R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH" (International Journal of
High Performance Computing Applications 19, 2005), E. Chan et al., "Collective communication: theory, practice, and
experience" (Concurrency and Computation 19, 2007), and for trees of chunks P. Sanders, J. Speck, J. L. Träff,
"Two-tree algorithms for full bandwidth broadcast, reduction and scan" (Parallel Computing 35, 2009). A rank sends
one message and receives one at a time. What packets, switches and links add: costs.py.

Bounds are of bytes alone, without headers and delays: E. Chan et al., as above; P. Patarasuk and X. Yuan (Journal of
Parallel and Distributed Computing 69, 2009) for all-reduce by hosts. size_bytes: of a rank's input, as Operation
says. Rates are of one direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms

# ---- The alpha-beta model ----


@dataclass(frozen=True)
class AlphaBeta:
    """The alpha-beta-gamma model of a message's cost."""

    alpha_ns: float
    """Cost of a message, whatever its size."""
    beta_ns_per_byte: float
    """Cost of each byte sent."""
    gamma_ns_per_byte: float = 0.0
    """Cost of each byte added."""

    def time_ns(self, messages: float, sent_bytes: float, added_bytes: float = 0.0) -> float:
        """Return the time of messages one after the other."""
        return messages * self.alpha_ns + sent_bytes * self.beta_ns_per_byte + added_bytes * self.gamma_ns_per_byte


@dataclass(frozen=True)
class _CollectiveSize:
    """A collective, as the formulas take it."""

    operation: Operation
    size: int
    vector_bytes: float
    """Size of the vector: all parts of an all-gather or gather."""
    chunks: int
    model: AlphaBeta

    @property
    def share(self) -> float:
        """Return what is not the rank's own of a vector."""
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


def _ring(asked: _CollectiveSize) -> float:
    """Chunks of a part are sent one after the other: they cost alpha each."""
    rounds = asked.phases * (asked.size - 1)
    return asked.model.time_ns(rounds * asked.chunks, asked.phases * asked.share, asked.added)


def _halving_doubling(asked: _CollectiveSize) -> float:
    return asked.model.time_ns(asked.phases * asked.rounds, asked.phases * asked.share, asked.added)


def _recursive_doubling(asked: _CollectiveSize) -> float:
    """The whole vector in each round. Groups that are no power of two are folded: two more, of which one is added."""
    rounds = asked.size.bit_length() - 1
    folded = asked.size != 1 << rounds
    messages, vector = rounds + 2 * folded, asked.vector_bytes
    return asked.model.time_ns(messages, messages * vector, (rounds + folded) * vector)


def _tree(asked: _CollectiveSize, *, trees: int) -> float:
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


def _at_once(asked: _CollectiveSize) -> float:
    """Return the time with one alpha: all messages are under way at the same time."""
    return asked.model.time_ns(asked.phases, asked.phases * asked.share, asked.added)


def _server(asked: _CollectiveSize) -> float:
    """Return the time of a parameter server.

    Its link carries each other rank's vector in, then out; with chunks, in and out together.
    """
    chunk = (asked.size - 1) * asked.vector_bytes / asked.chunks
    return asked.model.time_ns(2, (asked.chunks + 1) * chunk, (asked.size - 1) * asked.vector_bytes)


_FORMULAS: Mapping[Algorithm, Callable[[_CollectiveSize], float]] = {
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
    return _FORMULAS[algorithm](_CollectiveSize(operation, group_size, vector, chunks, model))


def _hierarchical(size: int, vector: float, model: AlphaBeta, width: int) -> float:
    """Reduce-scatter, all-reduce of one part, all-gather: three rings."""
    if width < 1 or size % width:
        raise UserError(f"racks of {width} ranks do not divide a group of {size}")
    inside = 0.0
    for operation in (Operation.REDUCE_SCATTER, Operation.ALL_GATHER):
        inside += _ring(_CollectiveSize(operation, width, vector, 1, model))
    return inside + _ring(_CollectiveSize(Operation.ALL_REDUCE, size // width, vector / width, 1, model))


# ---- What no algorithm is faster than, and what ASTRA-sim's analytical network says ----


GIGABYTE = 1 << 30
"""ASTRA-sim's, of its bandwidths."""


def hosts_bound_ns(operation: Operation, group_size: int, size_bytes: float, rate_bps: float) -> float:
    """Return the lower bound when hosts alone add and copy: what some host's link must carry in one direction."""
    others = group_size - 1
    vectors = {
        Operation.ALL_REDUCE: 2 * others / group_size,
        Operation.REDUCE_SCATTER: others / group_size,
        Operation.ALL_GATHER: others,
        Operation.ALL_TO_ALL: others / group_size,
        Operation.BROADCAST: 1,
        Operation.REDUCE: 1,
        Operation.GATHER: others,
        Operation.SCATTER: others / group_size,
        Operation.BARRIER: 0,
    }[operation]
    return _ns(vectors * size_bytes if others else 0, rate_bps)


def switches_bound_ns(operation: Operation, group_size: int, size_bytes: float, rate_bps: float) -> float:
    """Return the lower bound when switches add and copy, too: what must leave or reach some host.

    An all-reduce's vector does both once, half of what hosts need for large groups; of the other operations hosts'
    links carry as much.
    """
    if operation is Operation.ALL_REDUCE:
        return _ns(size_bytes if group_size > 1 else 0, rate_bps)
    return hosts_bound_ns(operation, group_size, size_bytes, rate_bps)


def bisection_bound_ns(operation: Operation, group_size: int, size_bytes: float, bisection_bps: float) -> float:
    """Return the lower bound of what must pass between two halves of the group over links of that rate together, in
    one direction.
    """
    half, other = group_size // 2, group_size - group_size // 2
    passing = {
        Operation.ALL_REDUCE: size_bytes,
        Operation.REDUCE_SCATTER: size_bytes * other / group_size,
        Operation.ALL_GATHER: size_bytes * other,
        Operation.ALL_TO_ALL: size_bytes * half * other / group_size,
        Operation.BROADCAST: size_bytes,
        Operation.REDUCE: size_bytes,
        Operation.GATHER: size_bytes * half,
        Operation.SCATTER: size_bytes * half / group_size,
        Operation.BARRIER: 0.0,
    }[operation]
    return _ns(passing if half else 0, bisection_bps)


def _ns(size_bytes: float, rate_bps: float) -> float:
    return size_bytes * 8e9 / rate_bps


def astra_sim_ns(
    algorithm: Algorithm,
    group_size: int,
    size_bytes: int,
    bandwidth_gbytes: float,
    latency_ns: float,
    hops: int = 2,
) -> int:
    """An all-reduce in ASTRA-sim's analytical network, without its end points' and memories' delays.

    A message takes latency x hops + size / bandwidth, whole nanoseconds (W. Won et al., "ASTRA-sim2.0: modeling
    hierarchical networks and disaggregated systems for large-model training at scale", ISPASS 2023, on the analytical
    network back end); its gigabyte has 2^30 bytes. A ring sends 2 (N - 1) messages of size / N, halving and doubling
    each of size / 2, size / 4, ... size / N twice. So a message never waits for its last packet in a switch, and has
    no headers: with links' rates and delays alike, packets take longer by these. hops: of a switch 2. UserError for
    other algorithms, and where halving and doubling meets a group that is no power of two.
    """

    def message_ns(size: int) -> int:
        return int(hops * latency_ns + size * 1e9 / (bandwidth_gbytes * GIGABYTE))

    if algorithm is Algorithm.RING:
        return 2 * (group_size - 1) * message_ns(size_bytes // group_size)
    if algorithm is not Algorithm.HALVING_DOUBLING or group_size & (group_size - 1):
        raise UserError("ASTRA-sim's formula is known here for ring, and halving-doubling of groups of powers of two")
    return 2 * sum(message_ns(size_bytes >> step) for step in range(1, group_size.bit_length()))
