"""The code between the syntax tree and BMv2 JSON.

Expressions have P4's meaning (fixed widths, wrapping); the emitter puts in what BMv2's unbounded arithmetic needs.
Types in expressions are Bit, Int, BOOL or Varbit. Statements are structured: blocks with labels are left by
Leave and repeated by Repeat, which covers return, exit, switch and loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from switch.compiler import types as t

if TYPE_CHECKING:
    from switch.compiler.lower.tables import LoweredTable


# --- expressions ---


@dataclass(slots=True, frozen=True)
class Expr:
    type: t.Type


@dataclass(slots=True, frozen=True)
class Const(Expr):
    """`name` is the member's for values of enums without a representation of their own."""

    value: int
    name: str = ""


@dataclass(slots=True, frozen=True)
class FieldRef(Expr):
    """A field of a header instance; "$valid$" is a header's validity."""

    header: str
    field: str


@dataclass(slots=True, frozen=True)
class RuntimeData(Expr):
    """Action data: the argument with this index."""

    index: int


@dataclass(slots=True, frozen=True)
class StackLast(Expr):
    """A field of the last extracted element; parser only. `member` for a stack of unions."""

    stack: str
    member: str
    field: str


@dataclass(slots=True, frozen=True)
class LastIndex(Expr):
    stack: str
    of_unions: bool = False


@dataclass(slots=True, frozen=True)
class Operation(Expr):
    """operator: a P4 operator, "neg", "~", "!", "cast" or "slice" (then `low` is its lowest bit)."""

    operator: str
    left: Expr
    right: Expr | None = None
    low: int = 0


@dataclass(slots=True, frozen=True)
class Choice(Expr):
    condition: Expr
    if_true: Expr
    if_false: Expr


@dataclass(slots=True, frozen=True)
class SameHeader(Expr):
    """Validity and all fields of two headers are equal (used where a varbit field is among them)."""

    left: str
    right: str


def is_simple(expr: Expr) -> bool:
    """Whether it costs nothing to evaluate it again."""
    return isinstance(expr, (Const, FieldRef, RuntimeData))


def operands(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Operation):
        yield expr.left
        if expr.right is not None:
            yield expr.right
    elif isinstance(expr, Choice):
        yield expr.condition
        yield expr.if_true
        yield expr.if_false


def reads(expr: Expr) -> Iterator[Expr]:
    """All leaves of an expression."""
    pending = [expr]
    while pending:
        current = pending.pop()
        inner = list(operands(current))
        if inner:
            pending.extend(inner)
        else:
            yield current


# --- statements ---


@dataclass(slots=True, eq=False)
class Label:
    """Names a block. `used`: something leaves or repeats it."""

    name: str
    used: bool = False


@dataclass(slots=True, eq=False)
class Stmt:
    """`loc` and `end`: the source it comes from; 0 if there is none."""

    loc: int
    end: int


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    target: FieldRef
    value: Expr


@dataclass(slots=True, eq=False)
class Primitive(Stmt):
    """A BMv2 primitive. Parameters are values or references to named objects."""

    op: str
    parameters: tuple[Parameter, ...]


@dataclass(slots=True, frozen=True)
class Ref:
    """A named object as parameter; kind: header, header_stack, counter_array, calculation, ..."""

    kind: str
    name: str


@dataclass(slots=True, frozen=True)
class Text:
    text: str


@dataclass(slots=True, frozen=True)
class Vector:
    items: tuple[Expr, ...]


@dataclass(slots=True, frozen=True)
class Number:
    """A constant that is part of the primitive's form, such as a field list's number."""

    value: int


Parameter = Expr | Ref | Text | Vector | Number


@dataclass(slots=True, eq=False)
class If(Stmt):
    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt]


@dataclass(slots=True, eq=False)
class Block(Stmt):
    label: Label
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class Leave(Stmt):
    """Go on behind the block with this label."""

    label: Label


@dataclass(slots=True, eq=False)
class Repeat(Stmt):
    """Go on at the start of the block with this label."""

    label: Label


@dataclass(slots=True, eq=False)
class End(Stmt):
    """The end of the whole pipeline (what `exit` comes to)."""


@dataclass(slots=True, eq=False)
class Apply(Stmt):
    """Apply a table, then run the branch for what happened.

    `kind`: "hit" (branches "hit" and "miss") or "action" (a branch per action name, or "" for all others).
    """

    table: LoweredTable
    kind: str = "action"
    branches: dict[str, list[Stmt]] = field(default_factory=dict)


# Parser only.


@dataclass(slots=True, eq=False)
class Extract(Stmt):
    """kind: regular (header), stack (stack) or union_stack (stack, member). `length`: of the varbit, in bits."""

    kind: str
    name: str
    member: str = ""
    length: Expr | None = None


@dataclass(slots=True, eq=False)
class Lookahead(Stmt):
    target: FieldRef
    offset_bits: int
    width_bits: int


@dataclass(slots=True, eq=False)
class Advance(Stmt):
    bits: Expr


@dataclass(slots=True, eq=False)
class Verify(Stmt):
    condition: Expr
    error: Expr


@dataclass(slots=True, eq=False)
class SubParser(Stmt):
    """An inlined parser: run from `start` until one of its states accepts."""

    start: State


@dataclass(slots=True, eq=False)
class Select:
    """`keys` empty: go to `default`. Cases: one (value, mask or None) for each key, or a value set's name.

    default_at: loc and end of the default in the source.
    """

    keys: list[Expr]
    cases: list[Case]
    default: Target
    has_default: bool = True
    default_at: tuple[int, int] = (0, 0)


@dataclass(slots=True, eq=False)
class Case:
    matches: list[tuple[int, int | None]]
    value_set: str
    target: Target
    at: tuple[int, int]


@dataclass(slots=True, eq=False)
class State:
    name: str
    body: list[Stmt]
    transition: Select | None = None
    loc: int = 0


Target = State | str  # a state, "accept" or "reject"
