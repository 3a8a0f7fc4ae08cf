"""Expressions of BMv2 JSON.

Data are integers without bound, as BMv2 computes them; only writing to a field, register or parameter truncates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# ---- Headers and unions ----


@dataclass(frozen=True)
class NamedHeader:
    """A header by its name."""

    name: str


@dataclass(frozen=True)
class StackElement:
    """stack[index]."""

    stack: str
    index: Data | None
    """None for the last valid element."""


@dataclass(frozen=True)
class NamedUnion:
    """A header union by its name."""

    name: str


@dataclass(frozen=True)
class UnionStackElement:
    """stack[index] of a stack of header unions."""

    stack: str
    index: Data | None
    """None for the last valid element."""


@dataclass(frozen=True)
class UnionMember:
    """A member of a header union."""

    union: UnionReference
    member: int


HeaderReference = NamedHeader | StackElement | UnionMember
UnionReference = NamedUnion | UnionStackElement

# ---- Data ----


@dataclass(frozen=True)
class Constant:
    """A constant."""

    value: int


@dataclass(frozen=True)
class FieldReference:
    """A field of a header."""

    header: HeaderReference
    index: int
    """Position in the header type."""


@dataclass(frozen=True)
class RuntimeArgument:
    """A parameter of the action that is running."""

    index: int


@dataclass(frozen=True)
class RegisterCell:
    """A cell of a register array."""

    register: str
    index: Data


@dataclass(frozen=True)
class Lookahead:
    """Bits of the packet ahead of the parser."""

    offset: int
    """Bits from the position of the parser."""
    width: int
    """Number of bits."""


@dataclass(frozen=True)
class StackCount:
    """The number of elements of a header stack (or stack of unions) that were extracted or pushed: `next` of BMv2."""

    stack: str


@dataclass(frozen=True)
class Arithmetic:
    """A binary operation."""

    op: str
    """+ - * / % & | ^ << >>"""
    left: Data
    right: Data


@dataclass(frozen=True)
class Complement:
    """The bitwise complement."""

    operand: Data


@dataclass(frozen=True)
class CastOperation:
    """A cast."""

    op: str
    """two_comp_mod, usat_cast or sat_cast."""
    operand: Data
    width: int
    """Width of the result in bits."""


@dataclass(frozen=True)
class Choice:
    """A conditional expression on data."""

    condition: Boolean
    if_true: Data
    if_false: Data


@dataclass(frozen=True)
class FromBoolean:
    """A truth value as 1 or 0."""

    operand: Boolean


Data = (
    Constant
    | FieldReference
    | RuntimeArgument
    | RegisterCell
    | Lookahead
    | StackCount
    | Arithmetic
    | Complement
    | CastOperation
    | Choice
    | FromBoolean
)

# ---- Booleans ----


@dataclass(frozen=True)
class Truth:
    """A constant truth value."""

    value: bool


@dataclass(frozen=True)
class Comparison:
    """A comparison of data."""

    op: str
    """== != < <= > >="""
    left: Data
    right: Data


@dataclass(frozen=True)
class NonZero:
    """Data as a truth value."""

    operand: Data


@dataclass(frozen=True)
class Logic:
    """A binary operation on truth values."""

    op: str
    """and, or, == or !=."""
    left: Boolean
    right: Boolean


@dataclass(frozen=True)
class Negation:
    """The logical negation."""

    operand: Boolean


@dataclass(frozen=True)
class BooleanChoice:
    """A conditional expression on truth values."""

    condition: Boolean
    if_true: Boolean
    if_false: Boolean


@dataclass(frozen=True)
class IsValid:
    """The validity of a header."""

    header: HeaderReference


@dataclass(frozen=True)
class IsUnionValid:
    """The validity of a header union: one of its members is valid."""

    union: UnionReference


@dataclass(frozen=True)
class HeadersEqual:
    """Equality of two headers: validity, type and all fields."""

    left: HeaderReference
    right: HeaderReference


@dataclass(frozen=True)
class UnionsEqual:
    """Equality of two header unions."""

    left: UnionReference
    right: UnionReference


@dataclass(frozen=True)
class VariableFieldsEqual:
    """Equality of variable-length fields, in length and contents (P4_16 1.2.5, section 8.10)."""

    left: FieldReference
    right: FieldReference


Boolean = (
    Truth
    | Comparison
    | NonZero
    | Logic
    | Negation
    | BooleanChoice
    | IsValid
    | IsUnionValid
    | HeadersEqual
    | UnionsEqual
    | VariableFieldsEqual
)


# ---- Names of objects ----


@dataclass(frozen=True)
class HeaderStack:
    name: str


@dataclass(frozen=True)
class UnionStack:
    name: str


@dataclass(frozen=True)
class Calculation:
    name: str


@dataclass(frozen=True)
class RegisterReference:
    name: str


@dataclass(frozen=True)
class CounterReference:
    name: str


@dataclass(frozen=True)
class MeterReference:
    name: str


@dataclass(frozen=True)
class ExternInstance:
    name: str


@dataclass(frozen=True)
class Text:
    value: str


@dataclass(frozen=True)
class Vector:
    items: tuple[Parameter, ...]


Parameter = (
    Data
    | Boolean
    | HeaderReference
    | UnionReference
    | HeaderStack
    | UnionStack
    | Calculation
    | RegisterReference
    | CounterReference
    | MeterReference
    | ExternInstance
    | Text
    | Vector
)

# ---- Walking ----


def walk(value: object, *, stop: tuple[type, ...] = ()) -> Iterator[object]:
    """Yield the parts of a parameter, or of a tuple of them, from left to right, then itself.

    Parts of kinds in `stop` are left out.
    """
    if not isinstance(value, stop):
        parts: Iterable[object] = ()
        if isinstance(value, tuple):
            parts = value
        elif dataclasses.is_dataclass(value):
            parts = (getattr(value, field.name) for field in dataclasses.fields(value))
        for part in parts:
            yield from walk(part, stop=stop)
    yield value
