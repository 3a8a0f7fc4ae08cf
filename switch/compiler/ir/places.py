"""Where values live: fields of header instances, headers, stacks, unions; and values made of parts."""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import expressions as ir
from gradbed.switch.compiler.symbols import ExternInstanceType, Signature


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

    type: ExternInstanceType
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


# Header instances that hold unrelated variables side by side.
_SHARED = ("scalars", "standard_metadata")


def header_names(value: Value) -> set[str]:
    """Names of the header instances whose fields a value reads; for scalars the fields as header.field."""
    match value:
        case ir.Expr():
            return _names_read(value)
        case HeaderPlace():
            return {value.name} | ({value.union.name} if value.union else set())
        case UnionPlace():
            return {value.name}.union(*map(header_names, value.members.values()))
        case StackPlace():
            return {value.name}.union(*map(header_names, value.elements))
        case StructValue():
            return set().union(*map(header_names, value.parts.values()))
        case HeaderValue():
            return set().union(*map(header_names, (value.parts or {}).values()))
        case StackValue():
            return set().union(*map(header_names, value.elements))
        case SliceOf():
            return header_names(value.base)
        case ElementOf():
            return header_names(value.stack) | _names_read(value.index)
        case StackCursor():
            return header_names(value.stack)
        case _:
            return set()


def _names_read(expr: ir.Expr) -> set[str]:
    names: set[str] = set()
    for leaf in ir.reads(expr):
        match leaf:
            case ir.FieldRef(header=header, field=name):
                names.add(f"{header}.{name}" if header in _SHARED else header)
            case ir.SameHeader(left=left, right=right):
                names |= {left, right}
            case ir.StackLast(stack=stack) | ir.LastIndex(stack=stack):
                names.add(stack)
    return names


def header_field(type_: t.Type, header: str, name: str) -> Value:
    """A field of a header; one that is a struct has a field per part."""
    if isinstance(type_, t.Struct):
        return StructValue(
            type_,
            {part: header_field(inner, header, f"{name}.{part}") for part, inner in type_.fields.items()},
        )
    return ir.FieldRef(t.representation(type_), header, name)


def default_value(type_: t.Type) -> Value:
    """Zero, false, the first member, NoError; headers are invalid."""
    if isinstance(type_, t.Struct):
        if type_.kind != "struct":
            return HeaderValue(type_, None)
        return StructValue(type_, {name: default_value(inner) for name, inner in type_.fields.items()})
    if isinstance(type_, t.Tuple):
        return StructValue(type_, {str(index): default_value(inner) for index, inner in enumerate(type_.elements)})
    if isinstance(type_, t.Stack):
        return StackValue(type_, [])
    return ir.Const(t.representation(type_), 0)


def value_type(value: Value) -> t.Type | None:
    if isinstance(value, (StructValue, HeaderPlace, HeaderValue, UnionPlace, StackPlace, StackValue, ir.Expr)):
        return value.type
    return None
