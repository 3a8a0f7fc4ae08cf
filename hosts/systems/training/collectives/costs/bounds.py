"""What no algorithm is faster than, and what ASTRA-sim's analytical network says.

Bounds are of bytes alone, without headers and delays: E. Chan et al., "Collective communication: theory, practice,
and experience" (Concurrency and Computation 19, 2007); P. Patarasuk and X. Yuan (Journal of Parallel and Distributed
Computing 69, 2009) for all-reduce by hosts. size_bytes: of a rank's input, as Operation says. Rates are of one
direction.
"""

from __future__ import annotations

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm
from gradbed.hosts.systems.training.execution import Operation

GIGABYTE = 1 << 30
"""ASTRA-sim's, of its bandwidths."""


def hosts_bound_ns(operation: Operation, group_size: int, size_bytes: float, rate_bps: float) -> float:
    """When hosts alone add and copy: what some host's link must carry in one direction."""
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
    """When switches add and copy, too: what must leave or reach some host. An all-reduce's vector does both once,
    half of what hosts need for large groups; of the other operations hosts' links carry as much."""
    if operation is Operation.ALL_REDUCE:
        return _ns(size_bytes if group_size > 1 else 0, rate_bps)
    return hosts_bound_ns(operation, group_size, size_bytes, rate_bps)


def bisection_bound_ns(operation: Operation, group_size: int, size_bytes: float, bisection_bps: float) -> float:
    """What must pass between two halves of the group over links of that rate together, in one direction."""
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
