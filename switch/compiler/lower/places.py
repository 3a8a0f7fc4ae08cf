"""Where values live: fields of header instances, headers, stacks, unions; and values made of parts."""

from __future__ import annotations

from dataclasses import dataclass

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.symbols import Signature


@dataclass(slots=True, eq=False)
class HeaderPlace:
    """A header instance by its name. `union`: the union it is a member of."""

    type: t.Struct
    name: str
    union: UnionPlace | None = None


@dataclass(slots=True, eq=False)
class UnionPlace:
    type: t.Struct
    name: str
    members: dict[str, HeaderPlace]


@dataclass(slots=True, eq=False)
class StackPlace:
    type: t.Stack
    name: str
    elements: list[HeaderPlace | UnionPlace]


@dataclass(slots=True, eq=False)
class StructValue:
    """A struct or tuple, as variables or as values: its parts by name (of a tuple: "0", "1", ...)."""

    type: t.Type
    parts: dict[str, Value]


@dataclass(slots=True, eq=False)
class HeaderValue:
    """A header that is not stored: the values of its fields, or None for an invalid header."""

    type: t.Struct
    parts: dict[str, Value] | None


@dataclass(slots=True, eq=False)
class StackValue:
    """A stack given element by element; elements that are absent are invalid."""

    type: t.Stack
    elements: list[Value]


@dataclass(slots=True, eq=False)
class StackCursor:
    """stack.next or stack.last, in a parser; `member` once a member of a union stack is selected."""

    stack: StackPlace
    which: str
    member: str = ""


@dataclass(slots=True, eq=False)
class SliceOf:
    """Bits high..low of a scalar variable, as a place to write to."""

    base: Place
    high: int
    low: int


@dataclass(slots=True, eq=False)
class ElementOf:
    """An element of a stack whose index is known only at run time, or a part of it (`path` of member names)."""

    stack: StackPlace
    index: ir.Expr
    path: tuple[str, ...]


@dataclass(slots=True, eq=False)
class ExternObject:
    """An extern instance. `name`: as the control plane sees it; `arguments`: of its constructor, by name."""

    type: t.Extern
    name: str
    arguments: dict[str, Value]
    node: s.Instantiation
    kind: str  # the extern's name


@dataclass(slots=True, eq=False)
class Instance:
    """An instance of a parser or control: its constructor's arguments by parameter name."""

    signature: Signature
    name: str
    arguments: dict[str, Value]
    loc: int


@dataclass(slots=True, eq=False)
class TextValue:
    text: str


@dataclass(slots=True, eq=False)
class PacketValue:
    """packet_in or packet_out."""


@dataclass(slots=True, eq=False)
class Nothing:
    """A void result, or an argument that is not there."""


Place = ir.FieldRef | HeaderPlace | UnionPlace | StackPlace | StructValue | StackCursor | SliceOf | ElementOf
Value = (
    ir.Expr
    | HeaderPlace
    | UnionPlace
    | StackPlace
    | StructValue
    | HeaderValue
    | StackValue
    | StackCursor
    | SliceOf
    | ElementOf
    | ExternObject
    | Instance
    | TextValue
    | PacketValue
    | Nothing
)


# What an assignment can be made to; all of them are values too.
PLACES = (ir.FieldRef, HeaderPlace, UnionPlace, StackPlace, StructValue, StackCursor, SliceOf, ElementOf)


def header_names(value: Value) -> set[str]:
    """Names of the header instances whose fields a value reads; for scalars the fields as header.field."""
    if isinstance(value, ir.Expr):
        names: set[str] = set()
        for leaf in ir.reads(value):
            if isinstance(leaf, ir.FieldRef):
                names.add(leaf.header if leaf.header not in _SHARED else f"{leaf.header}.{leaf.field}")
            elif isinstance(leaf, ir.SameHeader):
                names |= {leaf.left, leaf.right}
            elif isinstance(leaf, (ir.StackLast, ir.LastIndex)):
                names.add(leaf.stack)
        return names
    if isinstance(value, HeaderPlace):
        return {value.name} | ({value.union.name} if value.union else set())
    if isinstance(value, UnionPlace):
        return {value.name}.union(*(header_names(member) for member in value.members.values()))
    if isinstance(value, StackPlace):
        return {value.name}.union(*map(header_names, value.elements))
    if isinstance(value, StructValue):
        return set().union(*map(header_names, value.parts.values()))
    if isinstance(value, HeaderValue):
        return set().union(*map(header_names, (value.parts or {}).values()))
    if isinstance(value, StackValue):
        return set().union(*map(header_names, value.elements))
    if isinstance(value, SliceOf):
        return header_names(value.base)
    if isinstance(value, (ElementOf, StackCursor)):
        return header_names(value.stack)
    return set()


# Header instances that hold unrelated variables side by side.
_SHARED = ("scalars", "standard_metadata")
