"""Values of the intermediate representation: expressions, l-values, and values that consist of several parts.

Expressions have the meaning of P4 (fixed widths, wrapping), with types Bit, Int, BOOL or Varbit; the emitter adds
what the unbounded arithmetic of BMv2 needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.symbols import ExternInstanceType, Signature

# ---- Expressions ----


@dataclass(slots=True, frozen=True)
class Expr:
    """An expression without side effects: calls are lowered to statements before it."""

    type: t.Type


@dataclass(slots=True, frozen=True)
class Const(Expr):
    """A constant."""

    value: int
    name: str = ""
    """Name of the member, for an enum without an underlying type."""


@dataclass(slots=True, frozen=True)
class FieldRef(Expr):
    """A field of a header instance."""

    header: str
    field: str
    """Name of the field; "$valid$" is the validity of the header."""


@dataclass(slots=True, frozen=True)
class RuntimeData(Expr):
    """An argument of the action, as the control plane gives it."""

    index: int
    """Position among the parameters of the action."""


@dataclass(slots=True, frozen=True)
class StackLast(Expr):
    """A field of the last extracted element of a stack; in parsers only."""

    stack: str
    member: str
    """Member of the union, for a stack of unions; otherwise empty."""
    field: str


@dataclass(slots=True, frozen=True)
class LastIndex(Expr):
    """`stack.lastIndex` (P4_16 1.2.5, section 8.18)."""

    stack: str
    of_unions: bool = False


@dataclass(slots=True, frozen=True)
class Operation(Expr):
    """A unary or binary operation."""

    operator: str
    """A P4 operator, "neg", "~", "!", "cast" or "slice"."""
    left: Expr
    right: Expr | None = None
    low: int = 0
    """Lowest bit of a slice."""


@dataclass(slots=True, frozen=True)
class LoweredChoice(Expr):
    """A conditional expression."""

    condition: Expr
    if_true: Expr
    if_false: Expr


@dataclass(slots=True, frozen=True)
class SameHeader(Expr):
    """Equality of two headers, in validity and all fields; used where one of the fields is a varbit."""

    left: str
    right: str


def is_simple(expr: Expr) -> bool:
    """Return whether the expression can be evaluated again at no cost."""
    return isinstance(expr, (Const, FieldRef, RuntimeData))


def operands(expr: Expr) -> Iterator[Expr]:
    """Yield the operands of an expression, from left to right."""
    if isinstance(expr, Operation):
        yield expr.left
        if expr.right is not None:
            yield expr.right
    elif isinstance(expr, LoweredChoice):
        yield expr.condition
        yield expr.if_true
        yield expr.if_false


def reads(expr: Expr) -> Iterator[Expr]:
    """Yield all leaves of an expression."""
    pending = [expr]
    while pending:
        current = pending.pop()
        inner = list(operands(current))
        if inner:
            pending.extend(inner)
        else:
            yield current


# ---- L-values and composite values ----


@dataclass(slots=True, eq=False)
class HeaderVariable:
    """A header instance."""

    type: t.Struct
    name: str
    union: UnionVariable | None = None
    """The union that it is a member of."""


@dataclass(slots=True, eq=False)
class UnionVariable:
    """An instance of a header union."""

    type: t.Struct
    name: str
    members: dict[str, HeaderVariable]


@dataclass(slots=True, eq=False)
class StackVariable:
    """A header stack."""

    type: t.Stack
    name: str
    elements: list[HeaderVariable | UnionVariable]


@dataclass(slots=True, eq=False)
class StructValue:
    """A struct or tuple, stored or not."""

    type: t.Type
    parts: dict[str, Value]
    """Fields by name; those of a tuple are "0", "1", ..."""


@dataclass(slots=True, eq=False)
class HeaderValue:
    """A header that is not stored."""

    type: t.Struct
    parts: dict[str, Value] | None
    """Fields by name; None for an invalid header."""


@dataclass(slots=True, eq=False)
class StackValue:
    """A stack given element by element."""

    type: t.Stack
    elements: list[Value]
    """The first elements; elements after them are invalid."""


@dataclass(slots=True, eq=False)
class StackCursor:
    """`stack.next` or `stack.last` in a parser."""

    stack: StackVariable
    which: str
    """"next" or "last"."""
    member: str = ""
    """Member of the union, once it is selected, for a stack of unions."""


@dataclass(slots=True, eq=False)
class SliceOf:
    """Bits high..low of a scalar variable, as an l-value."""

    base: LValue
    high: int
    low: int


@dataclass(slots=True, eq=False)
class ElementOf:
    """An element of a stack with an index known only at run time, or a part of it."""

    stack: StackVariable
    index: Expr
    path: tuple[str, ...]
    """Names of members that lead from the element to the part."""


@dataclass(slots=True, eq=False)
class ExternObject:
    """An extern instance."""

    type: ExternInstanceType
    name: str
    """Name in the control plane."""
    arguments: dict[str, Value]
    """Arguments of the constructor by parameter name."""
    node: s.Instantiation
    kind: str  # the extern's name
    """Name of the extern."""


@dataclass(slots=True, eq=False)
class Instance:
    """An instance of a parser or control."""

    signature: Signature
    name: str
    arguments: dict[str, Value]
    """Arguments of the constructor by parameter name."""
    loc: int


@dataclass(slots=True, eq=False)
class TextValue:
    """A string."""

    text: str


@dataclass(slots=True, eq=False)
class PacketValue:
    """packet_in or packet_out."""


@dataclass(slots=True, eq=False)
class NoValue:
    """A void result, or an argument that is absent."""


LValue = FieldRef | HeaderVariable | UnionVariable | StackVariable | StructValue | StackCursor | SliceOf | ElementOf
Value = (
    Expr
    | HeaderVariable
    | UnionVariable
    | StackVariable
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
    | NoValue
)


# What an assignment can be made to; all of them are values too.
LVALUES = (FieldRef, HeaderVariable, UnionVariable, StackVariable, StructValue, StackCursor, SliceOf, ElementOf)


# Header instances that hold unrelated variables side by side.
_SHARED = ("scalars", "standard_metadata")


def header_names(value: Value) -> set[str]:
    """Return the names of the header instances that a value reads; for scalars their fields, as header.field."""
    match value:
        case Expr():
            return _names_read(value)
        case HeaderVariable():
            return {value.name} | ({value.union.name} if value.union else set())
        case UnionVariable():
            return {value.name}.union(*map(header_names, value.members.values()))
        case StackVariable():
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


def _names_read(expr: Expr) -> set[str]:
    names: set[str] = set()
    for leaf in reads(expr):
        match leaf:
            case FieldRef(header=header, field=name):
                names.add(f"{header}.{name}" if header in _SHARED else header)
            case SameHeader(left=left, right=right):
                names |= {left, right}
            case StackLast(stack=stack) | LastIndex(stack=stack):
                names.add(stack)
    return names


def header_field(type_: t.Type, header: str, name: str) -> Value:
    """Return a field of a header; a field that is a struct has one field for each part."""
    if isinstance(type_, t.Struct):
        return StructValue(
            type_,
            {part: header_field(inner, header, f"{name}.{part}") for part, inner in type_.fields.items()},
        )
    return FieldRef(t.representation(type_), header, name)


def default_value(type_: t.Type) -> Value:
    """Return the default value of a type (P4_16 1.2.5, section 7.3)."""
    if isinstance(type_, t.Struct):
        if type_.kind != "struct":
            return HeaderValue(type_, None)
        return StructValue(type_, {name: default_value(inner) for name, inner in type_.fields.items()})
    if isinstance(type_, t.Tuple):
        return StructValue(type_, {str(index): default_value(inner) for index, inner in enumerate(type_.elements)})
    if isinstance(type_, t.Stack):
        return StackValue(type_, [])
    return Const(t.representation(type_), 0)


def value_type(value: Value) -> t.Type | None:
    """Return the type of a value, if it has one."""
    if isinstance(value, (StructValue, HeaderVariable, HeaderValue, UnionVariable, StackVariable, StackValue, Expr)):
        return value.type
    return None
