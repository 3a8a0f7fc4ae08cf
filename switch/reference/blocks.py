"""Declarations: parsers, controls, tables and actions as they are instantiated (P4_16, sections 11, 13 to 16)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.expressions import ParserFailure
from gradbed.switch.reference.scope import (
    Environment,
    Generic,
    Overloads,
    Subroutine,
    TypedExpression,
    TypedParameter,
    constant,
)
from gradbed.switch.reference.statements import Step
from gradbed.switch.reference.table_declarations import PATH, Architecture, TableInterpreter
from gradbed.switch.reference.tables import (
    Matcher,
    RuntimeTable,
)
from gradbed.switch.reference.tokens import Position, ProgramError
from gradbed.switch.reference.values import (
    VOID,
    BlockType,
    EnumType,
    ExternType,
    IntroducedType,
    RecordType,
    Value,
    ValueType,
    base_of,
    copied,
)

MAX_STATES = 10_000
MAX_VALUES = 1 << 16


class RuntimeValueSet:
    """A parser value set: members are set by the control plane, each one matcher for each field."""

    def __init__(self, name: str, type_: ValueType, size: int) -> None:
        self.name = name
        self.size = size
        self.types = _flat_types(type_)
        self.members: list[tuple[Matcher, ...]] = []

    def matches(self, value: Value) -> bool:
        """Return whether a member matches the value, which is a list in a select over several."""
        parts = _flat(value)
        return any(all(m.matches(v) for m, v in zip(each, parts, strict=True)) for each in self.members)


def _flat_types(type_: ValueType) -> list[ValueType]:
    """Return the types of a value set's fields, also of structs in structs."""
    base = base_of(type_)
    if not isinstance(base, RecordType):
        return [type_]
    return [inner for each in base.fields for inner in _flat_types(each.type)]


def _flat(value: Value) -> list[Value]:
    parts = value if isinstance(value, list) else getattr(value, "parts", None)
    return [value] if parts is None else [inner for part in parts for inner in _flat(part)]


