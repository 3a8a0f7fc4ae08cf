"""Expressions of the code between the syntax tree and BMv2 JSON.

They have P4's meaning (fixed widths, wrapping); the emitter puts in what BMv2's unbounded arithmetic needs. Types in
expressions are Bit, Int, BOOL or Varbit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradbed.switch.compiler import types as t


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
class LoweredChoice(Expr):
    condition: Expr
    if_true: Expr
    if_false: Expr


@dataclass(slots=True, frozen=True)
class SameHeader(Expr):
    """Validity and all fields of two headers are equal (used where a varbit field is among them)."""

    left: str
    right: str


def is_simple(expr: Expr) -> bool:
    """Return whether it costs nothing to evaluate it again."""
    return isinstance(expr, (Const, FieldRef, RuntimeData))


def operands(expr: Expr) -> Iterator[Expr]:
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
