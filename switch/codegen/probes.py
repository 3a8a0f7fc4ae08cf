"""Points of a program at which an instrumented build reports what packets do (runtime/trace.h).

An ordinary build is made with `Probes`, which emit nothing: its C text is what it would be without this module.
`RecordingProbes` number the points and keep the list, by which records are read again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from switch.codegen import expressions as ex
from switch.codegen.model import Primitive


@dataclass(frozen=True)
class Stage:
    """Begin or end of "parse", "ingress", "egress" or "deparse"."""

    name: str


@dataclass(frozen=True)
class StateEntered:
    state: str


@dataclass(frozen=True)
class OperationDone:
    """An operation of a parser state."""

    state: str
    index: int


@dataclass(frozen=True)
class TransitionTaken:
    """index: into the state's transitions in the model; None where a select has no case for the packet."""

    state: str
    index: int | None


@dataclass(frozen=True)
class ParserDone:
    """The parser has accepted or given up; checksums are verified next."""


@dataclass(frozen=True)
class TableApplied:
    table: str


@dataclass(frozen=True)
class CallMade:
    """An action called from a pipeline, or by a table that can do nothing else. table: None for the former."""

    node: str
    action_id: int


@dataclass(frozen=True)
class BranchTaken:
    """outcome of the condition that is called `node` in `pipeline`."""

    pipeline: str
    node: str
    outcome: bool


@dataclass(frozen=True)
class PrimitiveDone:
    action_id: int
    index: int


@dataclass(frozen=True)
class DeparserPrimitiveDone:
    index: int


@dataclass(frozen=True)
class ChecksumDone:
    """Position in the model's checksums."""

    index: int


@dataclass(frozen=True)
class HeaderEmitted:
    header: str


@dataclass(frozen=True)
class DigestSent:
    id: int


Site = (
    Stage
    | StateEntered
    | OperationDone
    | TransitionTaken
    | ParserDone
    | TableApplied
    | CallMade
    | BranchTaken
    | PrimitiveDone
    | DeparserPrimitiveDone
    | ChecksumDone
    | HeaderEmitted
    | DigestSent
)


@dataclass(frozen=True)
class Access:
    """A primitive's use of one cell of an array of kind "register", "counter" or "meter"."""

    kind: str
    name: str
    index: ex.Data
    writes: bool


class Probes:
    """What an ordinary build reports: nothing."""

    extra_phv_words = 0

    def step(self, site: Site, offset: str = "0") -> list[str]:
        """After something that may have changed the packet. offset: C for the bytes that the parser has taken."""
        return []

    def begin(self, stage: str, pass_word: int) -> list[str]:
        return []

    def end(self, stage: str) -> list[str]:
        return []

    def table(self, name: str, number: int, with_key: bool) -> list[str]:
        """Between the lookup and the action. C names: entry, call, key."""
        return []

    def before(self, site: Site, primitive: Primitive, array_number: Callable[[str, str], str]) -> list[str]:
        """Before a primitive. array_number: C for number and index of an array's cell, from its kind and name."""
        return []

    def after(self, site: Site, primitive: Primitive) -> list[str]:
        return []
