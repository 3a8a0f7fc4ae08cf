"""What a rank does in a collective: sends and receives of parts of one buffer, and what each waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


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


@dataclass(frozen=True)
class Schedule:
    """A rank's part of a collective. Do not modify: equal calls share it.

    steps: kept short, and made when looked at (collectives/steps.py). elements: length of its
    buffer. input_start, input_stop: where its input lies before; output_start, output_stop: its result after the last
    step (equal: none).
    """

    steps: Sequence[Step]
    elements: int
    input_start: int
    input_stop: int
    output_start: int
    output_stop: int


def part(elements: int, parts: int, number: int) -> tuple[int, int]:
    """Start and stop of one of the parts of a vector. Their lengths differ by at most one element."""
    return number * elements // parts, (number + 1) * elements // parts
