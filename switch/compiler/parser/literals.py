"""Number literals."""

from __future__ import annotations

import re

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.lexer import Token
from gradbed.switch.compiler.parser.cursor import Cursor

_NUMBER = re.compile(
    r"(?:(?P<width>[0-9]+)(?P<sign>[ws]))?(?:0[xX](?P<hex>[0-9a-fA-F_]+)|0[bB](?P<bin>[01_]+)|0[oO](?P<oct>[0-7_]+)"
    r"|(?:0[dD])?(?P<dec>[0-9][0-9_]*))",
    re.ASCII,
)
MAX_DIGITS = 4000


def number_literal(cursor: Cursor, token: Token) -> s.Expression:
    match = _NUMBER.fullmatch(token.text)
    if match is None:
        cursor.reporter.error(token.loc, f"'{token.text}' is not a number", token.end)
        return s.IntLiteral(token.loc, token.end, 0, None, False)
    group = match.groupdict()
    base, digits = next(
        (base, group[key]) for key, base in (("hex", 16), ("bin", 2), ("oct", 8), ("dec", 10)) if group[key]
    )
    digits = digits.replace("_", "")
    width = group["width"]
    if not digits or len(digits) > MAX_DIGITS or (width and len(width) > 9):
        cursor.reporter.error(token.loc, "this number is too long" if digits else "a number needs digits", token.end)
        return s.IntLiteral(token.loc, token.end, 0, None, False)
    number = int(digits, base)
    return s.IntLiteral(token.loc, token.end, number, int(width) if width else None, group["sign"] == "s", base)
