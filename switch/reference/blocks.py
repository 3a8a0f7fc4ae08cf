"""Declarations: parsers, controls, tables and actions as they are instantiated (P4_16, sections 11, 13 to 16)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.calls import Calls, Externs
from gradbed.switch.reference.expressions import ParserFailure
from gradbed.switch.reference.parse import parse_expressions
from gradbed.switch.reference.scope import (
    Cell,
    Generic,
    Overloads,
    Parameter,
    Place,
    Scope,
    Subroutine,
    Typed,
    constant,
)
from gradbed.switch.reference.statements import Step
from gradbed.switch.reference.tables import (
    ActionCall,
    AnyValue,
    Entry,
    Exact,
    Key,
    ListedAction,
    Masked,
    Matcher,
    Table,
)
from gradbed.switch.reference.tokens import Position, ProgramError
from gradbed.switch.reference.types import (
    VOID,
    BlockType,
    EnumType,
    ExternType,
    NewType,
    Record,
    Type,
    base_of,
    bits_of,
)
from gradbed.switch.reference.values import Value, copied

MAX_STATES = 10_000
MAX_VALUES = 1 << 16


class Architecture(Externs, Protocol):
    """What blocks ask of the architecture besides its functions."""

    def construct(self, type_: ExternType, name: str, values: Sequence[Value], types: Sequence[Type]) -> Any: ...
    def table_applied(self, table: Table, entry: Entry | None) -> None: ...
    def choose(self, table: Table, entry: Entry, values: Sequence[Value]) -> ActionCall: ...


class ValueSet:
    """A parser value set: members are set by the control plane, each one matcher for each field."""

    def __init__(self, name: str, type_: Type, size: int) -> None:
        self.name = name
        self.size = size
        self.types = _flat_types(type_)
        self.members: list[tuple[Matcher, ...]] = []

    def matches(self, value: Value) -> bool:
        """value: one value; of a select over several a list."""
        parts = _flat(value)
        return any(all(m.matches(v) for m, v in zip(each, parts, strict=True)) for each in self.members)


def _flat_types(type_: Type) -> list[Type]:
    """The types of a value set's fields, also of structs in structs."""
    base = base_of(type_)
    if not isinstance(base, Record):
        return [type_]
    return [inner for each in base.fields for inner in _flat_types(each.type)]


def _flat(value: Value) -> list[Value]:
    parts = value if isinstance(value, list) else getattr(value, "parts", None)
    return [value] if parts is None else [inner for part in parts for inner in _flat(part)]


