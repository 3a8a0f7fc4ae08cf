"""Expressions of #if and #elif: the integer operators of C on Python integers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gradbed.switch.compiler.lexer import NAME, NUMBER, Token

_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)

_MAX_BITS = 4096
_MAX_DEPTH = 64


class ConditionError(Exception):
    """The expression of an #if is malformed."""

    def __init__(self, loc: int, message: str) -> None:
        super().__init__(message)
        self.loc = loc


def evaluate_condition(tokens: Sequence[Token], loc: int) -> int:
    """Return the value of the expression; names that are no macros count as 0.

    Raises:
        ConditionError: The expression is malformed.
    """
    evaluator = _Evaluator(tokens, loc)
    value = evaluator.ternary()
    evaluator.expect_end()
    return value


class _Evaluator:
    def __init__(self, tokens: Sequence[Token], loc: int) -> None:
        self._tokens = tokens
        self._index = 0
        self._loc = loc
        self._depth = 0

    def expect_end(self) -> None:
        if self._index < len(self._tokens):
            token = self._tokens[self._index]
            raise ConditionError(token.loc, f"unexpected '{token.text}' in the condition")

    def ternary(self) -> int:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ConditionError(self._loc, "the condition is nested too deeply")
        condition = self._binary(0)
        if self._accept("?"):
            first = self.ternary()
            if not self._accept(":"):
                raise ConditionError(self._here(), "expected ':' in the condition")
            second = self.ternary()
            condition = first if condition else second
        self._depth -= 1
        return condition

    def _here(self) -> int:
        return self._tokens[self._index].loc if self._index < len(self._tokens) else self._loc

    def _accept(self, *texts: str) -> str | None:
        if self._index < len(self._tokens) and self._tokens[self._index].text in texts:
            self._index += 1
            return self._tokens[self._index - 1].text
        return None

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while True:
            loc = self._here()
            operator = self._accept(*_LEVELS[level])
            if operator is None:
                return left
            left = self._apply(operator, left, self._binary(level + 1), loc)

    def _unary(self) -> int:
        operations: dict[str, Callable[[int], int]] = {
            "!": lambda value: int(not value),
            "-": lambda value: -value,
            "+": lambda value: value,
            "~": lambda value: ~value,
        }
        pending: list[str] = []
        while operator := self._accept(*operations):
            pending.append(operator)
        value = self._primary()
        for operator in reversed(pending):
            value = operations[operator](value)
        return value

    def _primary(self) -> int:
        if self._index >= len(self._tokens):
            raise ConditionError(self._loc, "the condition ends too early")
        token = self._tokens[self._index]
        self._index += 1
        if token.text == "(":
            value = self.ternary()
            if not self._accept(")"):
                raise ConditionError(self._here(), "expected ')' in the condition")
            return value
        if token.kind == NAME:
            return 1 if token.text == "true" else 0
        if token.kind == NUMBER:
            return _integer(token)
        raise ConditionError(token.loc, f"unexpected '{token.text}' in the condition")

    def _apply(self, operator: str, left: int, right: int, loc: int) -> int:
        if operator in ("/", "%"):
            if right == 0:
                raise ConditionError(loc, "division by zero in the condition")
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        if operator in ("<<", ">>"):
            if not 0 <= right <= _MAX_BITS:
                raise ConditionError(loc, "shift amount out of range in the condition")
            value = left << right if operator == "<<" else left >> right
        else:
            value = int(_OPERATIONS[operator](left, right))
        if value.bit_length() > _MAX_BITS:
            raise ConditionError(loc, "number too large in the condition")
        return value


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: bool(a) or bool(b),
    "&&": lambda a, b: bool(a) and bool(b),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*", re.ASCII)


def _integer(token: Token) -> int:
    match = _INTEGER.fullmatch(token.text)
    if not match or len(token.text) > 1000:
        raise ConditionError(token.loc, f"'{token.text}' is not an integer")
    digits = match.group(1).lower()
    if digits.startswith(("0x", "0b")):
        return int(digits, 0)
    return int(digits, 8) if digits.startswith("0") and digits.strip("01234567") == "" else int(digits)
