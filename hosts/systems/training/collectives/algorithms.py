"""The schedules there are: which algorithm does which operation, a rank's part of it, and which one is taken.

If nobody says which, operation, size and group do, as in MPI and NCCL: few rounds for short vectors, few bytes for
long ones. The sizes at which the table turns are near MPICH's (R. Thakur, R. Rabenseifner, W. Gropp, International
Journal of High Performance Computing Applications 19, 2005). Users replace the table, or name an algorithm for an
operation, a range of sizes or a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gradbed.common.errors import UserError, suggestion, unforeseen
from gradbed.common.plugins import load_plugin, plugins
from gradbed.hosts.collectives.schedule import (
    CollectiveCall,
    CollectiveStep,
    ExchangeSteps,
    Operation,
    Pattern,
    PatternSteps,
    Schedule,
    Steps,
    StoredSteps,
    part,
)
from gradbed.hosts.systems.training.collectives import (
    direct,
    halving_doubling,
    hierarchical,
    recursive_doubling,
    ring,
    trees,
)


class Algorithm(str, Enum):
    """Algorithms by which ranks carry out collectives among themselves."""

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


AnyAlgorithm = Algorithm | str
"""One of this module, or the name of another package's (entry points of the group gradbed.collectives)."""


def algorithm_named(text: str) -> AnyAlgorithm:
    """Return the algorithm of that name; ValueError if there is none."""
    names = algorithm_names()
    if text not in names:
        raise ValueError(f"no algorithm is called {text!r}{suggestion(text, names)}")
    return Algorithm(text) if text in _BUILT_IN else text


def algorithm_names() -> list[str]:
    """Return the names of all algorithms, those of other packages last."""
    return [*_BUILT_IN, *(name for name in plugins("collectives") if name not in _BUILT_IN)]


_BUILT_IN = [each.value for each in Algorithm]


Made = Sequence[CollectiveStep]
Maker = Callable[[CollectiveCall], Made]


def _rotated(pattern: Callable[[CollectiveCall], Pattern]) -> Maker:
    return lambda call: PatternSteps(pattern(call), call.rank, call.elements)


def _exchanged(*, pairwise: bool) -> Maker:
    return lambda call: ExchangeSteps(direct.all_to_all(call.group_size, pairwise=pairwise), call.rank, call.elements)


def _binary(*, up: bool, down: bool) -> Maker:
    def steps(call: CollectiveCall) -> Made:
        place = trees.binary_tree(call.group_size, call.rank, call.root)
        return trees.steps([place], call.elements, call.chunks, up=up, down=down)

    return steps


def _double(*, up: bool, down: bool) -> Maker:
    def steps(call: CollectiveCall) -> Made:
        if up and down:
            places = trees.two_trees(call.group_size, call.rank)
        else:
            places = trees.two_trees_below(call.group_size, call.rank, call.root)
        return trees.steps(places, call.elements, call.chunks, up=up, down=down)

    return steps


