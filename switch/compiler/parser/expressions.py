"""Expressions by precedence, number literals, types and sets. Each may contain the others."""

from __future__ import annotations

import re

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.diagnostics import suggestion
from gradbed.switch.compiler.lexer import NAME, NUMBER, STRING, Token
from gradbed.switch.compiler.parser.cursor import KEYWORDS, Cursor

# ---- Expressions, types, type parameters and arguments ----


BASE_TYPES = frozenset(("bool", "error", "string", "void", "match_kind", "int", "bit", "varbit"))
TYPE_KEYWORDS = BASE_TYPES | {"tuple", "list"}

# Binding power of the binary operators (P4_16 specification, section on operator precedence).
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    ">": 4,
    "<=": 4,
    ">=": 4,
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "++": 9,
    "+": 9,
    "-": 9,
    "|+|": 9,
    "|-|": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
_UNARY = frozenset(("!", "~", "-", "+"))


def parse_expression(cursor: Cursor) -> s.Expression:
    cursor.enter()
    condition = _parse_binary(cursor, 1)
    if cursor.text == "?":
        cursor.advance()
        if_true = parse_expression(cursor)
        cursor.expect(":", "between the two values of '?'")
        if_false = parse_expression(cursor)
        condition = s.Conditional(condition.loc, cursor.last_end, condition, if_true, if_false)
    cursor.leave()
    return condition


def _parse_binary(cursor: Cursor, minimum: int) -> s.Expression:
    left = _parse_unary(cursor)
    while True:
        operator = cursor.text
        power = _PRECEDENCE.get(operator, 0)
        if power < minimum or cursor.token.kind == STRING:
            return left
        cursor.advance()
        right = _parse_binary(cursor, power + 1)
        left = s.Binary(left.loc, cursor.last_end, operator, left, right)


def _parse_unary(cursor: Cursor) -> s.Expression:
    token = cursor.token
    if token.text in _UNARY and token.kind != STRING:
        cursor.advance()
        cursor.enter()
        operand = _parse_unary(cursor)
        cursor.leave()
        return s.Unary(token.loc, cursor.last_end, token.text, operand)
    if token.text == "(" and _starts_cast(cursor):
        cursor.advance()
        target = parse_type(cursor)
        cursor.expect(")", "after the type of the cast")
        cursor.enter()
        operand = _parse_unary(cursor)
        cursor.leave()
        return s.Cast(token.loc, cursor.last_end, target, operand)
    return parse_postfix(cursor)


def _starts_cast(cursor: Cursor) -> bool:
    following = cursor.peek()
    if following.kind == STRING:
        return False
    if following.text in TYPE_KEYWORDS:
        return not (following.text == "error" and cursor.peek(2).text == ".")
    if following.text == ".":
        following = cursor.peek(2)
    if following.kind != NAME or not cursor.is_type_name(following.text):
        return False
    behind = cursor.peek(2 if cursor.peek().text != "." else 3).text
    if behind == ")":
        return True
    if behind == "[":
        return True
    return behind == "<" and not _is_constructor_call(cursor)


def _is_constructor_call(cursor: Cursor) -> bool:
    """Return whether '(' follows the closing '>' at '( Type <', which makes it no cast."""
    depth = 0
    distance = 2
    while cursor.peek(distance).text:
        text = cursor.peek(distance).text
        depth += {"<": 1, ">": -1, ">>": -2}.get(text, 0)
        if text in (";", "{"):
            return False
        if depth <= 0:
            return cursor.peek(distance + 1).text == "("
        distance += 1
    return False


def parse_postfix(cursor: Cursor) -> s.Expression:
    expression = parse_primary(cursor)
    while True:
        text = cursor.text
        if text == ".":
            cursor.advance()
            if cursor.token.kind != NAME:
                hint = ""
                if isinstance(expression, s.IntLiteral):
                    hint = "numbers have no '.': the address 10.0.0.1 is written 0x0a000001"
                raise cursor.failure("expected the name of a member", hint=hint)
            name = cursor.advance().text
            expression = s.Member(expression.loc, cursor.last_end, expression, name)
        elif text == "[":
            expression = _parse_index(cursor, expression)
        elif text == "(" and cursor.token.kind != STRING:
            arguments = parse_arguments(cursor)
            expression = s.Call(expression.loc, cursor.last_end, expression, [], arguments)
        elif text == "<" and isinstance(expression, (s.Name, s.Member)):
            type_arguments = try_type_arguments(cursor)
            if type_arguments is None:
                return expression
            arguments = parse_arguments(cursor)
            expression = s.Call(expression.loc, cursor.last_end, expression, type_arguments, arguments)
        else:
            return expression


def _parse_index(cursor: Cursor, base: s.Expression) -> s.Expression:
    cursor.expect("[")
    first = parse_expression(cursor)
    if cursor.accept(":"):
        low = parse_expression(cursor)
        cursor.expect("]")
        return s.Slice(base.loc, cursor.last_end, base, first, low)
    if cursor.accept("+:"):
        width = parse_expression(cursor)
        cursor.expect("]")
        return s.Slice(base.loc, cursor.last_end, base, width, first, counts_up=True)
    cursor.expect("]")
    return s.Index(base.loc, cursor.last_end, base, first)


