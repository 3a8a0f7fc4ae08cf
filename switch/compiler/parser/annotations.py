"""Annotations: @name, @name(body), @name[body] and @pragma."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.lexer import LINE_START, NAME
from gradbed.switch.compiler.parser.cursor import Cursor

_CLOSING = {"(": ")", "[": "]"}


def parse_annotations(cursor: Cursor) -> list[s.Annotation]:
    annotations: list[s.Annotation] = []
    while cursor.text == "@":
        annotations.append(_parse_annotation(cursor))
    return annotations


def _parse_annotation(cursor: Cursor) -> s.Annotation:
    loc = cursor.advance().loc
    if cursor.token.kind != NAME:
        raise cursor.failure("expected the name of an annotation")
    name = cursor.advance().text
    if name == "pragma":
        return _parse_pragma(cursor, loc)
    if not cursor.at("(", "["):
        return s.Annotation(loc, cursor.last_end, name, None)
    structured = cursor.text == "["
    closers = [_CLOSING[cursor.advance().text]]
    body: list[str] = []
    while True:
        token = cursor.token
        if token.text in ("(", "["):
            closers.append(_CLOSING[token.text])
        elif token.text in (")", "]"):
            if token.text != closers[-1]:
                raise cursor.failure(f"expected '{closers[-1]}' in the annotation")
            closers.pop()
            if not closers:
                cursor.advance()
                break
        elif token.text == "":
            raise cursor.failure("expected ')' at the end of the annotation")
        body.append(token.text)
        cursor.advance()
    return s.Annotation(loc, cursor.last_end, name, body, structured)


def _parse_pragma(cursor: Cursor, loc: int) -> s.Annotation:
    """@pragma name rest-of-the-line, the old spelling of @name(rest)."""
    if cursor.token.kind != NAME:
        raise cursor.failure("expected the name of a pragma")
    name = cursor.advance().text
    body: list[str] = []
    while cursor.token.text and not cursor.token.flags & LINE_START:
        body.append(cursor.advance().text)
    return s.Annotation(loc, cursor.last_end, name, body or None)
