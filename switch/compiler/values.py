"""Compile-time values and arithmetic on them."""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.switch.compiler import types as t

MAX_INTEGER_BITS = 8192


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A member of an enum or of error."""

    type: t.Type
    name: str
    number: int
    """Number that represents it."""


Constant = int | bool | str | Symbolic


class FoldError(Exception):
    """A compile-time operation has no result; the text says why."""


def wrap(value: int, type_: t.Type) -> int:
    """Return the value modulo 2^width, in the range of the type."""
    if isinstance(type_, t.Bit):
        return value & ((1 << type_.width) - 1)
    if isinstance(type_, t.Int):
        if type_.width == 0:
            return 0
        value &= (1 << type_.width) - 1
        return value - (1 << type_.width) if value >> (type_.width - 1) else value
    return value


def limits(type_: t.Bit | t.Int) -> tuple[int, int]:
    """Return the least and greatest value."""
    if isinstance(type_, t.Bit):
        return 0, (1 << type_.width) - 1
    if type_.width == 0:
        return 0, 0
    return -(1 << (type_.width - 1)), (1 << (type_.width - 1)) - 1


def fold_binary(operator: str, left: int, right: int, type_: t.Type) -> int:
    """Return the result of an arithmetic operator in `type_`: a bit, an int or INTEGER.

    Raises:
        FoldError: There is no result.
    """
    if operator in ("<<", ">>"):
        return _shift(operator, left, right, type_)
    if operator in ("/", "%"):
        if right == 0:
            raise FoldError("division by zero")
        if left < 0 or right < 0:
            raise FoldError("division and modulo are not defined for negative numbers")
        return left // right if operator == "/" else left % right
    if operator == "|+|" or operator == "|-|":
        result = left + right if operator == "|+|" else left - right
        if isinstance(type_, (t.Bit, t.Int)):
            least, greatest = limits(type_)
            return max(least, min(greatest, result))
        return result
    if operator == "+":
        result = left + right
    elif operator == "-":
        result = left - right
    elif operator == "*":
        result = left * right
    elif operator == "&":
        result = left & right
    elif operator == "|":
        result = left | right
    else:
        result = left ^ right
    return _checked(wrap(result, type_))


def _shift(operator: str, left: int, right: int, type_: t.Type) -> int:
    if right < 0:
        raise FoldError("negative shift amount")
    if operator == ">>":
        return left >> min(right, MAX_INTEGER_BITS + 1)
    if isinstance(type_, (t.Bit, t.Int)) and right >= type_.width:
        return 0
    if left and right > MAX_INTEGER_BITS:
        raise FoldError("shift amount too large")
    return _checked(wrap(left << min(right, MAX_INTEGER_BITS), type_))


def _checked(value: int) -> int:
    if value.bit_length() > MAX_INTEGER_BITS:
        raise FoldError(f"the result has more than {MAX_INTEGER_BITS} bits")
    return value


def fold_unary(operator: str, value: int, type_: t.Type) -> int:
    if operator == "-":
        return wrap(-value, type_)
    if operator == "~":
        return wrap(~value, type_)
    return value


def compare(operator: str, left: Constant, right: Constant) -> bool:
    if operator == "==":
        return left == right
    if operator == "!=":
        return left != right
    assert isinstance(left, int) and isinstance(right, int)
    if operator == "<":
        return left < right
    if operator == "<=":
        return left <= right
    if operator == ">":
        return left > right
    return left >= right


def slice_bits(value: int, high: int, low: int) -> int:
    return (value >> low) & ((1 << (high - low + 1)) - 1)


def stored(value: Constant) -> int:
    """Return the number that represents a value in a field."""
    if isinstance(value, Symbolic):
        return value.number
    if isinstance(value, str):
        raise FoldError("a string is no number")
    return int(value)
