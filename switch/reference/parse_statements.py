"""Statements of P4_16, parsed by recursive descent."""

from __future__ import annotations

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.parse_expressions import BASE_TYPES, ExpressionParser
from gradbed.switch.reference.tokens import Position, ProgramError, SourceToken

_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|="))


class StatementParser(ExpressionParser):
    """Parses statements. A subclass parses the declarations among them."""

    def declaration(self) -> x.SyntaxNode:
        raise NotImplementedError

    def annotations(self) -> list[x.AnnotationNode]:
        found: list[x.AnnotationNode] = []
        while self.sees("@"):
            here = self.here
            self.next()
            name = self.next().text
            inside: list[SourceToken] = []
            if self.sees("(") or self.sees("["):
                depth = 0
                while True:
                    token = self.next()
                    if token.kind == "end":
                        self.fail("an annotation has no end")
                    depth += (token.text in ("(", "[") and token.kind == "symbol") - (
                        token.text in (")", "]") and token.kind == "symbol"
                    )
                    if depth == 0:
                        break
                    inside.append(token)
                inside = inside[1:]
            found.append(x.AnnotationNode(name, inside, position=here))
        return found

    def block(self) -> x.BlockNode:
        here = self.here
        self.annotations()
        self.require("{")
        found: list[x.SyntaxNode] = []
        while not self.take("}"):
            found.append(self.statement())
        return x.BlockNode(found, position=here)

    def statement(self) -> x.SyntaxNode:
        start = self._at
        annotations = self.annotations()
        here = self.here
        if self.take(";"):
            return x.BlockNode([], position=here)
        if self.sees("{"):
            return self.block()
        word = self.text if self.kind == "name" else ""
        simple = {"exit": x.ExitNode, "break": x.BreakNode, "continue": x.ContinueNode}
        if word == "if":
            self.next()
            self.require("(")
            condition = self.expression()
            self.require(")")
            then = self.inner_statement()
            other = self.inner_statement() if self.take("else") else None
            return x.IfNode(condition, then, other, position=here)
        if word == "return":
            self.next()
            value = None if self.sees(";") else self.expression()
            self.require(";")
            return x.ReturnNode(value, position=here)
        if word in simple:
            self.next()
            self.require(";")
            return simple[word](position=here)
        if word == "switch":
            return self.switch()
        if word == "for":
            return self.for_()
        if word == "const" or self.begins_declaration():
            self._at = start
            return self.declaration()
        del annotations
        found = self.simple_statement()
        self.require(";")
        return found

    def inner_statement(self) -> x.StatementNode:
        found = self.statement()
        if not isinstance(found, x.StatementNode):
            raise ProgramError(found.position, "a declaration stands alone where a statement is needed")
        return found

    def begins_declaration(self) -> bool:
        """Return whether a type with a name behind it comes next, or an instance: `T x`, `T(...) x;`."""
        token = self._tokens[self._at]
        if token.kind != "name":
            return False
        if token.text in BASE_TYPES:
            return self.ahead().text != "."
        if token.text not in self._types:
            return self.ahead().kind == "name" and self.ahead().text not in ("in",)
        start = self._at
        try:
            self.type()
            if self.sees("("):
                self.arguments()
            return self.kind == "name"
        except ProgramError:
            return False
        finally:
            self._at = start

    def simple_statement(self) -> x.StatementNode:
        """Parse an assignment or a call, without the semicolon."""
        here = self.here
        target = self.postfix()
        if isinstance(target, x.CallNode) and not (self.kind == "symbol" and self.text in _ASSIGNMENTS):
            return x.CallStatementNode(target, position=here)
        if self.sees(">") and self.ahead().text == ">=":
            self._at += 2
            return x.AssignmentNode(target, ">>", self.expression(), position=here)
        if self.kind != "symbol" or self.text not in _ASSIGNMENTS:
            self.fail(f"expected a statement, got '{self.text}'")
        operator = self.next().text.removesuffix("=")
        return x.AssignmentNode(target, operator, self.expression(), position=here)

    def switch(self) -> x.SwitchNode:
        here = self.here
        self.next()
        self.require("(")
        value = self.expression()
        self.require(")")
        self.require("{")
        cases: list[x.SwitchCaseNode] = []
        while not self.take("}"):
            self.annotations()
            at = self.here
            label = None if self.take("default") else self.expression()
            self.require(":")
            body = self.block() if self.sees("{") else None
            cases.append(x.SwitchCaseNode(label, body, position=at))
        return x.SwitchNode(value, cases, position=here)

    def for_(self) -> x.StatementNode:
        here = self.here
        self.next()
        self.require("(")
        start = self._at
        self.annotations()
        if self.begins_declaration():
            type_ = self.type()
            name = self.name()
            if self.take("in"):
                return self.for_in(type_, name, here)
        elif self.kind == "name" and self.ahead().text == "in":
            name = self.name()
            self.require("in")
            return self.for_in(None, name, here)
        self._at = start
        initial: list[x.SyntaxNode] = []
        while not self.take(";"):
            if initial:
                self.require(",")
            self.annotations()
            at = self.here
            if self.begins_declaration():
                type_ = self.type()
                name = self.name()
                initial.append(
                    x.VariableNode(name, type_, self.expression() if self.take("=") else None, position=at)
                )
            else:
                initial.append(self.simple_statement())
        condition = self.expression()
        self.require(";")
        updates: list[x.StatementNode] = []
        while not self.take(")"):
            if updates:
                self.require(",")
            updates.append(self.simple_statement())
        return x.ForNode(initial, condition, updates, self.inner_statement(), position=here)

    def for_in(self, type_: x.TypeNode | None, name: str, here: Position) -> x.ForInNode:
        items = self.expression()
        if self.sees(".."):
            self.next()
            items = x.BinaryNode("..", items, self.expression(), position=here)
        self.require(")")
        return x.ForInNode(type_, name, items, self.inner_statement(), position=here)
