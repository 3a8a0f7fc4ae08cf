"""The schedules there are: which algorithm does which operation, and a rank's part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.collectives import (
    direct,
    halving_doubling,
    hierarchical,
    recursive_doubling,
    ring,
    trees,
)
from gradbed.hosts.systems.training.collectives.schedule import Schedule, Step, Steps, part
from gradbed.hosts.systems.training.collectives.steps import ExchangeSteps, Pattern, PatternSteps, StoredSteps
from gradbed.hosts.systems.training.execution import Operation


class Algorithm(str, Enum):
    """How ranks carry out a collective among themselves."""

    RING = "ring"
    HALVING_DOUBLING = "halving-doubling"
    RECURSIVE_DOUBLING = "recursive-doubling"
    BINARY_TREE = "binary-tree"
    DOUBLE_BINARY_TREE = "double-binary-tree"
    HIERARCHICAL = "hierarchical"
    PARAMETER_SERVER = "parameter-server"
    SHARDED_PARAMETER_SERVER = "sharded-parameter-server"
    PAIRWISE = "pairwise"
    DIRECT = "direct"
    DISSEMINATION = "dissemination"


@dataclass(frozen=True)
class Call:
    """What a schedule is asked for (`schedule`). elements: of the whole vector; an all-gather's has all parts."""

    group_size: int
    rank: int
    elements: int
    chunks: int = 1
    root: int = 0
    racks: tuple[int, ...] | None = None
    inside: Algorithm = Algorithm.RING
    between: Algorithm = Algorithm.RING


Made = Sequence[Step]
Maker = Callable[[Call], Made]


def _rotated(pattern: Callable[[Call], Pattern]) -> Maker:
    return lambda call: PatternSteps(pattern(call), call.rank, call.elements)


def _exchanged(*, pairwise: bool) -> Maker:
    return lambda call: ExchangeSteps(direct.all_to_all(call.group_size, pairwise=pairwise), call.rank, call.elements)


def _binary(*, up: bool, down: bool) -> Maker:
    def steps(call: Call) -> Made:
        place = trees.binary_tree(call.group_size, call.rank, call.root)
        return trees.steps([place], call.elements, call.chunks, up=up, down=down)

    return steps


def _double(*, up: bool, down: bool) -> Maker:
    def steps(call: Call) -> Made:
        if up and down:
            places = trees.two_trees(call.group_size, call.rank)
        else:
            places = trees.two_trees_below(call.group_size, call.rank, call.root)
        return trees.steps(places, call.elements, call.chunks, up=up, down=down)

    return steps


def _hierarchical(call: Call) -> Made:
    if call.racks is None or len(call.racks) != call.group_size:
        raise UserError(f"a hierarchical all-reduce needs the rack of each of the {call.group_size} ranks")

    def among(algorithm: Algorithm) -> hierarchical.SubSteps:
        if algorithm is Algorithm.RECURSIVE_DOUBLING:
            raise UserError(
                "recursive-doubling needs room beside the vector, which parts of a hierarchical all-reduce have not: "
                "choose ring or halving-doubling"
            )

        def steps(operation: Operation, size: int, rank: int, elements: int) -> Made:
            return _maker(algorithm, operation)(Call(size, rank, elements))

        return steps

    racks = hierarchical.Racks.of(call.racks)
    return hierarchical.all_reduce(
        racks, call.rank, call.elements, call.chunks, among(call.inside), among(call.between)
    )


_RING: Mapping[Operation, Maker] = {
    Operation.ALL_REDUCE: _rotated(lambda call: ring.ring_all_reduce(call.group_size, call.chunks)),
    Operation.REDUCE_SCATTER: _rotated(lambda call: ring.ring_reduce_scatter(call.group_size, call.chunks)),
    Operation.ALL_GATHER: _rotated(lambda call: ring.ring_all_gather(call.group_size, call.chunks)),
}

_HALVING_DOUBLING: Mapping[Operation, Maker] = {
    Operation.ALL_REDUCE: lambda call: halving_doubling.all_reduce(call.group_size, call.rank, call.elements),
    Operation.REDUCE_SCATTER: lambda call: halving_doubling.reduce_scatter(call.group_size, call.rank, call.elements),
    Operation.ALL_GATHER: lambda call: halving_doubling.all_gather(call.group_size, call.rank, call.elements),
}

_DIRECT: Mapping[Operation, Maker] = {
    Operation.ALL_TO_ALL: _exchanged(pairwise=False),
    Operation.ALL_GATHER: _rotated(lambda call: direct.direct_all_gather(call.group_size)),
    Operation.REDUCE_SCATTER: _rotated(lambda call: direct.direct_reduce_scatter(call.group_size)),
    Operation.GATHER: lambda call: direct.gather(call.group_size, call.rank, call.root, call.elements),
    Operation.SCATTER: lambda call: direct.scatter(call.group_size, call.rank, call.root, call.elements),
}

