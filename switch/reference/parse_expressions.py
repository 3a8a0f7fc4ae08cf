"""Tokens, types and expressions of P4_16, parsed by recursive descent."""

from __future__ import annotations

from typing import NoReturn

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.tokens import Position, ProgramError, SourceToken

BASE_TYPES = frozenset(("bit", "int", "varbit", "bool", "error", "string", "void", "tuple", "list", "match_kind"))
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("++", "+", "-", "|+|", "|-|"),
    ("*", "/", "%"),
)
"""Binary operators from the loosest to the tightest (P4_16, appendix H: `++` binds as `+`)."""
_BEGINS_OPERAND = frozenset(("(", "{", "!", "~", "-", "+", "."))


def parse_expressions(found: list[SourceToken]) -> list[x.ExpressionNode]:
    """Parse the inside of an annotation as expressions with commas between."""
    if not found:
        return []
    last = found[-1]
    parser = ExpressionParser([*found, SourceToken("end", "", last.position, last.end, last.end)])
    items = [parser.expression()]
    while parser.take(","):
        items.append(parser.expression())
    return items


class TokenStream:
    """Tokens, of which one is next."""

    def __init__(self, found: list[SourceToken]) -> None:
        self._tokens = found
        self._at = 0
        # What is a type decides whether `(a)` is a cast and `<` begins type arguments.
        self._types: set[str] = set()

    @property
    def kind(self) -> str:
        return self._tokens[self._at].kind

    @property
    def text(self) -> str:
        return self._tokens[self._at].text

    @property
    def here(self) -> Position:
        return self._tokens[self._at].position

    def ahead(self, count: int = 1) -> SourceToken:
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    def sees(self, text: str) -> bool:
        token = self._tokens[self._at]
        return token.text == text and token.kind in ("symbol", "name")

    def take(self, text: str) -> bool:
        if self.sees(text):
            self._at += 1
            return True
        return False

    def require(self, text: str) -> None:
        if not self.take(text):
            self.fail(f"expected '{text}', got '{self.text}'")

    def next(self) -> SourceToken:
        self._at += 1
        return self._tokens[self._at - 1]

    def name(self) -> str:
        if self.kind != "name":
            self.fail(f"expected a name, got '{self.text}'")
        return self.next().text

    def fail(self, what: str) -> NoReturn:
        raise ProgramError(self.here, what)

    def sees_shift(self) -> bool:
        """Return whether two `>` that touch come next."""
        return self.sees(">") and self.ahead().text == ">" and self.ahead().start == self._tokens[self._at].end


