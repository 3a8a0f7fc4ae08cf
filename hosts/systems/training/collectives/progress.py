"""How far a rank is in a collective: which sends may begin, and what is complete.

NICs carry out collectives by themselves (hosts/agents/queue_pairs.py). This is for models, which look at each
message (costs.py), and what NICs do is tested with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.queue_pairs import COPY, SEND
from gradbed.hosts.collectives.schedule import CollectiveAction, Schedule


class Send(NamedTuple):
    """A message that may leave."""

    step: int
    """Place of the send in the schedule."""
    peer: int
    """Place of the receiver in the group."""
    turn: int
    """Which message it is of those to that peer in this collective, from 0; it must travel with the message."""
    start: int
    """First element of the buffer that it sends."""
    stop: int
    """End of the elements that it sends."""


class Progress:
    """A schedule being carried out.

    buffer: (schedule.elements,) or longer, with the input in its place; None: only lengths travel. Whoever executes
    it begins all of ready() after making it and after each call of sent() and received(), until `done`. Each of these
    takes a time that depends on what becomes ready alone. What a send names does not change before sent(): the
    schedule sees to that.
    """

    def __init__(self, schedule: Schedule, buffer: NDArray[Any] | None = None) -> None:
        if buffer is not None and len(buffer) < schedule.elements:
            raise ValueError(f"the buffer has {len(buffer)} elements, the schedule {schedule.elements}")
        self.schedule, self.buffer = schedule, buffer
        self._steps = schedule.steps
        self._structure = structure = self._steps.structure
        self._waits = list(structure.waits)
        self._left = len(structure.waits)
        self._changes_left = self._left - structure.kinds.count(SEND)
        self._ready: list[int] = []
        self._early: dict[int, NDArray[Any] | None] = {}
        for step in structure.first:
            self._may_begin(step)

    @property
    def done(self) -> bool:
        """Return whether all steps are complete: the buffer may be used for something else."""
        return self._left == 0

    @property
    def has_result(self) -> bool:
        """Return whether all that changes the buffer is complete: what waits for the collective may begin.

        Sends may still be unacknowledged, or have yet to begin.
        """
        return self._changes_left == 0

    def ready(self) -> list[Send]:
        """The sends that may begin, in the order in which they became so; each is told once."""
        if not self._ready:
            return []
        places, self._ready = self._ready, []
        turn, steps = self._structure.turn, self._steps
        return [Send(place, steps.peer(place), turn[place], *steps.range(place)) for place in places]

    def sent(self, step: int) -> None:
        """The peer has all of this send."""
        self._complete(step)

    def received(self, peer: int, turn: int, data: NDArray[Any] | None = None) -> None:
        """Take in a whole message of a peer, its contents as well where there is a buffer (bytes, or of its type).

        ValueError: nothing like it is expected.
        """
        try:
            step = self._structure.receives[self._steps.key(peer)][turn]
        except (KeyError, IndexError):
            raise ValueError(f"message {turn} of rank {peer} is none of this collective") from None
        if self._waits[step]:
            self._early[step] = data
            return
        if self.buffer is not None:
            self._take(step, data, self.buffer)
        self._complete(step)

    def _may_begin(self, step: int) -> None:
        kind = self._structure.kinds[step]
        if kind == SEND:
            self._ready.append(step)
        elif kind == COPY:
            self._copy(step)
            self._complete(step)
        elif step in self._early:
            data = self._early.pop(step)
            if self.buffer is not None:
                self._take(step, data, self.buffer)
            self._complete(step)

    def _complete(self, step: int) -> None:
        self._left -= 1
        if self._structure.kinds[step] != SEND:
            self._changes_left -= 1
        waits = self._waits
        for dependent in self._structure.dependents[step]:
            waits[dependent] -= 1
            if waits[dependent] == 0:
                self._may_begin(dependent)

    def _take(self, step: int, data: NDArray[Any] | None, buffer: NDArray[Any]) -> None:
        what = self._steps[step]
        length = what.stop - what.start
        contents = np.empty(0, buffer.dtype) if data is None else data.view(buffer.dtype)
        if len(contents) != length:
            raise ValueError(f"step {step} takes {length} elements, got {len(contents)}")
        if what.action is CollectiveAction.ADD:
            buffer[what.start : what.stop] += contents
        else:
            buffer[what.start : what.stop] = contents

    def _copy(self, step: int) -> None:
        what = self._steps[step]
        if self.buffer is not None and what.stop > what.start:
            self.buffer[what.start : what.stop] = self.buffer[what.source : what.source + what.stop - what.start]