_MAKERS: Mapping[Algorithm, Mapping[Operation, Maker]] = {
    Algorithm.RING: _RING,
    Algorithm.HALVING_DOUBLING: _HALVING_DOUBLING,
    Algorithm.RECURSIVE_DOUBLING: {
        Operation.ALL_REDUCE: lambda call: recursive_doubling.all_reduce(call.group_size, call.rank, call.elements)
    },
    Algorithm.BINARY_TREE: {
        Operation.ALL_REDUCE: _binary(up=True, down=True),
        Operation.REDUCE: _binary(up=True, down=False),
        Operation.BROADCAST: _binary(up=False, down=True),
    },
    Algorithm.DOUBLE_BINARY_TREE: {
        Operation.ALL_REDUCE: _double(up=True, down=True),
        Operation.REDUCE: _double(up=True, down=False),
        Operation.BROADCAST: _double(up=False, down=True),
    },
    Algorithm.HIERARCHICAL: {Operation.ALL_REDUCE: _hierarchical},
    Algorithm.PARAMETER_SERVER: {
        Operation.ALL_REDUCE: lambda call: direct.parameter_server(
            call.group_size, call.rank, call.root, call.elements, call.chunks
        )
    },
    Algorithm.SHARDED_PARAMETER_SERVER: {
        Operation.ALL_REDUCE: _rotated(lambda call: direct.sharded_server(call.group_size))
    },
    Algorithm.PAIRWISE: {Operation.ALL_TO_ALL: _exchanged(pairwise=True)},
    Algorithm.DIRECT: _DIRECT,
    Algorithm.DISSEMINATION: {
        Operation.BARRIER: _rotated(lambda call: direct.dissemination_barrier(call.group_size))
    },
}


def _maker(algorithm: Algorithm, operation: Operation) -> Maker:
    maker = _MAKERS[algorithm].get(operation)
    if maker is None:
        able = " or ".join(other.value for other in algorithms(operation))
        raise UserError(f"{algorithm.value} does no {operation.value}: choose {able}")
    return maker


def algorithms(operation: Operation) -> tuple[Algorithm, ...]:
    """Those that do it."""
    return tuple(algorithm for algorithm in Algorithm if operation in _MAKERS[algorithm])


@lru_cache(8192)
def schedule(
    algorithm: Algorithm,
    operation: Operation,
    group_size: int,
    rank: int,
    elements: int,
    *,
    chunks: int = 1,
    root: int = 0,
    racks: tuple[int, ...] | None = None,
    inside: Algorithm = Algorithm.RING,
    between: Algorithm = Algorithm.RING,
) -> Schedule:
    """A rank's part of a collective; equal calls return the same value.

    rank, root: places in the group, from 0. elements: of each rank's input, as Operation says of size_bytes; vectors
    that do not divide into parts have parts that differ by one element (schedule.part). chunks: into which rings cut
    each part, and trees (two trees: each its half), parameter server and hierarchical the vector, so that steps
    overlap; the others send parts whole. root: of broadcast, reduce, gather and scatter, and who is the parameter
    server, or the root of an all-reduce's binary tree. racks: for hierarchical, the rack of each rank; inside and
    between: what racks do inside (reduce-scatter and all-gather) and between each other (all-reduce). UserError if
    an algorithm does not do the operation, or a number makes no sense.
    """
    maker = _maker(algorithm, operation)
    if group_size < 1 or not 0 <= rank < group_size or not 0 <= root < group_size:
        raise UserError(f"rank {rank} and root {root} must be in 0 to {group_size - 1}, the group's places")
    if elements < 0 or chunks < 1:
        raise UserError(f"a collective needs 0 or more elements and at least one chunk, got {elements} and {chunks}")
    vector = elements * group_size if operation is Operation.ALL_GATHER else elements
    steps = maker(Call(group_size, rank, vector, chunks, root, racks, inside, between))
    laid_out = _laid_out(operation, group_size, rank, elements, rank == root, steps)
    if algorithm is not Algorithm.RECURSIVE_DOUBLING:
        return laid_out
    start, stop = recursive_doubling.output(group_size, rank, elements)
    return replace(laid_out, elements=2 * elements, output_start=start, output_stop=stop)


def _laid_out(operation: Operation, size: int, rank: int, elements: int, at_root: bool, steps: Made) -> Schedule:
    """With the places of input and output."""
    made = steps if isinstance(steps, Steps) else StoredSteps(steps)
    whole, nothing = (0, elements), (0, 0)
    own = part(elements, size, rank)
    slot, slots = (rank * elements, (rank + 1) * elements), (0, size * elements)
    total, before, after = {
        Operation.ALL_REDUCE: (elements, whole, whole),
        Operation.REDUCE_SCATTER: (elements, whole, own),
        Operation.ALL_GATHER: (size * elements, slot, slots),
        Operation.ALL_TO_ALL: _sides(size, elements, own),
        Operation.BROADCAST: (elements, whole if at_root else nothing, whole),
        Operation.REDUCE: (elements, whole, whole if at_root else nothing),
        Operation.GATHER: (size * elements, slot, slots) if at_root else (elements, whole, nothing),
        Operation.SCATTER: (elements, whole if at_root else nothing, own),
        Operation.BARRIER: (0, nothing, nothing),
    }[operation]
    return Schedule(made, total, *before, *after)


def _sides(size: int, elements: int, own: tuple[int, int]) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """An all-to-all's buffer: what is sent, then what comes."""
    end = elements + size * (own[1] - own[0])
    return end, (0, elements), (elements, end)
