"""Sets: labels of select cases and keys of table entries."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.lexer import NAME
from gradbed.switch.compiler.parser.cursor import Cursor
from gradbed.switch.compiler.parser.expressions import parse_expression


def parse_set(cursor: Cursor) -> s.Expression:
    """One label: a set, or a tuple of sets in parentheses (then a ListExpression)."""
    if cursor.text == "(" and _closes_label(cursor):
        loc = cursor.advance().loc
        items = [parse_simple_set(cursor)]
        while cursor.accept(","):
            items.append(parse_simple_set(cursor))
        cursor.expect(")")
        if len(items) == 1:
            return items[0]
        return s.ListExpression(loc, cursor.last_end, items)
    return parse_simple_set(cursor)


def parse_simple_set(cursor: Cursor) -> s.Expression:
    token = cursor.token
    if token.text in ("_", "default") and token.kind == NAME:
        cursor.advance()
        return s.Wildcard(token.loc, token.end)
    left = parse_expression(cursor)
    operator = cursor.text
    if operator in ("&&&", ".."):
        cursor.advance()
        right = parse_expression(cursor)
        return s.Binary(left.loc, cursor.last_end, operator, left, right)
    return left


def _closes_label(cursor: Cursor) -> bool:
    """At '(': whether its ')' is followed by ':', so that the parentheses hold a tuple of sets."""
    depth = 0
    distance = 0
    while True:
        token = cursor.peek(distance)
        if token.text == "" or token.text == ";":
            return False
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return cursor.peek(distance + 1).text == ":"
        distance += 1
