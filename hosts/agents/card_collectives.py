"""Collectives that a host's card carries out by itself, as cards do that have triggered operations (Portals 4).

The card sends each message as soon as what it waits for has come, or was acknowledged. So an agent is told of the
result alone, and not of each of a thousand messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TURN_BITS = 18
"""Of a message's tag: which of those between two ranks in a collective it is."""
SEND, RECEIVE, ADD, COPY = range(4)
"""Kinds of steps: a message to a peer; one from it that takes the place of what was there, or is added to that; a
move within the buffer."""

Lists = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""Lists one behind the other, and before that where each begins and the last one ends."""


@dataclass(frozen=True, eq=False)
class CardSchedule:
    """What of a collective ranks share that do the same. Do not modify.

    kinds (steps,). waits (steps,): for how many others each waits. dependents: which wait for each. peer (steps,):
    the other rank, as a place among the peers. turn (steps,): of a send, which of those to its peer it is. receives:
    for each peer the receives from it, in order.
    """

    kinds: NDArray[np.uint8]
    waits: NDArray[np.uint32]
    dependents: Lists
    peer: NDArray[np.uint32]
    turn: NDArray[np.uint32]
    receives: Lists


@dataclass(frozen=True, eq=False)
class CardCollective:
    """One rank's part. pairs (peers,): its queue pairs to them. size_bytes (steps,): of each step. buffer: of int32,
    with the rank's input in its place; None: only lengths travel. offset_bytes (steps,): where in the buffer a step's
    bytes are; source_bytes (steps,): where a copy takes them from. Both may be left out without a buffer."""

    schedule: CardSchedule
    pairs: NDArray[np.uint32]
    size_bytes: NDArray[np.uint64]
    buffer: NDArray[np.int32] | None = None
    offset_bytes: NDArray[np.uint64] | None = None
    source_bytes: NDArray[np.uint64] | None = None


class CollectiveCounts(NamedTuple):
    """messages, bytes: that collectives have sent. early: messages that came for collectives that have not begun."""

    messages: int
    bytes: int
    early: int
