"""Probes: points of a program at which an instrumented build reports what packets do (runtime/trace.h).

An ordinary build is made with `Probes`, which emit nothing: its C text is what it would be without this module.
`RecordingProbes` number the points and keep the list, which is needed to read records again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import Primitive


@dataclass(frozen=True)
class ProbeStage:
    """The begin or end of a stage."""

    name: str
    """One of "parse", "ingress", "egress" and "deparse"."""


@dataclass(frozen=True)
class StateEntered:
    """A parser state is entered."""

    state: str


@dataclass(frozen=True)
class OperationDone:
    """An operation of a parser state is done."""

    state: str
    index: int


@dataclass(frozen=True)
class TransitionTaken:
    """A parser state is left."""

    state: str
    index: int | None
    """Position among its transitions in the model; None where a select has no case for the packet."""


@dataclass(frozen=True)
class ParserDone:
    """The parser has accepted or failed; checksums are verified next."""


@dataclass(frozen=True)
class TableApplied:
    """A table is applied."""

    table: str


@dataclass(frozen=True)
class CallMade:
    """An action is called by a pipeline, or by a table that can do nothing else."""

    node: str
    """Name of the node in the pipeline."""
    action_id: int


@dataclass(frozen=True)
class BranchTaken:
    """A condition of a pipeline is evaluated."""

    pipeline: str
    node: str
    """Name of the condition."""
    outcome: bool


@dataclass(frozen=True)
class PrimitiveDone:
    """A primitive of an action is done."""

    action_id: int
    index: int


@dataclass(frozen=True)
class DeparserPrimitiveDone:
    """A primitive of the deparser is done."""

    index: int


@dataclass(frozen=True)
class ChecksumDone:
    """A checksum is verified or updated."""

    index: int
    """Position among the checksums of the model."""


@dataclass(frozen=True)
class HeaderEmitted:
    """A header is emitted."""

    header: str


@dataclass(frozen=True)
class DigestSent:
    """A digest is sent."""

    id: int


Site = (
    ProbeStage
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
class ArrayAccess:
    """A use of one cell of an array by a primitive."""

    kind: str
    """One of "register", "counter" and "meter"."""
    name: str
    index: ex.Data
    writes: bool


class Probes:
    """Probes of an ordinary build, which emit nothing."""

    recording = False

    def at(self, site: Site, offset: str = "0") -> list[str]:
        """Report a site, after a possible change of the packet; `offset` is C for the bytes parsed so far."""
        return []

    def begin(self, stage: str, pass_word: int) -> list[str]:
        """Report the begin of a stage."""
        return []

    def end(self, stage: str) -> list[str]:
        """Report the end of a stage."""
        return []

    def table(self, name: str, number: int, with_key: bool) -> list[str]:
        """Report a table, between lookup and action. C names: entry, call, key."""
        return []

    def access(self, site: Site, access: ArrayAccess, number: int, index: str) -> str:
        """Announce that a primitive uses an array: its number among its kind, and C for the index of the cell."""
        return ""

    def accessed(self, site: Site) -> list[str]:
        """Report that a primitive wrote to the cell that `access` announced last."""
        return []

    def jump(self, site: Site, go: str, offset: str = "0") -> str:
        """Return the statement `go`, which leaves this site."""
        return go


class RecordingProbes(Probes):
    """Probes of an instrumented build. `sites` are in the order of their numbers in records."""

    recording = True

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self._numbers: dict[Site, int] = {}

    def at(self, site: Site, offset: str = "0") -> list[str]:
        return [f"gb_trace_step(sw, p, {self._number(site)}, {offset});"]

    def begin(self, stage: str, pass_word: int) -> list[str]:
        of_parser = "true" if stage == "parse" else "false"
        return [f"gb_trace_begin(sw, p, {self._number(ProbeStage(stage))}, {pass_word}, {of_parser});"]

    def end(self, stage: str) -> list[str]:
        with_frame = "true" if stage == "deparse" else "false"
        return [f"gb_trace_end(sw, p, {self._number(ProbeStage(stage))}, {with_frame});"]

    def table(self, name: str, number: int, with_key: bool) -> list[str]:
        key = "key" if with_key else "NULL"
        return [f"gb_trace_table(sw, p, {self._number(TableApplied(name))}, {number}, entry, call, {key});"]

    def access(self, site: Site, access: ArrayAccess, number: int, index: str) -> str:
        kind = f"GB_TRACE_{access.kind.upper()}"
        return f"gb_trace_access(sw, {self._number(site)}, {kind}, {number}, {index});"

    def accessed(self, site: Site) -> list[str]:
        return [f"gb_trace_accessed(sw, {self._number(site)});"]

    def jump(self, site: Site, go: str, offset: str = "0") -> str:
        return f"{{ {self.at(site, offset)[0]} {go} }}"

    def _number(self, site: Site) -> int:
        number = self._numbers.setdefault(site, len(self.sites))
        if number == len(self.sites):
            self.sites.append(site)
        return number


NO_PROBES = Probes()


def array_accesses(primitive: Primitive) -> list[ArrayAccess]:
    """Return the cells that a primitive uses, in the order of its parameters; the one that it writes comes last."""
    op, parameters = primitive.op, primitive.parameters
    if op == "register_read":
        return [*_cells(parameters[2]), ArrayAccess("register", _name(parameters[1]), _index(parameters[2]), False)]
    if op == "register_write":
        written = ArrayAccess("register", _name(parameters[0]), _index(parameters[1]), True)
        return [*_cells(parameters[1:]), written]
    if op == "count":
        return [*_cells(parameters[1]), ArrayAccess("counter", _name(parameters[0]), _index(parameters[1]), True)]
    if op == "execute_meter":
        return [*_cells(parameters[1]), ArrayAccess("meter", _name(parameters[0]), _index(parameters[1]), False)]
    if op == "assign" and isinstance(parameters[0], ex.RegisterCell):
        cell = parameters[0]
        return [*_cells(parameters[1]), ArrayAccess("register", cell.register, cell.index, True)]
    return _cells(parameters)


def _name(array: Any) -> str:
    return str(array.name)


def _index(value: Any) -> ex.Data:
    index: ex.Data = value
    return index


def _cells(value: object) -> list[ArrayAccess]:
    """Return the register cells that an expression reads, anywhere in it."""
    cells = (part for part in ex.walk(value) if isinstance(part, ex.RegisterCell))
    return [ArrayAccess("register", cell.register, cell.index, False) for cell in cells]
