"""How the collectives of a job are done: by which algorithm, what each rank does, and with which values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation, Schedule
from gradbed.hosts.systems.training.collectives.algorithms import choose, schedule
from gradbed.hosts.systems.training.config import TrainingJob
from gradbed.hosts.systems.training.traces.graph import TraceNode

# ---- Contents, where sums are really made: int32 values that tell rank, place and collective apart ----
#
# Element i of rank r's input to the k-th collective is i (r + 1) + k, modulo 2^32. So every result has a formula
# (experiments/systems/training/checks.py), and none of a missing rank, a part at the wrong place and a result of
# another collective comes out the same.


VALUE_BYTES = 4
DIGEST_CHARACTERS = 32


def contents(rank: int, collective: int, values: int) -> NDArray[np.int32]:
    """A rank's input (values,)."""
    found: NDArray[np.int32] = (np.arange(values, dtype=np.int64) * (rank + 1) + collective).astype(np.int32)
    return found


def digest(values: NDArray[np.int32]) -> str:
    """Return the digest of a result, to be compared."""
    return hashlib.sha256(np.ascontiguousarray(values, "<i4").tobytes()).hexdigest()[:DIGEST_CHARACTERS]


# ---- Plans ----


INSTANCE_BITS = 14
GROUP_BITS = 31


@dataclass(frozen=True)
class Plan:
    """A rank's part."""

    schedule: Schedule
    group: tuple[int, ...]
    """Ranks by their places in the group."""
    places: Mapping[int, int]
    """Places by rank."""
    peers: frozenset[int]
    """Places of the ranks that it exchanges messages with."""
    element_bytes: int
    """Size of what the schedule counts."""

    @property
    def input_values(self) -> int:
        return self.schedule.input_stop - self.schedule.input_start


class Plans:
    """The plans of one job; its ranks share it."""

    def __init__(self, job: TrainingJob) -> None:
        self._job = job
        self._all = tuple(range(len(job.ranks)))
        self._of = lru_cache(maxsize=None)(self._make)
        self._places_of = lru_cache(maxsize=None)(lambda group: {rank: place for place, rank in enumerate(group)})

    def _racks_of(self, group: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._job.racks[rank] for rank in group)

    def group(self, node: TraceNode) -> tuple[int, ...]:
        """The ranks that take part."""
        return node.group or self._all

    def of(self, node: TraceNode, rank: int) -> Plan:
        """UserError if the algorithm cannot do it."""
        operation = node.operation or Operation.BARRIER
        return self._of(operation, node.size_bytes, self.group(node), node.root, rank)

    def _make(
        self, operation: Operation, size_bytes: int, group: tuple[int, ...], root: int | None, rank: int
    ) -> Plan:
        places: dict[int, int] = self._places_of(group)
        element_bytes = self._element_bytes(size_bytes)
        rule = choose(operation, group, size_bytes, rules=self._job.rules, has_racks=True)
        made = schedule(
            rule.algorithm,
            operation,
            len(group),
            places[rank],
            size_bytes // element_bytes,
            chunks=rule.chunks,
            root=0 if root is None else places[root],
            racks=self._racks_of(group),
        )
        peers = frozenset(made.steps.peers) - {places[rank]}
        return Plan(made, group, places, peers, element_bytes)

    def _element_bytes(self, size_bytes: int) -> int:
        """Return elements of 4, 2 or 1 bytes, so that parts of vectors are of whole values."""
        if not self._job.contents:
            return next(each for each in (4, 2, 1) if size_bytes % each == 0)
        if size_bytes % VALUE_BYTES:
            raise UserError(
                f"with contents a collective has a size of whole values of {VALUE_BYTES} bytes, not {size_bytes}"
            )
        return VALUE_BYTES


def group_numbers(groups: Iterable[tuple[int, ...]], rank: int) -> dict[tuple[int, ...], int]:
    """Numbers of groups (GROUP_BITS) that are the same at all their ranks, though none knows all groups.

    UserError if two get the same, which happens once in a thousand million pairs."""
    numbers: dict[tuple[int, ...], int] = {}
    by_number: dict[int, tuple[int, ...]] = {}
    for group in groups:
        text = ",".join(map(str, group)).encode()
        number = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big") >> 32 - GROUP_BITS
        if by_number.setdefault(number, group) != group:
            raise UserError(
                f"rank {rank}: the groups {by_number[number]} and {group} cannot be told apart; put their ranks in "
                "another order"
            )
        numbers[group] = number
    return numbers