def parse_arguments(cursor: Cursor) -> list[s.Argument]:
    cursor.expect("(")
    arguments: list[s.Argument] = []
    while not cursor.at(")"):
        loc = cursor.token.loc
        name = None
        if cursor.token.kind == NAME and cursor.peek().text == "=":
            name = cursor.advance().text
            cursor.advance()
        if cursor.text == "_" and cursor.peek().text in (",", ")"):
            cursor.advance()
            value: s.Expression = s.Wildcard(loc, cursor.last_end)
        else:
            value = parse_initializer(cursor)
        arguments.append(s.Argument(loc, cursor.last_end, name, value))
        if not cursor.accept(","):
            break
    cursor.expect(")", "at the end of the arguments")
    return arguments


def parse_initializer(cursor: Cursor) -> s.Expression:
    """Parse an expression, or `...` for the default value."""
    if cursor.text == "...":
        token = cursor.advance()
        return s.DefaultValue(token.loc, token.end)
    return parse_expression(cursor)


def parse_primary(cursor: Cursor) -> s.Expression:
    token = cursor.token
    text = token.text
    kind = token.kind
    if kind == NUMBER:
        cursor.advance()
        return number_literal(cursor, token)
    if kind == STRING:
        pieces = []
        while cursor.token.kind == STRING:
            pieces.append(s.unquote(cursor.advance().text))
        return s.StringLiteral(token.loc, cursor.last_end, "".join(pieces))
    if kind == NAME:
        if text not in KEYWORDS:
            return _parse_name(cursor, token)
        if text in ("true", "false"):
            cursor.advance()
            return s.BoolLiteral(token.loc, token.end, text == "true")
        if text == "error":
            cursor.advance()
            return s.Name(token.loc, token.end, "error")
        if text == "this":
            cursor.advance()
            return s.Name(token.loc, token.end, "this")
        if text in TYPE_KEYWORDS:
            target = parse_type(cursor)
            return s.TypeName(token.loc, cursor.last_end, target)
        raise cursor.failure("expected an expression")
    if text == "(":
        cursor.advance()
        inner = parse_expression(cursor)
        cursor.expect(")")
        return inner
    if text == "{":
        return _parse_braces(cursor)
    if text == ".":
        cursor.advance()
        name = cursor.name()
        return s.Name(token.loc, cursor.last_end, name.text, absolute=True)
    raise cursor.failure("expected an expression")


def _parse_name(cursor: Cursor, token: Token) -> s.Expression:
    cursor.advance()
    if cursor.text == "<" and cursor.is_type_name(token.text):
        start = cursor.index
        arguments = try_type_arguments(cursor)
        if arguments is not None:
            cursor.reset(start - 1)
            target = parse_type(cursor)
            return s.TypeName(token.loc, cursor.last_end, target)
    return s.Name(token.loc, token.end, token.text)


def _parse_braces(cursor: Cursor) -> s.Expression:
    """Parse {a, b}, {a = 1, b = 2} or {#}; each list may end in `...`."""
    loc = cursor.expect("{").loc
    if cursor.accept("#"):
        cursor.expect("}")
        return s.InvalidHeader(loc, cursor.last_end)
    items: list[s.Expression] = []
    fields: list[tuple[str, s.Expression]] = []
    with_defaults = False
    named = cursor.token.kind == NAME and cursor.peek().text == "="
    while not cursor.at("}"):
        if cursor.text == "..." and cursor.peek().text in (",", "}"):
            cursor.advance()
            with_defaults = True
            cursor.accept(",")
            break
        if named:
            name = cursor.name("the name of a field")
            cursor.expect("=", "after the name of the field")
            fields.append((name.text, parse_initializer(cursor)))
        else:
            items.append(parse_initializer(cursor))
        if not cursor.accept(","):
            break
    cursor.expect("}", "at the end of the list")
    if named:
        return s.StructExpression(loc, cursor.last_end, fields, with_defaults)
    return s.ListExpression(loc, cursor.last_end, items, with_defaults)


# ---- Types ----


def parse_type(cursor: Cursor) -> s.TypeSyntax:
    """Parse a type with the array sizes after it."""
    cursor.enter()
    result = _parse_element_type(cursor)
    while cursor.text == "[":
        cursor.advance()
        size = parse_expression(cursor)
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
        width = parse_expression(cursor)
        cursor.expect(")")
        return width
    return parse_primary(cursor)


def _type_list(cursor: Cursor) -> list[s.TypeSyntax]:
    types = [parse_type(cursor)]
    while cursor.accept(","):
        types.append(parse_type(cursor))
    return types


def try_type_arguments(cursor: Cursor) -> list[s.TypeSyntax] | None:
    """Parse the type arguments at a '<' after a name, if a '(' follows them; otherwise read nothing."""
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
    """Return whether the '<' has a '>' with '(' after it, without reporting errors."""
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
    """Parse an optional <T, U>; the names become types of the innermost scope."""
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


# ---- Number literals ----


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


# ---- Sets ----


def parse_set(cursor: Cursor) -> s.Expression:
    """Parse one label: a set, or a tuple of sets in parentheses (then a ListExpression)."""
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
    """Return whether ':' follows the ')' of this '(', so that the parentheses contain a tuple of sets."""
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
