"""Annotations, types, type parameters and arguments."""

from __future__ import annotations

from switch.compiler import syntax as s
from switch.compiler.diagnostics import suggestion
from switch.compiler.lexer import LINE_START, NAME, NUMBER, STRING
from switch.compiler.parser.cursor import KEYWORDS, Cursor, SyntaxFailure

BASE_TYPES = frozenset(("bool", "error", "string", "void", "match_kind", "int", "bit", "varbit"))
TYPE_KEYWORDS = BASE_TYPES | {"tuple", "list"}
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


def parse_type(cursor: Cursor) -> s.TypeSyntax:
    """A type with the array sizes behind it."""
    cursor.enter()
    result = _parse_element_type(cursor)
    while cursor.text == "[":
        cursor.advance()
        size = _expression(cursor)
        cursor.expect("]")
        result = s.StackTypeSyntax(result.loc, cursor.last_end, result, size)
    cursor.leave()
    return result


def _parse_element_type(cursor: Cursor) -> s.TypeSyntax:
    token = cursor.token
    loc = token.loc
    text = token.text
    if text in BASE_TYPES:
        cursor.advance()
        width = None
        if text in ("bit", "int", "varbit") and cursor.text == "<":
            cursor.advance()
            width = _width(cursor)
            cursor.expect_closing_angle()
        elif text == "varbit":
            raise cursor.failure("expected '<' and the greatest width of the varbit")
        return s.BaseType(loc, cursor.last_end, text, width)
    if text in ("tuple", "list"):
        cursor.advance()
        cursor.expect("<")
        elements = [] if cursor.at(">", ">>") else _type_list(cursor)
        cursor.expect_closing_angle()
        return s.TupleTypeSyntax(loc, cursor.last_end, elements, text == "list")
    absolute = text == "."
    if absolute:
        cursor.advance()
    if cursor.token.kind != NAME or cursor.text in KEYWORDS:
        raise cursor.failure("expected a type")
    name = cursor.advance().text
    if name == "_" and not absolute:
        return s.AnyTypeSyntax(loc, cursor.last_end)
    arguments: list[s.TypeSyntax] = []
    if cursor.text == "<":
        cursor.advance()
        if cursor.token.kind == NUMBER:
            near = suggestion(name, ("bit", "int", "varbit")).removeprefix("; ")
            raise cursor.failure("expected a type", hint=near or f"a number is of type bit<{cursor.text}>")
        arguments = _type_list(cursor)
        cursor.expect_closing_angle()
    return s.NamedType(loc, cursor.last_end, name, absolute, arguments)


def _width(cursor: Cursor) -> s.Expression:
    if cursor.text == "(":
        cursor.advance()
        width = _expression(cursor)
        cursor.expect(")")
        return width
    from switch.compiler.parser.expressions import parse_primary

    return parse_primary(cursor)


def _expression(cursor: Cursor) -> s.Expression:
    from switch.compiler.parser.expressions import parse_expression

    return parse_expression(cursor)


def _type_list(cursor: Cursor) -> list[s.TypeSyntax]:
    types = [parse_type(cursor)]
    while cursor.accept(","):
        types.append(parse_type(cursor))
    return types


def try_type_arguments(cursor: Cursor) -> list[s.TypeSyntax] | None:
    """At a '<' behind a name: the type arguments, if that is what stands there and a '(' follows; else nothing."""
    following = cursor.peek()
    plausible = following.text in TYPE_KEYWORDS or following.text == "_" or cursor.is_type_name(following.text)
    if not plausible or following.kind == STRING:
        return None
    start = cursor.index
    nesting = cursor.nesting
    if not _types_then_parenthesis(cursor):
        cursor.reset(start)
        cursor.nesting = nesting
        return None
    cursor.reset(start)
    cursor.advance()
    arguments = _type_list(cursor)
    cursor.expect_closing_angle()
    return arguments


def _types_then_parenthesis(cursor: Cursor) -> bool:
    """Look ahead without reporting: from '<' to its '>' and then '('."""
    depth = 0
    while cursor.token.text:
        text = cursor.text
        if text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
        elif text == ">>":
            depth -= 2
        elif text in (";", "{", "}", "&&", "||"):
            return False
        cursor.advance()
        if depth <= 0:
            return depth == 0 and cursor.text == "("
    return False


def parse_type_parameters(cursor: Cursor) -> list[str]:
    """Optional <T, U>; the names become types of the innermost scope."""
    if not cursor.accept("<"):
        return []
    names: list[str] = []
    while True:
        token = cursor.name("the name of a type parameter")
        if token.text in names:
            cursor.reporter.error(token.loc, f"type parameter '{token.text}' is declared twice", token.end)
        names.append(token.text)
        cursor.declare(token.text, True)
        if not cursor.accept(","):
            break
    cursor.expect_closing_angle()
    return names


__all__ = [
    "SyntaxFailure",
    "parse_annotations",
    "parse_type",
    "parse_type_parameters",
    "try_type_arguments",
]
