"""What of a collective cards take (runtime/engine/transport/collectives/collectives.h)."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.switch.engine.collectives_abi import COPY, TURN_BITS, CollectiveStruct, ScheduleStruct
from gradbed.switch.engine.queue_pairs_abi import MOST_MESSAGE_BYTES


class CardSchedule(Protocol):
    """gradbed.hosts.agents.queue_pairs.CardSchedule."""

    @property
    def kinds(self) -> NDArray[np.uint8]: ...
    @property
    def waits(self) -> NDArray[np.uint32]: ...
    @property
    def dependents(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
    @property
    def peer(self) -> NDArray[np.uint32]: ...
    @property
    def turn(self) -> NDArray[np.uint32]: ...
    @property
    def receives(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...


class CardCollective(Protocol):
    """gradbed.hosts.agents.queue_pairs.CardCollective."""

    @property
    def schedule(self) -> CardSchedule: ...
    @property
    def pairs(self) -> NDArray[np.uint32]: ...
    @property
    def size_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def buffer(self) -> NDArray[np.int32] | None: ...
    @property
    def offset_bytes(self) -> NDArray[np.uint64] | None: ...
    @property
    def source_bytes(self) -> NDArray[np.uint64] | None: ...


def check_collective(collective: CardCollective) -> None:
    """UserError if messages are too long or too many."""
    schedule = collective.schedule
    if collective.size_bytes.max(initial=0, where=schedule.kinds != COPY) > MOST_MESSAGE_BYTES:
        raise UserError("a message has at most 2^31 bytes: a collective needs more ranks or chunks for its size")
    if schedule.turn.max(initial=0) >= 1 << TURN_BITS:
        raise UserError(f"a collective has at most {1 << TURN_BITS:,} messages between two ranks: take fewer chunks")


def collective_struct(tag: int, collective: CardCollective) -> tuple[CollectiveStruct, tuple[object, ...]]:
    """And what has to stay until the collective has ended."""
    schedule = collective.schedule
    by_pair = np.argsort(collective.pairs, kind="stable").astype(np.uint32)
    of_schedule: tuple[NDArray[Any], ...] = (
        *(schedule.kinds, schedule.waits, *schedule.dependents),
        *(schedule.peer, schedule.turn, *schedule.receives),
    )
    struct = ScheduleStruct(len(schedule.kinds), len(schedule.receives[0]) - 1, *map(_pointer, of_schedule))
    arrays: tuple[NDArray[Any] | None, ...] = (
        *(collective.pairs, by_pair, collective.size_bytes),
        *(collective.buffer, collective.offset_bytes, collective.source_bytes),
    )
    return CollectiveStruct(tag, ctypes.pointer(struct), *map(_pointer, arrays)), (arrays, schedule)


def _pointer(array: NDArray[Any] | None) -> int | None:
    if array is not None and not array.flags.c_contiguous:
        raise ValueError("an array of a collective is not C-contiguous")
    return None if array is None else array.ctypes.data
