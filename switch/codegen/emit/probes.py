"""Points of a program at which an instrumented build reports what packets do (runtime/trace.h).

An ordinary build is made with `Probes`, which emit nothing: its C text is what it would be without this module.
`RecordingProbes` number the points and keep the list, by which records are read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import Primitive


@dataclass(frozen=True)
class ProbeStage:
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
    """A primitive's use of one cell of an array of kind "register", "counter" or "meter"."""

    kind: str
    name: str
    index: ex.Data
    writes: bool


class Probes:
    """What an ordinary build reports: nothing."""

    recording = False

    def at(self, site: Site, offset: str = "0") -> list[str]:
        """After something that may have changed the packet. offset: C for the bytes that the parser has taken."""
        return []

    def begin(self, stage: str, pass_word: int) -> list[str]:
        return []

    def end(self, stage: str) -> list[str]:
        return []

    def table(self, name: str, number: int, with_key: bool) -> list[str]:
        """Report a table, between lookup and action. C names: entry, call, key."""
        return []

    def access(self, site: Site, access: ArrayAccess, number: int, index: str) -> str:
        """Announce that a primitive uses an array. number: of the array among its kind; index: C for the cell's."""
        return ""

    def accessed(self, site: Site) -> list[str]:
        """Report that a primitive wrote to the cell that `access` announced last."""
        return []

    def jump(self, site: Site, go: str, offset: str = "0") -> str:
        """The statement `go`, which leaves this place."""
        return go


class RecordingProbes(Probes):
    """sites: by the number that they have in records."""

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
    """The cells that a primitive uses, in the order of its parameters; the one that it writes comes last."""
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
    """Register cells that an expression reads, anywhere in it."""
    cells = (part for part in ex.walk(value) if isinstance(part, ex.RegisterCell))
    return [ArrayAccess("register", cell.register, cell.index, False) for cell in cells]
