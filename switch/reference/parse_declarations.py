"""Declarations of P4_16, and whole programs, parsed by recursive descent."""

from __future__ import annotations

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.parse_expressions import BASE_TYPES
from gradbed.switch.reference.parse_statements import StatementParser
from gradbed.switch.reference.tokens import Position, SourceToken


def parse_program(found: list[SourceToken]) -> x.ProgramNode:
    """Parse a whole program."""
    parser = DeclarationParser(found)
    declarations: list[x.SyntaxNode] = []
    while parser.kind != "end":
        if not parser.take(";"):
            declarations.append(parser.declaration())
    return x.ProgramNode(declarations)


class DeclarationParser(StatementParser):
    """Parses what stands at the top of a program, in parsers and in controls."""

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
        if self.ahead().text in ("{", ";", "<") and self.text not in BASE_TYPES:
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
        """Parse a variable, an instance, or a function."""
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
