"""Recursive descent over the tokens of a P4_16 program."""

from __future__ import annotations

from typing import NoReturn

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.tokens import Position, ProgramError, SourceToken

_BASE_TYPES = frozenset(("bit", "int", "varbit", "bool", "error", "string", "void", "tuple", "list", "match_kind"))
_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|="))
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


def parse_program(found: list[SourceToken]) -> x.ProgramNode:
    """Parse a whole program."""
    parser = _Parser(found)
    declarations: list[x.SyntaxNode] = []
    while parser.kind != "end":
        if not parser.take(";"):
            declarations.append(parser.declaration())
    return x.ProgramNode(declarations)


def parse_expressions(found: list[SourceToken]) -> list[x.ExpressionNode]:
    """Parse the inside of an annotation as expressions with commas between."""
    if not found:
        return []
    last = found[-1]
    parser = _Parser([*found, SourceToken("end", "", last.position, last.end, last.end)])
    items = [parser.expression()]
    while parser.take(","):
        items.append(parser.expression())
    return items


class _Parser:
    def __init__(self, found: list[SourceToken]) -> None:
        self._tokens = found
        self._at = 0
        # What is a type decides whether `(a)` is a cast and `<` begins type arguments.
        self._types: set[str] = set()

    # ---- Tokens ----

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
        """Two `>` that touch."""
        return self.sees(">") and self.ahead().text == ">" and self.ahead().start == self._tokens[self._at].end

    # ---- Types ----

    def is_type(self, token: SourceToken) -> bool:
        return token.kind == "name" and (token.text in _BASE_TYPES or token.text in self._types)

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

    # ---- Declarations ----

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

    def declaration(self) -> x.SyntaxNode:
        annotations = self.annotations()
        here = self.here
        if self.kind != "name":
            self.fail(f"expected a declaration, got '{self.text}'")
        word = self.text
        node: x.DeclarationNode
        if word == "const":
            node = self.constant()
        elif word in ("struct", "header", "header_union"):
            node = self.fields()
        elif word == "enum":
            node = self.enum()
        elif word in ("typedef", "type"):
            node = self.typedef()
        elif word in ("error", "match_kind") and self.ahead().text == "{":
            node = self.members()
        elif word == "extern":
            node = self.extern()
        elif word == "action":
            node = self.action()
        elif word == "parser" and self.ahead().kind == "name":
            node = self.parser()
        elif word == "control" and self.ahead().kind == "name":
            node = self.control()
        elif word == "package":
            node = self.package()
        else:
            node = self.typed_declaration()
        node.position = here
        node.annotations = annotations
        return node

    def constant(self) -> x.ConstantNode:
        self.require("const")
        type_ = self.type()
        name = self.name()
        self.require("=")
        value = self.expression()
        self.require(";")
        return x.ConstantNode(name, type_, value)

    def fields(self) -> x.FieldsNode:
        kind = self.next().text
        name = self.name()
        self._types.add(name)
        parameters = self.type_parameters()
        self.require("{")
        found: list[x.FieldNode] = []
        while not self.take("}"):
            annotations = self.annotations()
            here = self.here
            type_ = self.type()
            found.append(x.FieldNode(self.name(), type_, annotations=annotations, position=here))
            self.require(";")
        return x.FieldsNode(name, kind, parameters, found)

    def enum(self) -> x.EnumNode:
        self.require("enum")
        type_ = None if self.ahead().text == "{" else self.type()
        name = self.name()
        self._types.add(name)
        self.require("{")
        found: list[tuple[str, x.ExpressionNode | None]] = []
        while not self.take("}"):
            self.annotations()
            member = self.name()
            found.append((member, self.expression() if self.take("=") else None))
            if not self.take(","):
                self.require("}")
                break
        return x.EnumNode(name, type_, found)

    def typedef(self) -> x.DeclarationNode:
        new = self.next().text == "type"
        self.annotations()
        if self.text in ("struct", "header", "header_union"):
            made = self.fields()
            self.require(";")
            return made
        type_ = self.type()
        name = self.name()
        self._types.add(name)
        self.require(";")
        return x.TypedefNode(name, type_, new)

    def members(self) -> x.MembersNode:
        name = self.next().text
        self.require("{")
        found: list[str] = []
        while not self.take("}"):
            self.annotations()
            found.append(self.name())
            if not self.take(","):
                self.require("}")
                break
        return x.MembersNode(name, found)

    def extern(self) -> x.DeclarationNode:
        self.require("extern")
        # An object has a body or nothing behind its name; a function has a result before it.
        if self.ahead().text in ("{", ";", "<") and self.text not in _BASE_TYPES:
            start = self._at
            name = self.name()
            self._types.add(name)
            parameters = self.type_parameters()
            if self.take(";"):
                return x.ExternNode(name, parameters, [])
            if self.take("{"):
                methods: list[x.FunctionNode] = []
                while not self.take("}"):
                    annotations = self.annotations()
                    here = self.here
                    if self.text == name and self.ahead().text == "(":
                        self.next()
                        methods.append(
                            x.FunctionNode(name, x.NamedTypeNode("void"), [], self.parameters(), None, position=here)
                        )
                        self.require(";")
                        continue
                    self.take("abstract")
                    method = self.function(body=False)
                    method.annotations, method.position = annotations, here
                    methods.append(method)
                return x.ExternNode(name, parameters, methods)
            self._at = start
        return self.function(body=False)

    def function(self, body: bool) -> x.FunctionNode:
        result = self.type()
        name = self.name()
        type_parameters = self.type_parameters()
        parameters = self.parameters()
        if body and self.sees("{"):
            return x.FunctionNode(name, result, type_parameters, parameters, self.block())
        self.require(";")
        return x.FunctionNode(name, result, type_parameters, parameters, None)

    def parameters(self) -> list[x.ParameterNode]:
        self.require("(")
        found: list[x.ParameterNode] = []
        while not self.take(")"):
            if found:
                self.require(",")
            annotations = self.annotations()
            here = self.here
            direction = self.next().text if self.text in ("in", "out", "inout") else ""
            type_ = self.type()
            name = self.name()
            default = self.expression() if self.take("=") else None
            found.append(x.ParameterNode(name, direction, type_, default, annotations=annotations, position=here))
        return found

    def action(self) -> x.ActionNode:
        self.require("action")
        name = self.name()
        return x.ActionNode(name, self.parameters(), self.block())

    def package(self) -> x.PackageNode:
        self.require("package")
        name = self.name()
        self._types.add(name)
        type_parameters = self.type_parameters()
        parameters = self.parameters()
        self.require(";")
        return x.PackageNode(name, type_parameters, parameters)

    def control(self) -> x.ControlNode:
        self.require("control")
        name = self.name()
        self._types.add(name)
        type_parameters = self.type_parameters()
        parameters = self.parameters()
        if self.take(";"):
            return x.ControlNode(name, type_parameters, parameters, [], [], None)
        constructor = self.parameters() if self.sees("(") else []
        self.require("{")
        found: list[x.SyntaxNode] = []
        while not self.sees("apply"):
            if not self.take(";"):
                found.append(self.control_local())
        self.require("apply")
        body = self.block()
        self.require("}")
        return x.ControlNode(name, type_parameters, parameters, constructor, found, body)

    def control_local(self) -> x.SyntaxNode:
        start = self._at
        annotations = self.annotations()
        here = self.here
        if self.sees("table"):
            node = self.table()
            node.annotations, node.position = annotations, here
            return node
        self._at = start
        return self.declaration()

    def parser(self) -> x.ParserNode:
        self.require("parser")
        name = self.name()
        self._types.add(name)
        type_parameters = self.type_parameters()
        parameters = self.parameters()
        if self.take(";"):
            return x.ParserNode(name, type_parameters, parameters, [], [], None)
        constructor = self.parameters() if self.sees("(") else []
        self.require("{")
        found: list[x.SyntaxNode] = []
        states: list[x.StateNode] = []
        while not self.take("}"):
            start = self._at
            annotations = self.annotations()
            here = self.here
            if self.sees("state"):
                state = self.state()
                state.annotations, state.position = annotations, here
                states.append(state)
            elif self.sees("value_set"):
                self.next()
                self.require("<")
                type_ = self.type()
                self.require(">")
                self.require("(")
                size = self.expression()
                self.require(")")
                found.append(x.ValueSetNode(self.name(), type_, size, annotations=annotations, position=here))
                self.require(";")
            elif not self.take(";"):
                self._at = start
                found.append(self.declaration())
        return x.ParserNode(name, type_parameters, parameters, constructor, found, states)

    def state(self) -> x.StateNode:
        self.require("state")
        name = self.name()
        self.require("{")
        found: list[x.SyntaxNode] = []
        while not self.sees("transition") and not self.sees("}"):
            found.append(self.statement())
        transition = None
        if self.sees("transition"):
            here = self.here
            self.next()
            transition = self.transition(here)
        self.require("}")
        return x.StateNode(name, found, transition)

    def transition(self, here: Position) -> x.TransitionNode:
        if self.sees("select") and self.ahead().text == "(":
            self.next()
            values = self.expressions("(", ")")
            self.require("{")
            cases: list[tuple[x.ExpressionNode, str]] = []
            while not self.take("}"):
                self.annotations()
                keys = self.keyset()
                self.require(":")
                cases.append((keys, self.name()))
                self.require(";")
            self.take(";")
            return x.TransitionNode(values, cases, position=here)
        name = self.name()
        self.require(";")
        return x.TransitionNode([], [(x.AnythingNode(position=here), name)], position=here)

    def table(self) -> x.TableNode:
        self.require("table")
        name = self.name()
        self.require("{")
        keys: list[x.KeyNode] = []
        actions: list[x.ActionReferenceNode] = []
        entries: list[x.EntryNode] = []
        properties: dict[str, x.ExpressionNode] = {}
        while not self.take("}"):
            self.annotations()
            constant = self.take("const")
            property_ = self.name()
            self.require("=")
            if property_ == "key":
                self.require("{")
                while not self.take("}"):
                    here = self.here
                    value = self.expression()
                    self.require(":")
                    match = self.name()
                    keys.append(x.KeyNode(value, match, self.annotations(), position=here))
                    self.require(";")
            elif property_ == "actions":
                self.require("{")
                while not self.take("}"):
                    actions.append(self.action_reference())
                    self.require(";")
            elif property_ == "entries":
                self.require("{")
                while not self.take("}"):
                    entries.append(self.entry(constant))
                continue
            elif self.sees("{"):
                properties[property_] = self.primary()
            else:
                properties[property_] = self.expression()
            self.take(";")
        return x.TableNode(name, keys, actions, entries, properties)

    def action_reference(self) -> x.ActionReferenceNode:
        annotations = self.annotations()
        here = self.here
        self.take(".")
        name = self.name()
        arguments = self.arguments() if self.sees("(") else []
        return x.ActionReferenceNode(name, arguments, annotations, position=here)

    def entry(self, constant: bool) -> x.EntryNode:
        here = self.here
        constant = self.take("const") or constant
        priority = None
        if self.sees("priority") and self.ahead().text == "=":
            self.next()
            self.require("=")
            priority = self.expression()
            self.require(":")
        keys = self.keyset()
        self.require(":")
        action = self.action_reference()
        annotations = self.annotations()
        self.take(";")
        items = keys.items if isinstance(keys, x.TupleNode) else [keys]
        return x.EntryNode(items, action, priority, constant, annotations, position=here)

    def typed_declaration(self) -> x.DeclarationNode:
        """A variable, an instance, or a function."""
        start = self._at
        type_ = self.type()
        if self.sees("("):
            arguments = self.arguments()
            name = self.name()
            if self.sees("=") and self.ahead().text == "{":
                self.fail("objects with abstract methods are not in the reference")
            self.require(";")
            return x.InstantiationNode(name, type_, arguments)
        name = self.name()
        if self.sees("(") or self.sees("<"):
            self._at = start
            return self.function(body=True)
        value = self.expression() if self.take("=") else None
        self.require(";")
        return x.VariableNode(name, type_, value)

    # ---- Statements ----

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
        """A type and a name behind it, or an instance: `T x`, `T(...) x;`."""
        token = self._tokens[self._at]
        if token.kind != "name":
            return False
        if token.text in _BASE_TYPES:
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
        """An assignment or a call, without the semicolon."""
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