class BlockInterpreter(TableInterpreter):
    """A program with all its instances."""

    externs: Architecture

    def __init__(self, program: x.ProgramNode, architecture: Architecture) -> None:
        self.externs = architecture
        self.error_names = set()
        self.match_kinds: set[str] = set()
        self.tables: dict[str, RuntimeTable] = {}
        self.actions: dict[str, Subroutine] = {}
        self.value_sets: dict[str, RuntimeValueSet] = {}
        self.objects: dict[str, Any] = {}
        self.root = Environment()
        self.package: tuple[list[x.ArgumentNode], x.PackageNode] | None = None
        self._paths: dict[int, str] = {}
        self._action_names: dict[int, str] = {}
        self._functions: dict[tuple[int, tuple[ValueType, ...]], Subroutine] = {}
        for node in program.declarations:
            step = self.declare(node, self.root)
            if step is not None and isinstance(node, x.VariableNode):
                raise ProgramError(node.position, "variables stand in controls, parsers and functions")

    # ---- Declarations ----

    def declare(self, node: x.SyntaxNode, scope: Environment) -> Step | None:
        if isinstance(node, x.VariableNode):
            return self.variable(node, scope)
        if isinstance(node, x.ConstantNode):
            type_ = self.type(node.type, scope)
            value = self.as_type(node.value, scope, type_)
            scope.set(node.name, constant(type_, value.run()))
        elif isinstance(node, x.FieldsNode):
            if node.type_parameters:
                scope.set(node.name, Generic(node, scope))
            else:
                scope.set(node.name, RecordType(node.kind, node.name, self.fields(node, scope)))
        elif isinstance(node, x.EnumNode):
            scope.set(node.name, self._enum(node, scope))
        elif isinstance(node, x.TypedefNode):
            type_ = self.type(node.type, scope)
            scope.set(node.name, IntroducedType(node.name, type_) if node.new else type_)
        elif isinstance(node, x.MembersNode):
            (self.error_names if node.name == "error" else self.match_kinds).update(node.members)
        elif isinstance(node, x.FunctionNode):
            self._function(node, scope)
        elif isinstance(node, x.ExternNode | x.ControlNode | x.ParserNode | x.PackageNode):
            scope.set(node.name, Generic(node, scope))
        elif isinstance(node, x.ActionNode):
            self._action(node, scope)
        elif isinstance(node, x.InstantiationNode):
            self._instance(node, scope)
        elif isinstance(node, x.TableNode):
            self._table(node, scope)
        elif isinstance(node, x.ValueSetNode):
            self._value_set(node, scope)
        else:
            raise ProgramError(node.position, f"{type(node).__name__} is not in the reference")
        return None

    def _enum(self, node: x.EnumNode, scope: Environment) -> EnumType:
        if node.type is None:
            return EnumType(node.name, None, tuple((name, name) for name, _ in node.members))
        underlying = self.type(node.type, scope)
        members: list[tuple[str, int | str]] = []
        # A member may be computed from those before it.
        for name, value in node.members:
            if value is None:
                raise ProgramError(node.position, f"{node.name}.{name} has no value")
            scope.set(node.name, EnumType(node.name, underlying, tuple(members)))
            members.append((name, int(self.as_type(value, scope, underlying).run())))
        return EnumType(node.name, underlying, tuple(members))

    def _function(self, node: x.FunctionNode, scope: Environment) -> None:
        generic = Generic(node, scope)
        made: Any = generic
        if node.body is not None and not node.type_parameters:
            made = self.specialised_function(generic, {})
        before = scope.own(node.name)
        if isinstance(before, Overloads):
            before.functions.append(made)
        else:
            scope.set(node.name, Overloads([made]))

    def specialised_function(self, generic: Generic, types: dict[str, ValueType]) -> Subroutine:
        node: x.FunctionNode = generic.declaration
        key = (id(node), tuple(types.values()))
        if key not in self._functions:
            inner = Environment(generic.scope)
            for name, type_ in types.items():
                inner.set(name, type_)
            assert node.body is not None
            made = self._subroutine(node.name, node.parameters, self.type(node.result, inner), inner)
            made.body = self.body_of(node.body, inner, made.result)
            self._functions[key] = made
        return self._functions[key]

    def _subroutine(
        self, name: str, parameters: list[x.ParameterNode], result: ValueType, inner: Environment
    ) -> Subroutine:
        """Return a subroutine with cells for its parameters in the inner scope; the caller sets its body."""
        made = Subroutine(name, [], result)
        for each in parameters:
            type_ = self.type(each.type, inner)
            default = self.as_type(each.default, inner, type_) if each.default is not None else None
            made.parameters.append(TypedParameter(each.name, each.direction, type_, default))
            made.cells.append(inner.variable(each.name, type_, [None]))
        return made

    def _action(self, node: x.ActionNode, scope: Environment) -> None:
        inner = Environment(scope)
        made = self._subroutine(node.name, node.parameters, VOID, inner)
        made.body = self.body_of(node.body, inner, VOID)
        made.is_action = True
        scope.set(node.name, made)
        name = self._named(node, scope)
        self._action_names[id(made)] = name
        self.actions[name] = made

    # ---- Instances ----

    def _instance(self, node: x.InstantiationNode, scope: Environment) -> None:
        name = self._own_name(node.name, node.annotations)
        type_name = node.type.name if isinstance(node.type, x.NamedTypeNode) else ""
        meaning = scope.find(type_name)
        if isinstance(meaning, Generic) and isinstance(meaning.declaration, x.PackageNode):
            if node.name == "main":
                self.package = (node.arguments, meaning.declaration)
            return
        scope.set(node.name, self._made(node.type, node.arguments, scope, self._path_of(scope, name), node.position))

    def _made(
        self,
        type_node: x.TypeNode,
        arguments: list[x.ArgumentNode],
        scope: Environment,
        path: str,
        position: Position,
    ) -> TypedExpression:
        """Construct an object of an extern, parser or control."""
        type_name = type_node.name if isinstance(type_node, x.NamedTypeNode) else ""
        meaning = scope.get(type_name, position)
        if isinstance(meaning, ExternType):
            meaning = scope.outermost.get(meaning.name, position)
            type_: ValueType = scope.get(type_name, position)
        else:
            type_ = self.type(type_node, scope)
        if not isinstance(meaning, Generic):
            raise ProgramError(position, f"{type_name} cannot be instantiated")
        if isinstance(meaning.declaration, x.ExternNode):
            assert isinstance(type_, ExternType)
            given = [self.expression(argument.value, scope) for argument in arguments]
            made = self.externs.construct(type_, path, [each.run() for each in given], [each.type for each in given])
            if made is None:
                raise ProgramError(position, f"extern {type_name} is not in the reference")
            self.objects[path] = made
            return constant(type_, made)
        values = [self.constructor_argument(argument, scope, path) for argument in arguments]
        names = [argument.name for argument in arguments]
        return constant(BlockType(type_name), self.instantiate(meaning, values, names, path, position))

    def constructor_argument(self, argument: x.ArgumentNode, scope: Environment, path: str) -> TypedExpression:
        value = argument.value
        if isinstance(value, x.CallNode) and isinstance(value.function, x.NameNode | x.TypeNameNode):
            name = value.function.name if isinstance(value.function, x.NameNode) else ""
            node = (
                value.function.type
                if isinstance(value.function, x.TypeNameNode)
                else x.NamedTypeNode(name, value.type_arguments, position=value.position)
            )
            meaning = scope.find(getattr(node, "name", ""))
            if isinstance(meaning, Generic) and not isinstance(meaning.declaration, x.FunctionNode | x.FieldsNode):
                return self._made(node, value.arguments, scope, path, value.position)
        return self.expression(value, scope)

    def direct_instance(self, declaration: Any, scope: Environment, position: Position) -> Subroutine:
        """Return the instance without a name that Type.apply(...) runs (section 14.3)."""
        path = self._path_of(scope, declaration.declaration.name)
        return self.instantiate(declaration, [], [], path, position)

    def instantiate(
        self,
        generic: Generic,
        values: Sequence[TypedExpression],
        names: Sequence[str | None],
        path: str,
        position: Position,
    ) -> Subroutine:
        """Instantiate a parser or control with the arguments of its constructor."""
        node: x.ControlNode | x.ParserNode = generic.declaration
        inner = Environment(generic.scope)
        inner.set(PATH, path)
        by_name = {name: value for name, value in zip(names, values, strict=True) if name is not None}
        for index, parameter in enumerate(node.constructor):
            type_ = self.type(parameter.type, inner)
            given = by_name.get(parameter.name) or (values[index] if index < len(values) else None)
            if given is None:
                if parameter.default is None:
                    raise ProgramError(position, f"{node.name} needs {parameter.name}")
                given = self.expression(parameter.default, inner, type_)
            if not isinstance(type_, ExternType | BlockType):
                given = self.converted(given, type_, position)
            inner.set(parameter.name, given)
        made = self._subroutine(path, node.parameters, VOID, inner)
        first = self.sequence(node.locals, inner)
        if isinstance(node, x.ControlNode):
            if node.body is None:
                raise ProgramError(position, f"{node.name} has no body")
            apply = self.body_of(node.body, inner, VOID)
        else:
            apply = self._states(node, inner)

        def body() -> Value:
            first()
            return apply()

        made.body = body
        return made

    # ---- Parsers (section 13) ----

    def _states(self, node: x.ParserNode, scope: Environment) -> Callable[[], Value]:
        if node.states is None:
            raise ProgramError(node.position, f"{node.name} has no states")
        known = {state.name for state in node.states} | {"accept", "reject"}
        states: dict[str, tuple[Step, Callable[[], str]]] = {}
        for state in node.states:
            inner = Environment(scope)
            step = self.sequence(state.statements, inner)
            states[state.name] = (step, self._transition(state.transition, inner, known))

        def run() -> None:
            state = "start"
            for _ in range(MAX_STATES):
                if state == "accept":
                    return
                if state == "reject":
                    raise ParserFailure("NoError")
                step, following = states[state]
                step()
                state = following()
            raise ParserFailure("ParserTimeout")

        return run

    def _transition(self, node: x.TransitionNode | None, scope: Environment, known: set[str]) -> Callable[[], str]:
        if node is None:
            return lambda: "reject"
        for _, state in node.cases:
            if state not in known:
                raise ProgramError(node.position, f"there is no state {state}")
        if not node.values:
            always = node.cases[0][1]
            return lambda: always
        values = [self.expression(each, scope) for each in node.values]
        cases: list[tuple[list[Callable[[], Matcher]], str]] = []
        whole: dict[int, Matcher] = {}
        for keys, state in node.cases:
            value_set = self.value_set(scope.find(keys.name)) if isinstance(keys, x.NameNode) else None
            if value_set is not None and len(values) > 1:
                # One name for all: a value set whose fields are those of the select.
                whole[len(cases)] = value_set
                cases.append(([], state))
                continue
            items = self._items(keys, len(values))
            cases.append(([self.matcher(each, scope, v.type) for each, v in zip(items, values, strict=True)], state))

        def select() -> str:
            found = [copied(value.run()) for value in values]
            for number, (matchers, state) in enumerate(cases):
                if number in whole:
                    if whole[number].matches(found):
                        return state
                elif all(make().matches(value) for make, value in zip(matchers, found, strict=True)):
                    return state
            raise ParserFailure("NoMatch")

        return select

    def _value_set(self, node: x.ValueSetNode, scope: Environment) -> None:
        name = self._named(node, scope)
        made = RuntimeValueSet(name, self.type(node.type, scope), self.natural(node.size, scope))
        self.value_sets[name] = made
        scope.set(node.name, made)

    def value_set(self, meaning: Any) -> Matcher | None:
        return meaning if isinstance(meaning, RuntimeValueSet) else None