class ExpressionParser(TokenStream):
    """Parses what stands in expressions, types and arguments included."""

    # ---- Types ----

    def is_type(self, token: SourceToken) -> bool:
        return token.kind == "name" and (token.text in BASE_TYPES or token.text in self._types)

    def type(self) -> x.TypeNode:
        here = self.here
        self.take(".")
        name = self.name()
        node: x.TypeNode
        if name in ("bit", "int", "varbit") and self.sees("<"):
            self.next()
            if self.take("("):
                width = self.expression()
                self.require(")")
            else:
                width = self.primary()
            self.require(">")
            node = x.BitsTypeNode(name, width, position=here)
        elif name == "bit":
            node = x.BitsTypeNode(name, x.NumberNode(1, None, False, position=here), position=here)
        elif self.sees("<"):
            node = x.NamedTypeNode(name, self.type_arguments(), position=here)
        else:
            node = x.NamedTypeNode(name, position=here)
        while self.sees("["):
            self.next()
            size = self.expression()
            self.require("]")
            node = x.StackTypeNode(node, size, position=here)
        return node

    def type_arguments(self) -> list[x.TypeNode]:
        self.require("<")
        found = [self.type()]
        while self.take(","):
            found.append(self.type())
        self.require(">")
        return found

    def type_parameters(self) -> list[str]:
        names: list[str] = []
        if self.take("<"):
            names.append(self.name())
            while self.take(","):
                names.append(self.name())
            self.require(">")
        self._types.update(names)
        return names

    # ---- Expressions ----

    def expressions(self, begin: str, end: str) -> list[x.ExpressionNode]:
        self.require(begin)
        found: list[x.ExpressionNode] = []
        while not self.take(end):
            if found:
                self.require(",")
                if self.take(end):
                    break
            found.append(self.expression())
        return found

    def arguments(self) -> list[x.ArgumentNode]:
        self.require("(")
        found: list[x.ArgumentNode] = []
        while not self.take(")"):
            if found:
                self.require(",")
            here = self.here
            name = None
            if self.kind == "name" and self.ahead().text == "=" and self.ahead().kind == "symbol":
                name = self.name()
                self.require("=")
            value: x.ExpressionNode
            if self.sees("_") and self.ahead().text in (",", ")"):
                self.next()
                value = x.AnythingNode(position=here)
            else:
                value = self.expression()
            found.append(x.ArgumentNode(name, value, position=here))
        return found

    def keyset(self) -> x.ExpressionNode:
        """Return what a select case or an entry's key may be."""
        here = self.here
        if self.sees("("):
            start = self._at
            try:
                self.next()
                items = [self.simple_keyset()]
                while self.take(","):
                    if self.sees(")"):
                        break
                    items.append(self.simple_keyset())
                if self.take(")") and self.sees(":"):
                    return x.TupleNode(items, position=here) if len(items) > 1 else items[0]
            except ProgramError:
                pass  # it was the parenthesis of an expression or of a cast
            self._at = start
        return self.simple_keyset()

    def simple_keyset(self) -> x.ExpressionNode:
        here = self.here
        if self.take("default") or self.take("_"):
            return x.AnythingNode(position=here)
        first = self.expression()
        for symbol in ("&&&", ".."):
            if self.take(symbol):
                return x.BinaryNode(symbol, first, self.expression(), position=here)
        return first

    def expression(self) -> x.ExpressionNode:
        here = self.here
        if self.take("..."):
            return x.DotsNode(position=here)
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        then = self.expression()
        self.require(":")
        return x.ConditionalNode(condition, then, self.expression(), position=here)

    def binary(self, level: int) -> x.ExpressionNode:
        if level == len(_LEVELS):
            return self.unary()
        here = self.here
        left = self.binary(level + 1)
        while True:
            operator = self.operator(_LEVELS[level])
            if operator is None:
                return left
            left = x.BinaryNode(operator, left, self.binary(level + 1), position=here)

    def operator(self, among: tuple[str, ...]) -> str | None:
        if self.kind != "symbol":
            return None
        if self.sees_shift():
            if ">>" not in among:
                return None
            self._at += 2
            return ">>"
        return self.next().text if self.text in among else None

    def unary(self) -> x.ExpressionNode:
        here = self.here
        if self.kind == "symbol" and self.text in ("!", "~", "-", "+"):
            return x.UnaryNode(self.next().text, self.unary(), position=here)
        if self.sees("(") and self.begins_cast():
            self.require("(")
            type_ = self.type()
            self.require(")")
            return x.CastNode(type_, self.unary(), position=here)
        return self.postfix()

    def begins_cast(self) -> bool:
        first = self.ahead(2) if self.ahead().text == "." else self.ahead()
        if not self.is_type(first) or (first.text == "error" and self.ahead(2).text == "."):
            return False
        start = self._at
        try:
            self.require("(")
            self.type()
            if not self.take(")"):
                return False
            return self.kind in ("name", "number", "string") or self.text in _BEGINS_OPERAND
        except ProgramError:
            return False
        finally:
            self._at = start

    def postfix(self) -> x.ExpressionNode:
        found = self.primary()
        while True:
            here = self.here
            if self.take("."):
                found = x.MemberNode(found, self.name(), position=here)
            elif self.sees("["):
                self.next()
                first = self.expression()
                if self.take(":"):
                    found = x.SliceNode(found, first, self.expression(), position=here)
                elif self.take("+:"):
                    found = x.SliceNode(found, self.expression(), first, True, position=here)
                else:
                    found = x.IndexNode(found, first, position=here)
                self.require("]")
            elif self.sees("("):
                found = x.CallNode(found, [], self.arguments(), position=here)
            elif self.sees("<") and isinstance(found, x.NameNode | x.MemberNode) and self.begins_type_arguments():
                types = self.type_arguments()
                if self.sees("("):
                    found = x.CallNode(found, types, self.arguments(), position=here)
                else:
                    assert isinstance(found, x.NameNode)
                    found = x.TypeNameNode(x.NamedTypeNode(found.name, types, position=here), position=here)
            else:
                return found

    def begins_type_arguments(self) -> bool:
        first = self.ahead()
        if not (self.is_type(first) or first.text == "_"):
            return False
        start = self._at
        try:
            self.type_arguments()
            return self.sees("(") or self.sees(".")
        except ProgramError:
            return False
        finally:
            self._at = start

    def primary(self) -> x.ExpressionNode:
        here = self.here
        token = self._tokens[self._at]
        if token.kind == "number":
            self.next()
            return _number(token)
        if token.kind == "string":
            self.next()
            text = token.text[1:-1]
            while self.kind == "string":
                text += self.next().text[1:-1]
            return x.StringNode(text.replace('\\"', '"').replace("\\\\", "\\"), position=here)
        if token.text == "(" and token.kind == "symbol":
            self.next()
            inner = self.expression()
            self.require(")")
            return inner
        if token.text == "{" and token.kind == "symbol":
            return self.list_expression()
        if self.take("."):
            return x.NameNode(self.name(), True, position=here)
        if token.text in ("true", "false"):
            self.next()
            return x.BooleanNode(token.text == "true", position=here)
        if token.kind != "name":
            self.fail(f"expected an expression, got '{token.text}'")
        self.next()
        if token.text == "_":
            return x.AnythingNode(position=here)
        return x.NameNode(token.text, position=here)

    def list_expression(self) -> x.ExpressionNode:
        here = self.here
        self.require("{")
        if self.take("#"):
            self.require("}")
            return x.InvalidHeaderNode(position=here)
        items: list[x.ExpressionNode] = []
        names: list[str] = []
        rest = False
        while not self.take("}"):
            if items:
                self.require(",")
                if self.take("}"):
                    break
            if self.sees("...") and self.ahead().text == "}":
                self.next()
                rest = True
                continue
            if self.kind == "name" and self.ahead().text == "=" and self.ahead().kind == "symbol":
                names.append(self.name())
                self.require("=")
            items.append(self.expression())
        return x.ListExpressionNode(items, names or None, rest, position=here)


def _number(token: SourceToken) -> x.NumberNode:
    text = token.text.replace("_", "")
    width: int | None = None
    signed = False
    digits = text
    for mark in "ws":
        before, found, after = text.partition(mark)
        if found and before.isdigit():
            width, signed, digits = int(before), mark == "s", after
    bases = {"0x": 16, "0b": 2, "0o": 8, "0d": 10}
    base = bases.get(digits[:2].lower())
    value = int(digits, 10) if base is None else int(digits[2:], base)
    return x.NumberNode(value, width, signed, position=token.position)
