"""What a rank does in a collective: sends and receives of parts of one buffer, and what each waits for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import overload

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.systems.training.collectives.structure import Structure


class Action(str, Enum):
    """What a step does."""

    SEND = "send"
    RECEIVE = "receive"
    """What comes takes the place of what was there."""
    ADD = "add"
    """What comes is added to what was there."""
    COPY = "copy"
    """Of the rank's own elements from `source` on. An empty one only joins what it waits for."""


@dataclass(frozen=True)
class Step:
    """A send or receive of the elements start:stop of a rank's buffer. Without elements, it is an empty message.

    peer: the other rank's place in the group. The i-th send to a peer is for its i-th receive from this rank, in the
    order of steps; they may be sent in another order, so a message says its `turn` i (Progress). after: places of
    this rank's own steps, all earlier ones, that must be complete before it begins; a send is complete when its peer
    has it, a receive when all of it has come and is in the buffer. A message may come before its step may begin: then
    it waits. source: of a copy, whose peer is the rank.
    """

    action: Action
    peer: int
    start: int
    stop: int
    after: tuple[int, ...] = ()
    source: int = 0


class Steps(Sequence[Step], ABC):
    """A rank's steps, and by their places what can be told without making them (collectives/steps.py has two kinds).
    structure: what waits for what, for Progress; ranks that do the same share it."""

    structure: Structure

    @property
    def peers(self) -> frozenset[int]:
        """Whom the rank sends to or receives from."""
        return frozenset(map(self.peer, self.structure.first_of_each_peer))

    @abstractmethod
    def key(self, peer: int) -> int:
        """A peer's key in the structure."""

    @abstractmethod
    def peer(self, place: int) -> int:
        """Of a step."""

    @abstractmethod
    def range(self, place: int) -> tuple[int, int]:
        """start and stop of a step."""

    @abstractmethod
    def ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """start and stop of each step, (steps,) both."""

    @abstractmethod
    def sources(self) -> NDArray[np.int64]:
        """source of each step, (steps,)."""

    @abstractmethod
    def _step(self, place: int) -> Step: ...

    def __len__(self) -> int:
        return len(self.structure.waits)

    def __iter__(self) -> Iterator[Step]:
        return map(self._step, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Step]: ...
    def __getitem__(self, place: int | slice) -> Step | Sequence[Step]:
        places = range(len(self))[place]
        return self._step(places) if isinstance(places, int) else [self._step(each) for each in places]


@dataclass(frozen=True)
class Schedule:
    """A rank's part of a collective. Do not modify: equal calls share it.

    steps: made when looked at. elements: length of its
    buffer. input_start, input_stop: where its input lies before; output_start, output_stop: its result after the last
    step (equal: none).
    """

    steps: Steps
    elements: int
    input_start: int
    input_stop: int
    output_start: int
    output_stop: int


def part(elements: int, parts: int, number: int) -> tuple[int, int]:
    """Start and stop of one of the parts of a vector. Their lengths differ by at most one element."""
    return number * elements // parts, (number + 1) * elements // parts
