"""Which algorithm a collective takes, if nobody says: by operation, size and group, as MPI and NCCL choose.

Few rounds for short vectors, few bytes for long ones; the sizes at which the table turns are near MPICH's (R. Thakur,
R. Rabenseifner, W. Gropp, International Journal of High Performance Computing Applications 19, 2005). Users replace
the table, or name an algorithm for an operation, a range of sizes or a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms
from gradbed.hosts.systems.training.execution import Operation


class Rule(BaseModel):
    """An algorithm for some collectives. The first rule that fits counts; what is left out fits all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: Algorithm
    operation: Operation | None = None
    """None: all that the algorithm does."""
    from_bytes: int = Field(default=0, ge=0)
    """Of a rank's input (Operation), this size and above."""
    below_bytes: int | None = Field(default=None, ge=1)
    from_ranks: int = Field(default=1, ge=1)
    """Of the group."""
    to_ranks: int | None = Field(default=None, ge=1)
    group: tuple[int, ...] = ()
    """These ranks in this order alone; empty: any group."""
    power_of_two: bool = False
    """Groups of such sizes alone."""
    chunks: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _able(self) -> Rule:
        if self.operation is not None and self.algorithm not in algorithms(self.operation):
            able = " or ".join(other.value for other in algorithms(self.operation))
            raise ValueError(f"{self.algorithm.value} does no {self.operation.value}: choose {able}")
        if self.below_bytes is not None and self.below_bytes <= self.from_bytes:
            raise ValueError(f"no size is {self.from_bytes} bytes or more and below {self.below_bytes}")
        if self.to_ranks is not None and self.to_ranks < self.from_ranks:
            raise ValueError(f"no group has {self.from_ranks} to {self.to_ranks} ranks")
        return self

    def fits(self, operation: Operation, group: Sequence[int], size_bytes: int, *, has_racks: bool) -> bool:
        """has_racks: whether it is known which rack each rank is in."""
        ranks = len(group)
        return (
            (self.operation is operation if self.operation else self.algorithm in algorithms(operation))
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
