"""How long a collective takes on an idle network of full bisection, with all that its packets cost there.

Algorithms in which all ranks send and receive alike have a formula; the others are followed message by message
(critical_path.py). Either stays within 2 % of packets on a star, and of a fat-tree whose paths do not
collide. Nothing is counted for adding.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms, schedule
from gradbed.hosts.systems.training.collectives.costs.critical_path import schedule_ns
from gradbed.hosts.systems.training.collectives.costs.network import Network
from gradbed.hosts.systems.training.execution import Operation

MOST_PIECES = 64
"""Of a message between ranks that exchange with several at once; of all its chunks together."""


def cost_ns(
    algorithm: Algorithm,
    operation: Operation,
    group_size: int,
    size_bytes: int,
    network: Network,
    *,
    chunks: int = 1,
    root: int = 0,
    racks: tuple[int, ...] | None = None,
    inside: Algorithm = Algorithm.RING,
    between: Algorithm = Algorithm.RING,
) -> float:
    """Until the last rank has its result (Progress.has_result), when all begin at once. size_bytes: of a rank's input
    (Operation); the rest as for schedule(). UserError as there.

    What is followed message by message takes some 10 us of the processor for each message.
    """
    # Refuses what schedule() refuses.
    schedule(
        *(algorithm, operation, group_size, 0, size_bytes),
        chunks=chunks,
        root=root,
        racks=racks,
        inside=inside,
        between=between,
    )
    if group_size == 1:
        return 0.0
    vector = size_bytes * group_size if operation is Operation.ALL_GATHER else size_bytes
    part = -(-vector // group_size)
    if algorithm is Algorithm.RING:
        phases = 2 if operation is Operation.ALL_REDUCE else 1
        return _ring_ns(group_size, phases * (group_size - 1), part, chunks, network)
    if algorithm is Algorithm.PAIRWISE:
        return _pairwise_ns(group_size, part, network)
    if algorithm is Algorithm.SHARDED_PARAMETER_SERVER:
        return 2 * _at_once_ns(group_size, part, network)
    if operation is Operation.GATHER:
        return _one_link_ns([(peer, root) for peer in range(group_size) if peer != root], size_bytes, network)
    if operation is Operation.SCATTER:
        return _one_link_ns([(root, peer) for peer in range(group_size) if peer != root], part, network)
    if algorithm is Algorithm.DIRECT:
        return _at_once_ns(group_size, part, network)
    schedules = [
        schedule(
            *(algorithm, operation, group_size, rank, size_bytes),
            chunks=chunks,
            root=root,
            racks=racks,
            inside=inside,
            between=between,
        )
        for rank in range(group_size)
    ]
    return schedule_ns(schedules, network, pieces=_pieces(algorithm, size_bytes, chunks, network))


def _pieces(algorithm: Algorithm, size_bytes: int, chunks: int, network: Network) -> int:
    if algorithm is Algorithm.RECURSIVE_DOUBLING:
        # In folded groups ranks that need not wait send to those that still receive in the round before.
        return min(MOST_PIECES, network.packets.count(size_bytes))
    if algorithm not in (Algorithm.BINARY_TREE, Algorithm.DOUBLE_BINARY_TREE):
        return 1
    return max(1, min(MOST_PIECES // chunks, network.packets.count(size_bytes // (2 * chunks))))


def _ring_ns(size: int, rounds: int, part: int, chunks: int, network: Network) -> float:
    """A message's way: in each round to the next rank, or to wait for a rank's link until all chunks of the round are
    gone. The longest one counts: hops follow each other, so they are those of an arc of the ring."""
    chunk = -(-part // chunks)
    hops = [network.message_ns(rank, (rank + 1) % size, chunk) for rank in range(size)]
    sending = max(network.sending_ns(rank, (rank + 1) % size, chunk) for rank in range(size))
    until = list(accumulate(hops * (rounds // size + 2), initial=0.0))

    def longest(count: int) -> float:
        return max(until[start + count] - until[start] for start in range(size))

    if chunks == 1:
        return longest(rounds)
    counts = (1, rounds) if len(set(hops)) == 1 else range(1, rounds + 1)
    return max(longest(count) + ((rounds - count) * chunks + chunks - 1) * sending for count in counts)


def _pairwise_ns(size: int, part: int, network: Network) -> float:
    """In each round a rank waits for what it receives, and for its link."""
    begun = [0.0] * size
    for away in range(1, size):
        come = [begun[rank - away] + network.message_ns((rank - away) % size, rank, part) for rank in range(size)]
        free = [begun[rank] + network.sending_ns(rank, (rank + away) % size, part) for rank in range(size)]
        ended, begun = come, [max(one, other) for one, other in zip(come, free, strict=True)]
    return max(ended)


def _at_once_ns(size: int, part: int, network: Network) -> float:
    """All send to all, a packet to each in turn, so that each link is busy from the first to the last. What comes is
    acknowledged in between, from the first one's arrival on."""

    def rank_ns(rank: int) -> float:
        peers = [peer for peer in range(size) if peer != rank]
        data = sum(network.data_ns(rank, peer, part) for peer in peers)
        latency = max(network.latency_ns(rank, peer, part) for peer in peers)
        acknowledging = sum(network.acknowledging_ns(rank, peer, part) for peer in peers)
        return data + latency + acknowledging * max(0.0, 1 - latency / data)

    return max(rank_ns(rank) for rank in range(size))


def _one_link_ns(messages: Sequence[tuple[int, int]], size_bytes: int, network: Network) -> float:
    """From sender to receiver each, of which one is always the same: its link carries them all, and acknowledgements
    the other way."""
    sending = sum(network.data_ns(sender, receiver, size_bytes) for sender, receiver in messages)
    return sending + max(network.latency_ns(sender, receiver, size_bytes) for sender, receiver in messages)


def cheapest(
    operation: Operation,
    group_size: int,
    size_bytes: int,
    network: Network,
    *,
    chunks: int = 1,
    root: int = 0,
    racks: tuple[int, ...] | None = None,
) -> Algorithm:
    """The algorithm that costs the least."""
    able = [each for each in algorithms(operation) if each is not Algorithm.HIERARCHICAL or racks is not None]
    costs = {
        each: cost_ns(each, operation, group_size, size_bytes, network, chunks=chunks, root=root, racks=racks)
        for each in able
    }
    return min(able, key=lambda each: costs[each])
