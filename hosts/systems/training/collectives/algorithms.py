"""The schedules there are: which algorithm does which operation, and a rank's part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from common.errors import UserError
from hosts.systems.training.collectives import direct, halving_doubling, ring, trees
from hosts.systems.training.collectives.schedule import Schedule, Step, part
from hosts.systems.training.collectives.steps import Pattern, PatternSteps
from hosts.systems.training.execution import Operation


class Algorithm(str, Enum):
    """How ranks carry out a collective among themselves."""

    RING = "ring"
    HALVING_DOUBLING = "halving-doubling"
    BINARY_TREE = "binary-tree"
    DOUBLE_BINARY_TREE = "double-binary-tree"
    PAIRWISE = "pairwise"
    DIRECT = "direct"
    DISSEMINATION = "dissemination"


@dataclass(frozen=True)
class Call:
    """What a schedule is asked for (`schedule`)."""

    group_size: int
    rank: int
    elements: int
    chunks: int = 1
    root: int = 0


Steps = Sequence[Step]
Maker = Callable[[Call], Steps]


def _rotated(pattern: Callable[[Call], Pattern], *, gathers: bool = False) -> Maker:
    """gathers: elements are those of one part."""

    def steps(call: Call) -> Steps:
        elements = call.elements * call.group_size if gathers else call.elements
        return PatternSteps(pattern(call), call.rank, elements)

    return steps


def _binary(call: Call, *, up: bool, down: bool) -> Steps:
    place = trees.binary_tree(call.group_size, call.rank, call.root)
    return trees.steps([place], call.elements, call.chunks, up=up, down=down)


def _double(call: Call, *, up: bool, down: bool) -> Steps:
    places = (
        trees.two_trees(call.group_size, call.rank)
        if up and down
        else trees.two_trees_below(call.group_size, call.rank, call.root)
    )
    return trees.steps(places, call.elements, call.chunks, up=up, down=down)


_MAKERS: Mapping[tuple[Algorithm, Operation], Maker] = {
    (Algorithm.RING, Operation.ALL_REDUCE): _rotated(lambda c: ring.ring_all_reduce(c.group_size, c.chunks)),
    (Algorithm.RING, Operation.REDUCE_SCATTER): _rotated(lambda c: ring.ring_reduce_scatter(c.group_size, c.chunks)),
    (Algorithm.RING, Operation.ALL_GATHER): _rotated(
        lambda c: ring.ring_all_gather(c.group_size, c.chunks), gathers=True
    ),
    (Algorithm.HALVING_DOUBLING, Operation.ALL_REDUCE): lambda c: halving_doubling.all_reduce(
        c.group_size, c.rank, c.elements
    ),
    (Algorithm.HALVING_DOUBLING, Operation.REDUCE_SCATTER): lambda c: halving_doubling.reduce_scatter(
        c.group_size, c.rank, c.elements
    ),
    (Algorithm.HALVING_DOUBLING, Operation.ALL_GATHER): lambda c: halving_doubling.all_gather(
        c.group_size, c.rank, c.group_size * c.elements
    ),
    (Algorithm.BINARY_TREE, Operation.ALL_REDUCE): lambda c: _binary(c, up=True, down=True),
    (Algorithm.BINARY_TREE, Operation.REDUCE): lambda c: _binary(c, up=True, down=False),
    (Algorithm.BINARY_TREE, Operation.BROADCAST): lambda c: _binary(c, up=False, down=True),
    (Algorithm.DOUBLE_BINARY_TREE, Operation.ALL_REDUCE): lambda c: _double(c, up=True, down=True),
    (Algorithm.DOUBLE_BINARY_TREE, Operation.REDUCE): lambda c: _double(c, up=True, down=False),
    (Algorithm.DOUBLE_BINARY_TREE, Operation.BROADCAST): lambda c: _double(c, up=False, down=True),
    (Algorithm.PAIRWISE, Operation.ALL_TO_ALL): lambda c: direct.all_to_all(
        c.group_size, c.rank, c.elements, pairwise=True
    ),
    (Algorithm.DIRECT, Operation.ALL_TO_ALL): lambda c: direct.all_to_all(
        c.group_size, c.rank, c.elements, pairwise=False
    ),
    (Algorithm.DIRECT, Operation.ALL_GATHER): _rotated(
        lambda c: direct.direct_all_gather(c.group_size), gathers=True
    ),
    (Algorithm.DIRECT, Operation.REDUCE_SCATTER): _rotated(lambda c: direct.direct_reduce_scatter(c.group_size)),
    (Algorithm.DIRECT, Operation.ALL_REDUCE): _rotated(lambda c: direct.direct_all_reduce(c.group_size)),
    (Algorithm.DIRECT, Operation.GATHER): lambda c: direct.gather(c.group_size, c.rank, c.root, c.elements),
    (Algorithm.DIRECT, Operation.SCATTER): lambda c: direct.scatter(c.group_size, c.rank, c.root, c.elements),
    (Algorithm.DISSEMINATION, Operation.BARRIER): _rotated(lambda c: direct.dissemination_barrier(c.group_size)),
}


def algorithms(operation: Operation) -> tuple[Algorithm, ...]:
    """Those that do it."""
    return tuple(algorithm for algorithm in Algorithm if (algorithm, operation) in _MAKERS)


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
) -> Schedule:
    """A rank's part of a collective; equal calls return the same value.

    rank, root: places in the group, from 0. elements: of each rank's input, as Operation says of size_bytes; vectors
    that do not divide into parts have parts that differ by one element (schedule.part). chunks: into which rings cut
    each part, and trees the vector (of two trees each its half), so that steps overlap; the others send parts whole.
    root: of broadcast, reduce, gather and scatter, and of an all-reduce over one binary tree. UserError if the
    algorithm does not do the operation, or a number makes no sense.
    """
    maker = _MAKERS.get((algorithm, operation))
    if maker is None:
        able = ", ".join(other.value for other in algorithms(operation))
        raise UserError(f"{algorithm.value} does no {operation.value}: {able} do")
    if group_size < 1 or not 0 <= rank < group_size or not 0 <= root < group_size:
        raise UserError(f"rank {rank} and root {root} must be in 0 to {group_size - 1}, the group's places")
    if elements < 0 or chunks < 1:
        raise UserError(f"a collective needs 0 or more elements and at least one chunk, got {elements} and {chunks}")
    call = Call(group_size, rank, elements, chunks, root)
    return _laid_out(operation, call, maker(call))


def _laid_out(operation: Operation, call: Call, steps: Steps) -> Schedule:
    """With the places of input and output."""
    size, rank, elements = call.group_size, call.rank, call.elements
    made = steps if isinstance(steps, PatternSteps) else tuple(steps)
    whole, nothing = (0, elements), (0, 0)
    own, at_root = part(elements, size, rank), rank == call.root
    slot, slots = (rank * elements, (rank + 1) * elements), (0, size * elements)
    total, before, after = {
        Operation.ALL_REDUCE: (elements, whole, whole),
        Operation.REDUCE_SCATTER: (elements, whole, own),
        Operation.ALL_GATHER: (size * elements, slot, slots),
        Operation.ALL_TO_ALL: (*_sides(size, elements, own),),
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
