"""Ranges of expressions: the least and the greatest value that each can have."""

from __future__ import annotations

from collections.abc import Callable

from gradbed.switch.bmv2_json import expressions as ex

Range = tuple[int, int]

# Ranges end here. No use of an expression may need that many bits (Values refuses), but the operand of a mask
# or of a narrowing cast may well have them, as in (a << b) & 0xff.
LIMIT_BITS = 1 << 14
_LIMIT = 1 << LIMIT_BITS


def _clipped(low: int, high: int) -> Range:
    return max(low, -_LIMIT), min(high, _LIMIT)


def signed_range(width: int) -> Range:
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if width else (0, 0)


def unsigned_range(width: int) -> Range:
    return 0, (1 << width) - 1


def _bits_above(high: int) -> int:
    """Return the least 2^n - 1 that is not below `high`."""
    return (1 << high.bit_length()) - 1


class Ranges:
    """Ranges of expressions; `leaf_range` gives those of fields, arguments, register cells and other leaves."""

    def __init__(self, leaf_range: Callable[[ex.Data], Range]) -> None:
        self._leaf_range = leaf_range
        # By identity: equality of deep expressions costs as much as walking them. The value keeps its key alive.
        self._known: dict[int, tuple[ex.Data, Range]] = {}

    def of(self, value: ex.Data) -> Range:
        """Return the range of an expression."""
        known = self._known.get(id(value))
        if known is None:
            known = (value, _clipped(*self._compute(value)))
            self._known[id(value)] = known
        return known[1]

    def _compute(self, value: ex.Data) -> Range:
        if isinstance(value, ex.Constant):
            return value.value, value.value
        if isinstance(value, ex.FromBoolean):
            return 0, 1
        if isinstance(value, ex.Choice):
            (a, b), (c, d) = self.of(value.if_true), self.of(value.if_false)
            return min(a, c), max(b, d)
        if isinstance(value, ex.Complement):
            low, high = self.of(value.operand)
            return ~high, ~low
        if isinstance(value, ex.CastOperation):
            return self._cast(value)
        if isinstance(value, ex.Arithmetic):
            return self._arithmetic(value.op, self.of(value.left), self.of(value.right))
        return self._leaf_range(value)

    def _cast(self, value: ex.CastOperation) -> Range:
        low, high = self.of(value.operand)
        least, most = unsigned_range(value.width) if value.op == "usat_cast" else signed_range(value.width)
        if value.op == "two_comp_mod":
            return (low, high) if least <= low and high <= most else (least, most)
        return min(max(low, least), most), max(min(high, most), least)

    @staticmethod
    def _arithmetic(op: str, left: Range, right: Range) -> Range:
        (a, b), (c, d) = left, right
        if op == "+":
            return a + c, b + d
        if op == "-":
            return a - d, b - c
        if op == "*":
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        if op == "/":
            magnitude = max(abs(a), abs(b))
            return (0, b) if a >= 0 and c >= 0 else (-magnitude, magnitude)
        if op == "%":
            if a >= 0 and c >= 0:
                return 0, min(b, max(d - 1, 0))
            magnitude = max(abs(a), abs(b))
            return (0 if a >= 0 else -magnitude), magnitude
        if op == "&":
            return _and(left, right)
        if op == "|":
            if a >= 0 and c >= 0:
                return max(a, c), _bits_above(max(b, d))
            return _twos_complement(left, right)
        if op == "^":
            return (0, _bits_above(max(b, d))) if a >= 0 and c >= 0 else _twos_complement(left, right)
        return _shift(op, left, right)


def _and(left: Range, right: Range) -> Range:
    (a, b), (c, d) = left, right
    if a >= 0 and c >= 0:
        return 0, min(b, d)
    if a >= 0:
        return 0, b
    if c >= 0:
        return 0, d
    return _twos_complement(left, right)


def _twos_complement(left: Range, right: Range) -> Range:
    """Return the range of a bitwise operation: that of the least two's complement width that fits both operands."""
    bits = max((v if v >= 0 else ~v).bit_length() for v in (*left, *right))
    return -(1 << bits), (1 << bits) - 1


def _shift(op: str, left: Range, right: Range) -> Range:
    (a, b), (c, d) = left, right
    # A negative amount, which BMv2 forbids, counts as one that shifts everything out.
    if op == "<<":
        if c < 0 or d > LIMIT_BITS:
            return (0 if a >= 0 else -_LIMIT), (0 if b <= 0 else _LIMIT)
        return (a << d if a < 0 else a << c), (b << d if b > 0 else b << c)
    least = 0 if c < 0 else c
    most = LIMIT_BITS + 1 if c < 0 else min(d, LIMIT_BITS + 1)
    least = min(least, most)
    return (a >> least if a < 0 else a >> most), (b >> most if b < 0 else b >> least)
