"""Construction of IR expressions, with constant folding."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.values import (
    Constant,
    FoldError,
    Symbolic,
    compare,
    fold_binary,
    slice_bits,
    wrap,
)

TRUE = ir.Const(t.BOOL, 1)
FALSE = ir.Const(t.BOOL, 0)
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


def constant(value: Constant, type_: t.Type) -> ir.Const:
    """Return a compile-time value as it is stored. Strings have no such form."""
    stored = t.representation(type_)
    if isinstance(value, Symbolic):
        return ir.Const(stored, wrap(value.number, stored), value.name)
    assert not isinstance(value, str)
    if stored is t.BOOL:
        return TRUE if value else FALSE
    return ir.Const(stored, wrap(int(value), stored))


def flag(value: bool) -> ir.Const:
    """Return the constant true or false."""
    return TRUE if value else FALSE


def binary(operator: str, left: ir.Expr, right: ir.Expr, type_: t.Type) -> ir.Expr:
    """Return a binary operation of type `type_`.

    Raises:
        FoldError: A constant operation has no result, such as a division by zero.
    """
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return _fold(operator, left, right, type_)
    if operator == "&&":
        return conjunction(left, right)
    if operator == "||":
        if isinstance(left, ir.Const):
            return TRUE if left.value else right
        if isinstance(right, ir.Const) and not right.value:
            return left
    if operator in ("+", "-", "<<", ">>", "|", "^") and isinstance(right, ir.Const) and right.value == 0:
        return left
    if operator in ("+", "|", "^") and isinstance(left, ir.Const) and left.value == 0:
        return right
    return ir.Operation(type_, operator, left, right)


def _fold(operator: str, left: ir.Const, right: ir.Const, type_: t.Type) -> ir.Expr:
    if operator in _COMPARISONS:
        return flag(compare(operator, left.value, right.value))
    if operator == "&&":
        return flag(bool(left.value and right.value))
    if operator == "||":
        return flag(bool(left.value or right.value))
    if operator == "++":
        assert isinstance(right.type, (t.Bit, t.Int))
        low = right.value & ((1 << right.type.width) - 1)
        return ir.Const(type_, wrap((left.value << right.type.width) | low, type_))
    return ir.Const(type_, fold_binary(operator, left.value, right.value, type_))


def conjunction(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if isinstance(left, ir.Const):
        return right if left.value else FALSE
    if isinstance(right, ir.Const) and right.value:
        return left
    return ir.Operation(t.BOOL, "&&", left, right)


def disjunction(items: Sequence[ir.Expr]) -> ir.Expr:
    result: ir.Expr = FALSE
    for item in items:
        result = item if result is FALSE else binary("||", result, item, t.BOOL)
    return result


def negation(operand: ir.Expr) -> ir.Expr:
    if isinstance(operand, ir.Const):
        return flag(not operand.value)
    if isinstance(operand, ir.Operation) and operand.operator == "!":
        return operand.left
    return ir.Operation(t.BOOL, "!", operand)


def unary(operator: str, operand: ir.Expr) -> ir.Expr:
    if operator == "+":
        return operand
    if operator == "!":
        return negation(operand)
    if isinstance(operand, ir.Const):
        value = -operand.value if operator == "-" else ~operand.value
        return ir.Const(operand.type, wrap(value, operand.type))
    return ir.Operation(operand.type, "neg" if operator == "-" else "~", operand)


def cast(operand: ir.Expr, type_: t.Type) -> ir.Expr:
    """Return `(type_) operand`, where both types are representations."""
    if operand.type == type_:
        return operand
    if isinstance(operand, ir.Const):
        if type_ is t.BOOL:
            return flag(operand.value != 0)
        return ir.Const(type_, wrap(operand.value, type_))
    return ir.Operation(type_, "cast", operand)


def slice_of(operand: ir.Expr, high: int, low: int) -> ir.Expr:
    """Return `operand[high:low]`."""
    type_ = t.bit(high - low + 1)
    if isinstance(operand, ir.Const):
        return ir.Const(type_, slice_bits(operand.value, high, low))
    if operand.type == type_:
        return operand
    return ir.Operation(type_, "slice", operand, low=low)


def choice(condition: ir.Expr, if_true: ir.Expr, if_false: ir.Expr) -> ir.Expr:
    if isinstance(condition, ir.Const):
        return if_true if condition.value else if_false
    return ir.LoweredChoice(if_true.type, condition, if_true, if_false)


def equal(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return binary("==", left, right, t.BOOL)


def insert_bits(base: ir.Expr, high: int, low: int, value: ir.Expr) -> ir.Expr:
    """Return `base` with bits high..low replaced by `value`."""
    assert isinstance(base.type, (t.Bit, t.Int))
    width = base.type.width
    unsigned = t.bit(width)
    mask = ((1 << (high - low + 1)) - 1) << low
    kept = binary("&", cast(base, unsigned), ir.Const(unsigned, ((1 << width) - 1) & ~mask), unsigned)
    moved = cast(cast(value, t.bit(high - low + 1)), unsigned)
    if low:
        moved = binary("<<", moved, ir.Const(t.bit(32), low), unsigned)
    return cast(binary("|", kept, moved, unsigned), base.type)


__all__ = [
    "FALSE",
    "TRUE",
    "FoldError",
    "binary",
    "cast",
    "choice",
    "conjunction",
    "constant",
    "disjunction",
    "equal",
    "flag",
    "insert_bits",
    "negation",
    "slice_of",
    "unary",
]
