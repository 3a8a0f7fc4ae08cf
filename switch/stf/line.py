"""One line of an STF file as words, numbers and symbols, taken from left to right."""

from __future__ import annotations

import math
import re

from gradbed.switch.stf.statements import Pattern

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>0[xX][0-9a-fA-F*]+|0[bB][01*]+|[0-9]+(?:\.[0-9]+(?![.0-9]))?)(?![\w*])
    |"(?P<quoted>[^"]*)"
    |(?P<name>[A-Za-z_$][\w$]*(?:\[[0-9]+\])*(?:\.[A-Za-z_$][\w$]*(?:\[[0-9]+\])*)*)
    |(?P<symbol>&&&|\.\.|->|[=!<>]=|[-:,()/=<>|])
    )""",
    re.VERBOSE | re.ASCII,
)
# Python refuses to read longer ones (sys.set_int_max_str_digits), and no field of a packet needs them.
_MAX_DECIMAL_DIGITS = 1000


class Mistake(Exception):
    """What is wrong with a line."""


def decimal_number(text: str) -> int:
    """Of a text that is all digits."""
    if len(text) > _MAX_DECIMAL_DIGITS:
        raise Mistake(f"a decimal number has at most {_MAX_DECIMAL_DIGITS} digits")
    return int(text)


class Line:
    """Raises Mistake where the line is not as asked."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise Mistake(f"cannot read '{text[at:].strip()[:40]}'")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._tokens)

    def kind(self, ahead: int = 0) -> str:
        """number, quoted, name, symbol; empty at the end."""
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def sees(self, symbol: str, ahead: int = 0) -> bool:
        return self.kind(ahead) == "symbol" and self._tokens[self._at + ahead][1] == symbol

    def take(self, *symbols: str) -> str | None:
        """The next token, if it is one of these symbols."""
        for symbol in symbols:
            if self.sees(symbol):
                self._at += 1
                return symbol
        return None

    def require(self, symbol: str) -> None:
        if not self.take(symbol):
            raise self._expected(f"'{symbol}'")

    def name(self, what: str) -> str:
        if self.kind() not in ("name", "quoted"):
            raise self._expected(what)
        return self._next()

    def natural(self, what: str) -> int:
        """A number without wildcards."""
        pattern = self.pattern(what)
        if pattern.has_wildcards:
            raise Mistake(f"{what} cannot have wildcards")
        return pattern.value

    def pattern(self, what: str) -> Pattern:
        if self.kind() != "number":
            raise self._expected(what)
        text = self._next()
        if "." in text:
            raise Mistake(f"{what} is a whole number, not {text}")
        if text[:2].lower() not in ("0x", "0b"):
            return Pattern(decimal_number(text))
        bits, base = (4, 16) if text[1] in "xX" else (1, 2)
        digits = text[2:]
        fixed = "".join("0" if c == "*" else format(base - 1, "x") for c in digits)
        written = (1 << bits * len(digits)) - 1
        return Pattern(int(digits.replace("*", "0"), base), int(fixed, base), written)

    def decimal(self, what: str) -> float:
        """A number that may have a fraction."""
        if self.kind() != "number" or not self._tokens[self._at][1].replace(".", "").isdigit():
            raise self._expected(what)
        value = float(self._next())
        if math.isinf(value):
            raise Mistake(f"{what} is too large")
        return value

    def end(self) -> None:
        if not self.at_end:
            raise Mistake(f"'{self._tokens[self._at][1][:40]}' is not expected here")

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _expected(self, what: str) -> Mistake:
        got = "the end of the line" if self.at_end else f"'{self._tokens[self._at][1][:40]}'"
        return Mistake(f"expected {what}, got {got}")
