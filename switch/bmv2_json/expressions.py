"""The expressions of BMv2 JSON as values.

Data are integers without bound, as BMv2 computes them; only writing to a field, register or parameter truncates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# ---- Headers and unions ----


@dataclass(frozen=True)
class NamedHeader:
    name: str


@dataclass(frozen=True)
class StackElement:
    """stack[index]; index None is the last valid element."""

    stack: str
    index: Data | None


@dataclass(frozen=True)
class NamedUnion:
    name: str


@dataclass(frozen=True)
class UnionStackElement:
    """stack[index] of a stack of header unions; index None is the last valid element."""

    stack: str
    index: Data | None


@dataclass(frozen=True)
class UnionMember:
    union: UnionReference
    member: int


HeaderReference = NamedHeader | StackElement | UnionMember
UnionReference = NamedUnion | UnionStackElement

# ---- Data ----


@dataclass(frozen=True)
class Constant:
    value: int


@dataclass(frozen=True)
class FieldReference:
    """A field of a header by its position in the header type."""

    header: HeaderReference
    index: int


@dataclass(frozen=True)
class RuntimeArgument:
    """A parameter of the action that is running."""

    index: int


@dataclass(frozen=True)
class RegisterCell:
    register: str
    index: Data


@dataclass(frozen=True)
class Lookahead:
    """Bits of the packet from the parser's position on."""

    offset: int
    width: int


@dataclass(frozen=True)
class StackCount:
    """The number of elements of a header stack (or stack of unions) that were extracted or pushed: BMv2's `next`."""

    stack: str


@dataclass(frozen=True)
class Arithmetic:
    """op: + - * / % & | ^ << >>"""

    op: str
    left: Data
    right: Data


@dataclass(frozen=True)
class Complement:
    operand: Data


@dataclass(frozen=True)
class CastOperation:
    """op: two_comp_mod, usat_cast, sat_cast"""

    op: str
    operand: Data
    width: int


@dataclass(frozen=True)
class Choice:
    condition: Boolean
    if_true: Data
    if_false: Data


@dataclass(frozen=True)
class FromBoolean:
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
    value: bool


@dataclass(frozen=True)
class Comparison:
    """op: == != < <= > >="""

    op: str
    left: Data
    right: Data


@dataclass(frozen=True)
class NonZero:
    operand: Data


@dataclass(frozen=True)
class Logic:
    """op: and, or, ==, !="""

    op: str
    left: Boolean
    right: Boolean


@dataclass(frozen=True)
class Negation:
    operand: Boolean


@dataclass(frozen=True)
class BooleanChoice:
    condition: Boolean
    if_true: Boolean
    if_false: Boolean


@dataclass(frozen=True)
class IsValid:
    header: HeaderReference


@dataclass(frozen=True)
class IsUnionValid:
    union: UnionReference


@dataclass(frozen=True)
class HeadersEqual:
    left: HeaderReference
    right: HeaderReference


@dataclass(frozen=True)
class UnionsEqual:
    left: UnionReference
    right: UnionReference


@dataclass(frozen=True)
class VariableFieldsEqual:
    """Variable-length fields: equal in length and contents (P4_16, 8.10)."""

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
    """Yield all that a parameter, or a tuple of them, is made of, from left to right, and then itself.

    stop: kinds whose insides are left out.
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
