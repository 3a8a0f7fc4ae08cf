"""What a rank does in a collective: sends and receives of parts of one buffer, and what each waits for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Action(str, Enum):
    """What a step does."""

    SEND = "send"
    RECEIVE = "receive"
    """What comes takes the place of what was there."""
    ADD = "add"
    """What comes is added to what was there."""


@dataclass(frozen=True)
class Step:
    """A send or receive of the elements start:stop of a rank's buffer.

    peer: the other rank's place in the group. Messages between two ranks of one collective match in the order of
    their steps. after: places of this rank's own steps that must be complete before it begins; a send is complete
    when its peer has it, a receive when all of it has come and is added.
    """

    action: Action
    peer: int
    start: int
    stop: int
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """A rank's part of a collective.

    elements: length of its buffer. input_start, input_stop: where its input lies before; output_start, output_stop:
    its result after the last step (equal: none).
    """

    steps: tuple[Step, ...]
    elements: int
    input_start: int
    input_stop: int
    output_start: int
    output_stop: int
