"""Steps of ranks that do the same in turn: kept once for the group, made for a rank when looked at.

In a ring rank r + 1 does what rank r does, with all peers and parts one further. A group of 1,024 has four million
steps; together its ranks keep one list of four thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from hosts.systems.training.collectives.schedule import Action, Step, part
from hosts.systems.training.collectives.structure import Structure, structure_of


@dataclass(frozen=True)
class PatternStep:
    """A step of rank 0. peer: how many places further the other rank is. part: of the vector, likewise; None: of no
    part. chunk: of the part."""

    action: Action
    peer: int
    part: int | None
    chunk: int = 0
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """What all ranks of a group do, one place further each. chunks: of each part."""

    steps: tuple[PatternStep, ...]
    group_size: int
    chunks: int = 1

    @cached_property
    def structure(self) -> Structure:
        """With peers as distances."""
        return structure_of([(step.action.value, step.peer, step.after) for step in self.steps])


class PatternSteps(Sequence[Step]):
    """A pattern's steps for one rank and a vector of so many elements."""

    def __init__(self, pattern: Pattern, rank: int, elements: int) -> None:
        self.pattern, self.rank, self.elements = pattern, rank, elements

    @property
    def structure(self) -> Structure:
        return self.pattern.structure

    @property
    def group_size(self) -> int:
        return self.pattern.group_size

    def __len__(self) -> int:
        return len(self.pattern.steps)

    def __iter__(self) -> Iterator[Step]:
        return (self._step(step) for step in self.pattern.steps)

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Step]: ...
    def __getitem__(self, place: int | slice) -> Step | Sequence[Step]:
        if isinstance(place, slice):
            return [self._step(step) for step in self.pattern.steps[place]]
        return self._step(self.pattern.steps[place])

    def _step(self, step: PatternStep) -> Step:
        start, stop = self._range(step)
        return Step(step.action, (self.rank + step.peer) % self.pattern.group_size, start, stop, step.after)

    def _range(self, step: PatternStep) -> tuple[int, int]:
        if step.part is None:
            return 0, 0
        size = self.pattern.group_size
        start, stop = part(self.elements, size, (self.rank + step.part) % size)
        if self.pattern.chunks == 1:
            return start, stop
        first, last = part(stop - start, self.pattern.chunks, step.chunk)
        return start + first, start + last