def _hierarchical(call: CollectiveCall) -> Made:
    if call.racks is None or len(call.racks) != call.group_size:
        raise UserError(f"a hierarchical all-reduce needs the rack of each of the {call.group_size} ranks")

    def among(algorithm: AnyAlgorithm) -> hierarchical.SubSteps:
        if algorithm is Algorithm.RECURSIVE_DOUBLING:
            raise UserError(
                "recursive-doubling needs room beside the vector, which parts of a hierarchical all-reduce have not: "
                "choose ring or halving-doubling"
            )

        def steps(operation: Operation, size: int, rank: int, elements: int) -> Made:
            return _maker(algorithm, operation)(CollectiveCall(size, rank, elements))

        return steps

    racks = hierarchical.Racks.of(call.racks)
    return hierarchical.all_reduce(
        racks,
        call.rank,
        call.elements,
        call.chunks,
        among(algorithm_named(call.inside)),
        among(algorithm_named(call.between)),
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


def _makers(algorithm: AnyAlgorithm) -> Mapping[Operation, Maker]:
    if isinstance(algorithm, Algorithm):
        return _MAKERS[algorithm]
    makers: Mapping[Operation, Maker] = load_plugin("collectives", algorithm)
    return makers


def _maker(algorithm: AnyAlgorithm, operation: Operation) -> Maker:
    maker = _makers(algorithm).get(operation)
    if maker is None:
        raise UserError(does_not(algorithm, operation))
    return maker


def does_not(algorithm: AnyAlgorithm, operation: Operation) -> str:
    """Say that an algorithm does not do an operation, and which ones do."""
    able = " or ".join(other.value for other in algorithms(operation))
    name = algorithm.value if isinstance(algorithm, Algorithm) else algorithm
    return f"{name} does no {operation.value}: choose {able}"


def algorithms(operation: Operation) -> tuple[Algorithm, ...]:
    """Return the algorithms of this module that do an operation."""
    return tuple(algorithm for algorithm in Algorithm if operation in _MAKERS[algorithm])


@lru_cache(8192)
def schedule(
    algorithm: AnyAlgorithm,
    operation: Operation,
    group_size: int,
    rank: int,
    elements: int,
    *,
    chunks: int = 1,
    root: int = 0,
    racks: tuple[int, ...] | None = None,
    inside: AnyAlgorithm = Algorithm.RING,
    between: AnyAlgorithm = Algorithm.RING,
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
    call = CollectiveCall(group_size, rank, vector, chunks, root, racks, inside, between)
    steps = maker(call) if isinstance(algorithm, Algorithm) else _made_by_plugin(algorithm, maker, call)
    laid_out = _laid_out(operation, group_size, rank, elements, rank == root, steps)
    if algorithm is not Algorithm.RECURSIVE_DOUBLING:
        return laid_out
    start, stop = recursive_doubling.output(group_size, rank, elements)
    return replace(laid_out, elements=2 * elements, output_start=start, output_stop=stop)


def _made_by_plugin(name: str, maker: Maker, call: CollectiveCall) -> Made:
    """Raise a UserError for what another package's algorithm does not take, and for its mistakes."""
    try:
        return maker(call)
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error
    except Exception as error:
        raise UserError(f"the plug-in {name!r} of gradbed.collectives failed: {unforeseen(error)}") from error


def _laid_out(operation: Operation, size: int, rank: int, elements: int, at_root: bool, steps: Made) -> Schedule:
    """Return the schedule of steps, with the places of input and output."""
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


# ---- Which algorithm a collective takes, if nobody says ----


class Rule(BaseModel):
    """An algorithm for some collectives. The first rule that fits counts; what is left out fits all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: Annotated[AnyAlgorithm, BeforeValidator(algorithm_named)]
    operation: Operation | None = None
    """None: all that the algorithm does."""
    from_bytes: int = Field(default=0, ge=0)
    """Smallest input of a rank, as Operation counts it."""
    below_bytes: int | None = Field(default=None, ge=1)
    from_ranks: int = Field(default=1, ge=1)
    """Smallest group."""
    to_ranks: int | None = Field(default=None, ge=1)
    group: tuple[int, ...] = ()
    """These ranks in this order alone; empty: any group."""
    power_of_two: bool = False
    """Groups of such sizes alone."""
    chunks: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _able(self) -> Rule:
        if self.operation is not None and self.operation not in _makers(self.algorithm):
            raise ValueError(does_not(self.algorithm, self.operation))
        if self.below_bytes is not None and self.below_bytes <= self.from_bytes:
            raise ValueError(f"no size is {self.from_bytes} bytes or more and below {self.below_bytes}")
        if self.to_ranks is not None and self.to_ranks < self.from_ranks:
            raise ValueError(f"no group has {self.from_ranks} to {self.to_ranks} ranks")
        return self

    def fits(self, operation: Operation, group: Sequence[int], size_bytes: int, *, has_racks: bool) -> bool:
        """has_racks: whether it is known which rack each rank is in."""
        ranks = len(group)
        return (
            (self.operation is operation if self.operation else operation in _makers(self.algorithm))
            and self.from_bytes <= size_bytes
            and (self.below_bytes is None or size_bytes < self.below_bytes)
            and self.from_ranks <= ranks
            and (self.to_ranks is None or ranks <= self.to_ranks)
            and (not self.group or self.group == tuple(group))
            and not (self.power_of_two and ranks & (ranks - 1))
            and (has_racks or self.algorithm is not Algorithm.HIERARCHICAL)
        )


def _rule(algorithm: Algorithm, operation: Operation, below_bytes: int | None = None, *, chunks: int = 1) -> Rule:
    return Rule(algorithm=algorithm, operation=operation, below_bytes=below_bytes, chunks=chunks)


DEFAULT_TABLE: tuple[Rule, ...] = (
    _rule(Algorithm.HALVING_DOUBLING, Operation.ALL_REDUCE, 512 << 10),
    _rule(Algorithm.RING, Operation.ALL_REDUCE),
    _rule(Algorithm.HALVING_DOUBLING, Operation.REDUCE_SCATTER, 512 << 10),
    _rule(Algorithm.RING, Operation.REDUCE_SCATTER),
    _rule(Algorithm.HALVING_DOUBLING, Operation.ALL_GATHER, 64 << 10),
    _rule(Algorithm.RING, Operation.ALL_GATHER),
    _rule(Algorithm.DIRECT, Operation.ALL_TO_ALL, 32 << 10),
    _rule(Algorithm.PAIRWISE, Operation.ALL_TO_ALL),
    _rule(Algorithm.BINARY_TREE, Operation.BROADCAST, 64 << 10),
    _rule(Algorithm.DOUBLE_BINARY_TREE, Operation.BROADCAST, chunks=16),
    _rule(Algorithm.BINARY_TREE, Operation.REDUCE, 64 << 10),
    _rule(Algorithm.DOUBLE_BINARY_TREE, Operation.REDUCE, chunks=16),
    _rule(Algorithm.DIRECT, Operation.GATHER),
    _rule(Algorithm.DIRECT, Operation.SCATTER),
    _rule(Algorithm.DISSEMINATION, Operation.BARRIER),
)
"""Of all operations, for any size and group. An all-gather's size is one rank's part."""


def choose(
    operation: Operation,
    group: Sequence[int],
    size_bytes: int,
    *,
    rules: Iterable[Rule] = (),
    table: Iterable[Rule] = DEFAULT_TABLE,
    has_racks: bool = False,
) -> Rule:
    """The first rule that fits: of the user's, then of the table. group: its ranks. UserError if none does."""
    for rule in (*rules, *table):
        if rule.fits(operation, group, size_bytes, has_racks=has_racks):
            return rule
    raise UserError(
        f"no rule of the table of algorithms fits {operation.value} of {size_bytes} bytes by {len(group)} ranks"
    )
