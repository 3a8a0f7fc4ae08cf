"""What random programs are made of: types, places that hold values, what can be called, and what is in scope."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.fuzz.programs.constructs import CONSTRUCTS


@dataclass(frozen=True)
class Bits:
    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True)
class Bool:
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class Enum:
    """width: of a serializable one."""

    name: str
    members: tuple[str, ...]
    width: int | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Header:
    """varbit: the most bits of a last field of variable width."""

    name: str
    fields: tuple[tuple[str, Bits], ...]
    varbit: int = 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Void:
    def __str__(self) -> str:
        return "void"


Type = Bits | Bool | Enum | Struct | Header | Void
BOOL, VOID = Bool(), Void()


@dataclass(frozen=True)
class Place:
    """guard: what must be true for the value to be defined; None: it always is."""

    text: str
    type: Type
    writable: bool = True
    guard: str | None = None


@dataclass(frozen=True)
class HeaderPlace:
    """fixed: always valid, and it stays so."""

    text: str
    type: Header
    fixed: bool = False
    writable: bool = True


@dataclass(frozen=True)
class Stack:
    text: str
    type: Header
    size: int


@dataclass(frozen=True)
class Union_:
    text: str
    members: tuple[tuple[str, Header], ...]


@dataclass(frozen=True)
class Parameter:
    """direction: "in", "out", "inout", or "" for what the control plane gives."""

    direction: str
    type: Type
    name: str

    def __str__(self) -> str:
        return f"{self.direction} {self.type} {self.name}".strip()


@dataclass(frozen=True)
class Callee:
    """overload: what tells it apart from others of its name: "number" or "names" of arguments."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Type = VOID
    overload: str = ""


@dataclass(frozen=True)
class Array:
    """A register, counter or meter of four cells."""

    name: str
    type: Type = VOID
    size: int = 4


@dataclass(frozen=True)
class TableUse:
    """asked: what for in some place, "hit" or "action_run"."""

    name: str
    actions: tuple[str, ...]
    asked: set[str] = field(default_factory=set, compare=False, hash=False)


@dataclass
class Scope:
    """What a statement may name."""

    places: list[Place] = field(default_factory=list)
    headers: list[HeaderPlace] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=list)
    unions: list[Union_] = field(default_factory=list)
    functions: list[Callee] = field(default_factory=list)
    actions: list[Callee] = field(default_factory=list)
    controls: list[Callee] = field(default_factory=list)
    tables: list[TableUse] = field(default_factory=list)
    registers: list[Array] = field(default_factory=list)
    counters: list[Array] = field(default_factory=list)
    meters: list[Array] = field(default_factory=list)
    digests: list[Struct] = field(default_factory=list)
    result: Type | None = None
    """Of the function that the statement is in."""
    can_exit: bool = False
    can_return: bool = False
    can_hash: bool = False
    loops: int = 0
    pipeline: str = ""
    """"ingress" or "egress" where standard metadata is at hand."""

    def inner(self) -> Scope:
        """A block's: what it declares ends with it."""
        return replace(self, places=list(self.places), headers=list(self.headers))

    def of_type(self, kind: Type) -> list[Place]:
        return [place for place in self.places if place.type == kind]

    def scalars(self) -> list[Place]:
        return [place for place in self.places if isinstance(place.type, Bits)]


def flat(place: Place) -> Iterator[Place]:
    """The place, and if it is a struct all that is in it."""
    yield place
    if isinstance(place.type, Struct):
        for name, kind in place.type.fields:
            yield from flat(replace(place, text=f"{place.text}.{name}", type=kind))


def fields_of(header: HeaderPlace) -> Iterator[Place]:
    for name, kind in header.type.fields:
        guard = None if header.fixed else f"{header.text}.isValid()"
        yield Place(f"{header.text}.{name}", kind, header.writable, guard)


def mark(construct: str) -> str:
    """Says in the text that the line has this construct; `unmarked` takes it away again."""
    if construct not in CONSTRUCTS:
        raise LookupError(f"{construct} is no row of CONSTRUCTS")
    return f"\x01{construct}\x02"


def unmarked(text: str) -> tuple[str, dict[str, list[int]]]:
    """The program's text, and by construct the lines that have it."""
    lines: list[str] = []
    found: dict[str, list[int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        first, *rest = line.split("\x01")
        kept = [first]
        for part in rest:
            construct, _, after = part.partition("\x02")
            of_construct = found.setdefault(construct, [])
            if of_construct[-1:] != [number]:
                of_construct.append(number)
            kept.append(after)
        lines.append("".join(kept))
    return "\n".join(lines), found