class Blocks(Calls):
    """A program with all its instances."""

    externs: Architecture

    def __init__(self, program: x.Program, architecture: Architecture) -> None:
        self.externs = architecture
        self.error_names = set()
        self.match_kinds: set[str] = set()
        self.tables: dict[str, Table] = {}
        self.actions: dict[str, Subroutine] = {}
        self.value_sets: dict[str, ValueSet] = {}
        self.objects: dict[str, Any] = {}
        self.root = Scope()
        self.package: tuple[list[x.Argument], x.Package] | None = None
        self._paths: dict[int, str] = {}
        self._action_names: dict[int, str] = {}
        self._functions: dict[tuple[int, tuple[Type, ...]], Subroutine] = {}
        for node in program.declarations:
            step = self.declare(node, self.root)
            if step is not None and isinstance(node, x.Variable):
                raise ProgramError(node.position, "variables stand in controls, parsers and functions")

    # ---- Declarations ----

    def declare(self, node: x.Node, scope: Scope) -> Step | None:
        if isinstance(node, x.Variable):
            return self.variable(node, scope)
        if isinstance(node, x.Constant):
            type_ = self.type(node.type, scope)
            value = self.as_type(node.value, scope, type_)
            scope.set(node.name, constant(type_, value.run()))
        elif isinstance(node, x.Fields):
            if node.type_parameters:
                scope.set(node.name, Generic(node, scope))
            else:
                scope.set(node.name, Record(node.kind, node.name, self.fields(node, scope)))
        elif isinstance(node, x.Enum):
            scope.set(node.name, self._enum(node, scope))
        elif isinstance(node, x.Typedef):
            type_ = self.type(node.type, scope)
            scope.set(node.name, NewType(node.name, type_) if node.new else type_)
        elif isinstance(node, x.Members):
            (self.error_names if node.name == "error" else self.match_kinds).update(node.members)
        elif isinstance(node, x.Function):
            self._function(node, scope)
        elif isinstance(node, x.Extern | x.Control | x.Parser | x.Package):
            scope.set(node.name, Generic(node, scope))
        elif isinstance(node, x.Action):
            self._action(node, scope)
        elif isinstance(node, x.Instantiation):
            self._instance(node, scope)
        elif isinstance(node, x.Table):
            self._table(node, scope)
        elif isinstance(node, x.ValueSet):
            self._value_set(node, scope)
        else:
            raise ProgramError(node.position, f"{type(node).__name__} is not in the reference")
        return None

    def _enum(self, node: x.Enum, scope: Scope) -> EnumType:
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

    def _function(self, node: x.Function, scope: Scope) -> None:
        generic = Generic(node, scope)
        made: Any = generic
        if node.body is not None and not node.type_parameters:
            made = self.specialised_function(generic, {})
        before = scope.own(node.name)
        if isinstance(before, Overloads):
            before.functions.append(made)
        else:
            scope.set(node.name, Overloads([made]))

    def specialised_function(self, generic: Generic, types: dict[str, Type]) -> Subroutine:
        node: x.Function = generic.declaration
        key = (id(node), tuple(types.values()))
        if key not in self._functions:
            inner = Scope(generic.scope)
            for name, type_ in types.items():
                inner.set(name, type_)
            assert node.body is not None
            made = self._subroutine(node.name, node.parameters, self.type(node.result, inner), inner)
            made.body = self.body_of(node.body, inner, made.result)
            self._functions[key] = made
        return self._functions[key]

    def _subroutine(self, name: str, parameters: list[x.Parameter], result: Type, inner: Scope) -> Subroutine:
        """Its parameters with their cells, in the inner scope; the body is its maker's."""
        made = Subroutine(name, [], result)
        for each in parameters:
            type_ = self.type(each.type, inner)
            default = self.as_type(each.default, inner, type_) if each.default is not None else None
            made.parameters.append(Parameter(each.name, each.direction, type_, default))
            made.cells.append(inner.variable(each.name, type_, [None]))
        return made

    def _action(self, node: x.Action, scope: Scope) -> None:
        inner = Scope(scope)
        made = self._subroutine(node.name, node.parameters, VOID, inner)
        made.body = self.body_of(node.body, inner, VOID)
        made.is_action = True
        scope.set(node.name, made)
        name = self._named(node, scope)
        self._action_names[id(made)] = name
        self.actions[name] = made

    # ---- Names of the control plane (P4Runtime: @name, else the path of instances) ----

    def _named(self, node: x.Declaration, scope: Scope) -> str:
        return self._path_of(scope, self._own_name(node.name, node.annotations))

    def _own_name(self, name: str, annotations: list[x.Annotation]) -> str:
        for each in annotations:
            if each.name == "name" and each.tokens:
                return "".join(token.text[1:-1] for token in each.tokens if token.kind == "string")
        return name

    def _path_of(self, scope: Scope, name: str) -> str:
        if name.startswith("."):
            return name[1:]
        path = scope.find(_PATH)
        return f"{path}.{name}" if path else name

    # ---- Instances ----

    def _instance(self, node: x.Instantiation, scope: Scope) -> None:
        name = self._own_name(node.name, node.annotations)
        type_name = node.type.name if isinstance(node.type, x.NamedNode) else ""
        meaning = scope.find(type_name)
        if isinstance(meaning, Generic) and isinstance(meaning.declaration, x.Package):
            if node.name == "main":
                self.package = (node.arguments, meaning.declaration)
            return
        scope.set(node.name, self._made(node.type, node.arguments, scope, self._path_of(scope, name), node.position))

    def _made(
        self, type_node: x.TypeNode, arguments: list[x.Argument], scope: Scope, path: str, position: Position
    ) -> Typed:
        """An object of an extern, parser or control, by its constructor."""
        type_name = type_node.name if isinstance(type_node, x.NamedNode) else ""
        meaning = scope.get(type_name, position)
        if isinstance(meaning, ExternType):
            meaning = scope.outermost.get(meaning.name, position)
            type_: Type = scope.get(type_name, position)
        else:
            type_ = self.type(type_node, scope)
        if not isinstance(meaning, Generic):
            raise ProgramError(position, f"{type_name} cannot be instantiated")
        if isinstance(meaning.declaration, x.Extern):
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

    def constructor_argument(self, argument: x.Argument, scope: Scope, path: str) -> Typed:
        value = argument.value
        if isinstance(value, x.Call) and isinstance(value.function, x.Name | x.TypeName):
            name = value.function.name if isinstance(value.function, x.Name) else ""
            node = (
                value.function.type
                if isinstance(value.function, x.TypeName)
                else x.NamedNode(name, value.type_arguments, position=value.position)
            )
            meaning = scope.find(getattr(node, "name", ""))
            if isinstance(meaning, Generic) and not isinstance(meaning.declaration, x.Function | x.Fields):
                return self._made(node, value.arguments, scope, path, value.position)
        return self.expression(value, scope)

    def direct_instance(self, declaration: Any, scope: Scope, position: Position) -> Subroutine:
        """Type.apply(...): an instance without a name (section 14.3)."""
        path = self._path_of(scope, declaration.declaration.name)
        return self.instantiate(declaration, [], [], path, position)

    def instantiate(
        self, generic: Generic, values: Sequence[Typed], names: Sequence[str | None], path: str, position: Position
    ) -> Subroutine:
        """A parser or control with the arguments of its constructor."""
        node: x.Control | x.Parser = generic.declaration
        inner = Scope(generic.scope)
        inner.set(_PATH, path)
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
        if isinstance(node, x.Control):
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

    def _states(self, node: x.Parser, scope: Scope) -> Callable[[], Value]:
        if node.states is None:
            raise ProgramError(node.position, f"{node.name} has no states")
        known = {state.name for state in node.states} | {"accept", "reject"}
        states: dict[str, tuple[Step, Callable[[], str]]] = {}
        for state in node.states:
            inner = Scope(scope)
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

    def _transition(self, node: x.Transition | None, scope: Scope, known: set[str]) -> Callable[[], str]:
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
            value_set = self.value_set(scope.find(keys.name)) if isinstance(keys, x.Name) else None
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

    def _items(self, keys: x.Expression, count: int) -> list[x.Expression]:
        items: list[x.Expression]
        if isinstance(keys, x.Tuple | x.ListExpression) and count > 1:
            items = keys.items
        elif isinstance(keys, x.Anything):
            return [keys] * count
        else:
            items = [keys]
        if len(items) != count:
            raise ProgramError(keys.position, f"{len(items)} sets where {count} are needed")
        return items

    def _value_set(self, node: x.ValueSet, scope: Scope) -> None:
        name = self._named(node, scope)
        made = ValueSet(name, self.type(node.type, scope), self.natural(node.size, scope))
        self.value_sets[name] = made
        scope.set(node.name, made)

    def value_set(self, meaning: Any) -> Matcher | None:
        return meaning if isinstance(meaning, ValueSet) else None

    # ---- Tables (section 14.2) ----

    def _table(self, node: x.Table, scope: Scope) -> None:
        name = self._named(node, scope)
        keys = [self._key(each, scope) for each in node.keys]
        references = list(node.actions)
        default_node = node.properties.get("default_action")
        default = self._reference(default_node) if default_node is not None else x.ActionReference("NoAction", [])
        if not any(each.name == default.name for each in references):
            references.append(default)
        actions = {each.name: self._listed(each, scope) for each in references}
        chosen = actions[default.name]
        table = Table(
            name, keys, actions, ActionCall(default.name, self._data(chosen, self._given(default, chosen), scope))
        )
        for property_, attribute in (("counters", "counter"), ("meters", "meter"), ("implementation", "profile")):
            value = node.properties.get(property_)
            if value is not None:
                argument = x.Argument(None, value, position=value.position)
                made = self.constructor_argument(argument, scope, f"{name}.{property_}").run()
                setattr(table, attribute, made)
                if hasattr(made, "tables"):
                    made.tables.append(table)
        largest = node.properties.get("largest_priority_wins")
        delta = node.properties.get("priority_delta")
        self._entries(
            node,
            table,
            scope,
            largest is None or bool(self.expression(largest, scope).run()),
            1 if delta is None else self.natural(delta, scope),
        )
        self.tables[name] = table
        scope.set(node.name, constant(BlockType("table"), table))

    def _key(self, node: x.Key, scope: Scope) -> Key:
        if node.match not in self.match_kinds:
            raise ProgramError(node.position, f"there is no match kind {node.match}")
        typed = self.expression(node.value, scope)
        bits = bits_of(typed.type)
        name = self._own_name("", node.annotations) or _written(node.value)
        return Key(name, node.match, typed, bits.width if bits is not None else None)

    def _reference(self, node: x.Expression) -> x.ActionReference:
        if isinstance(node, x.Name):
            return x.ActionReference(node.name, [], position=node.position)
        if isinstance(node, x.Call) and isinstance(node.function, x.Name):
            return x.ActionReference(node.function.name, node.arguments, position=node.position)
        raise ProgramError(node.position, "an action is needed")

    def _listed(self, node: x.ActionReference, scope: Scope) -> ListedAction:
        """Arguments for parameters with a direction stand in the list; the control plane gives the others."""
        subroutine = scope.get(node.name, node.position)
        if not isinstance(subroutine, Subroutine) or not subroutine.is_action:
            raise ProgramError(node.position, f"{node.name} is no action")
        directed = [index for index, each in enumerate(subroutine.parameters) if each.direction]
        plain = [index for index, each in enumerate(subroutine.parameters) if not each.direction]
        arguments = node.arguments[: len(directed)]
        if len(arguments) != len(directed):
            raise ProgramError(node.position, f"{node.name} needs arguments for what has a direction")
        copies = [
            self._copy_in(subroutine.parameters[index], argument.value, scope, node.position)
            for index, argument in zip(directed, arguments, strict=True)
        ]
        bound: list[Cell] = [subroutine.cells[index] for index in directed]
        data = [subroutine.cells[index] for index in plain]

        def run(values: Sequence[Value]) -> None:
            saved: list[tuple[Value, Place | None]] = [copy() for copy in copies]
            for cell, (value, _) in zip(bound, saved, strict=True):
                cell[0] = value
            for cell, value in zip(data, values, strict=True):
                cell[0] = copied(value)
            self.finish(subroutine, bound, [place for _, place in saved])

        return ListedAction(self._action_names[id(subroutine)], subroutine, run)

    def _given(self, reference: x.ActionReference, action: ListedAction) -> list[x.Argument]:
        """Of the arguments in an entry or default action, those for the control plane's parameters."""
        directed = len(action.subroutine.parameters) - len(action.subroutine.data)
        total = len(action.subroutine.parameters)
        return reference.arguments[directed:] if len(reference.arguments) == total else reference.arguments

    def _data(self, action: ListedAction, arguments: list[x.Argument], scope: Scope) -> tuple[Value, ...]:
        parameters = action.subroutine.data
        by_name = {argument.name: argument for argument in arguments if argument.name is not None}
        if len(arguments) != len(parameters):
            raise ProgramError(
                arguments[0].position if arguments else Position(action.name, 0),
                f"{action.name} takes {len(parameters)} values",
            )
        found = []
        for index, parameter in enumerate(parameters):
            argument = by_name.get(parameter.name, arguments[index])
            found.append(self.as_type(argument.value, scope, parameter.type).run())
        return tuple(found)

    def _entries(self, node: x.Table, table: Table, scope: Scope, largest_wins: bool, delta: int) -> None:
        """Priorities as section 14.2.1.4 counts them; here the larger wins, so others are turned round."""
        keys = table.matched_keys
        priorities: list[int | None] = [
            None if each.priority is None else self.natural(each.priority, scope) for each in node.entries
        ]
        counted: list[int]
        if all(each is None for each in priorities):
            # As P4Runtime counts entries that are ranked by position: the last one has 1.
            ranks = self._ranks(node.entries, scope)
            counted = [max(ranks) + 1 - rank for rank in ranks]
        else:
            counted = []
            for each in priorities:
                if each is not None:
                    counted.append(each)
                elif not counted:
                    counted.append((len(priorities) - 1) * delta + 1 if largest_wins else 1)
                else:
                    counted.append(counted[-1] - delta if largest_wins else counted[-1] + delta)
            if not largest_wins:
                counted = [-each for each in counted]
        for entry, priority in zip(node.entries, counted, strict=True):
            items = entry.keys
            if len(items) != len(keys) and len(items) == 1:
                items = self._items(items[0], len(keys))
            matchers = tuple(
                _entry_matcher(self.matcher(item, scope, key.typed.type)(), key)
                for item, key in zip(items, keys, strict=True)
            )
            action = table.actions.get(entry.action.name)
            if action is None:
                raise ProgramError(entry.position, f"{table.name} has no action {entry.action.name}")
            data = self._data(action, self._given(entry.action, action), scope)
            table.entries.append(Entry(matchers, ActionCall(entry.action.name, data), priority, constant=True))

    def _ranks(self, entries: list[x.Entry], scope: Scope) -> list[int]:
        """1, 2, ... in order, of which the smallest wins; @priority, which is p4c's own, gives another rank."""
        ranks = list(range(1, len(entries) + 1))
        for index, entry in enumerate(entries):
            for annotation in entry.annotations:
                if annotation.name == "priority":
                    ranks[index] = self.natural(parse_expressions(annotation.tokens)[0], scope)
        return ranks

    def apply_table(self, table: Table) -> tuple[bool, str]:
        """Key, entry, action (section 14.2.2); returns whether it hit, and the action's name in the table."""
        values = [copied(value) for value in table.values()]
        entry = table.find(values) if table.keys else None
        if entry is None:
            call = table.default
        elif isinstance(entry.call, ActionCall):
            call = entry.call
        else:
            call = self.externs.choose(table, entry, values)
        table.current = entry
        self.externs.table_applied(table, entry)
        action = table.actions[call.action]
        action.run(call.arguments)
        return entry is not None, call.action


_PATH = "path of this instance"
"""In a scope: what goes before the names of what it declares. No program has a name with a blank."""


def _entry_matcher(matcher: Matcher, key: Key) -> Matcher:
    """A single value in a field that takes prefixes is one of full length."""
    if isinstance(matcher, Exact) and key.match == "lpm" and key.width is not None:
        return Masked(int(matcher.value), (1 << key.width) - 1)
    if isinstance(matcher, AnyValue) and key.match == "lpm":
        return Masked(0, 0)
    return matcher


def _written(node: x.Expression) -> str:
    """A key field's name: as it is written (P4Runtime, section on @name)."""
    if isinstance(node, x.Name):
        return node.name
    if isinstance(node, x.Member):
        return f"{_written(node.base)}.{node.name}"
    if isinstance(node, x.Index) and isinstance(node.index, x.Number):
        return f"{_written(node.base)}[{node.index.value}]"
    if isinstance(node, x.Slice) and isinstance(node.high, x.Number) and isinstance(node.low, x.Number):
        return f"{_written(node.base)}[{node.high.value}:{node.low.value}]"
    if isinstance(node, x.Call) and isinstance(node.function, x.Member) and node.function.name == "isValid":
        return f"{_written(node.function.base)}.isValid()"
    return ""
