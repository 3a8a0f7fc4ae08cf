"""Tables as a program declares them: keys, actions, entries, and how they are applied (P4_16, section 14.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.calls import CallInterpreter, Externs
from gradbed.switch.reference.parse_expressions import parse_expressions
from gradbed.switch.reference.scope import (
    Cell,
    Environment,
    LValue,
    Subroutine,
    TypedExpression,
    constant,
)
from gradbed.switch.reference.tables import (
    AnyValue,
    ExactMatcher,
    ListedAction,
    MaskedMatcher,
    Matcher,
    RuntimeActionCall,
    RuntimeEntry,
    RuntimeKey,
    RuntimeTable,
)
from gradbed.switch.reference.tokens import Position, ProgramError
from gradbed.switch.reference.values import (
    BlockType,
    ExternType,
    Value,
    ValueType,
    bits_of,
    copied,
)

PATH = "path of this instance"
"""In a scope: what goes before the names of what it declares. No program has a name with a blank."""


class Architecture(Externs, Protocol):
    """Hooks of the architecture for blocks, beside its functions."""

    def construct(self, type_: ExternType, name: str, values: Sequence[Value], types: Sequence[ValueType]) -> Any: ...
    def table_applied(self, table: RuntimeTable, entry: RuntimeEntry | None) -> None: ...
    def choose(self, table: RuntimeTable, entry: RuntimeEntry, values: Sequence[Value]) -> RuntimeActionCall: ...


class TableInterpreter(CallInterpreter):
    """Declares and applies a program's tables."""

    externs: Architecture
    match_kinds: set[str]
    tables: dict[str, RuntimeTable]
    _action_names: dict[int, str]

    def constructor_argument(self, argument: x.ArgumentNode, scope: Environment, path: str) -> TypedExpression:
        raise NotImplementedError

    # ---- Names of the control plane (P4Runtime: @name, else the path of instances) ----

    def _named(self, node: x.DeclarationNode, scope: Environment) -> str:
        return self._path_of(scope, self._own_name(node.name, node.annotations))

    def _own_name(self, name: str, annotations: list[x.AnnotationNode]) -> str:
        for each in annotations:
            if each.name == "name" and each.tokens:
                return "".join(token.text[1:-1] for token in each.tokens if token.kind == "string")
        return name

    def _path_of(self, scope: Environment, name: str) -> str:
        if name.startswith("."):
            return name[1:]
        path = scope.find(PATH)
        return f"{path}.{name}" if path else name

    # ---- Tables (section 14.2) ----

    def _table(self, node: x.TableNode, scope: Environment) -> None:
        name = self._named(node, scope)
        keys = [self._key(each, scope) for each in node.keys]
        references = list(node.actions)
        default_node = node.properties.get("default_action")
        default = self._reference(default_node) if default_node is not None else x.ActionReferenceNode("NoAction", [])
        if not any(each.name == default.name for each in references):
            references.append(default)
        actions = {each.name: self._listed(each, scope) for each in references}
        chosen = actions[default.name]
        table = RuntimeTable(
            name,
            keys,
            actions,
            RuntimeActionCall(default.name, self._data(chosen, self._given(default, chosen), scope)),
        )
        for property_, attribute in (("counters", "counter"), ("meters", "meter"), ("implementation", "profile")):
            value = node.properties.get(property_)
            if value is not None:
                argument = x.ArgumentNode(None, value, position=value.position)
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

    def _key(self, node: x.KeyNode, scope: Environment) -> RuntimeKey:
        if node.match not in self.match_kinds:
            raise ProgramError(node.position, f"there is no match kind {node.match}")
        typed = self.expression(node.value, scope)
        bits = bits_of(typed.type)
        name = self._own_name("", node.annotations) or _written(node.value)
        return RuntimeKey(name, node.match, typed, bits.width if bits is not None else None)

    def _reference(self, node: x.ExpressionNode) -> x.ActionReferenceNode:
        if isinstance(node, x.NameNode):
            return x.ActionReferenceNode(node.name, [], position=node.position)
        if isinstance(node, x.CallNode) and isinstance(node.function, x.NameNode):
            return x.ActionReferenceNode(node.function.name, node.arguments, position=node.position)
        raise ProgramError(node.position, "an action is needed")

    def _listed(self, node: x.ActionReferenceNode, scope: Environment) -> ListedAction:
        """Return an action of a table's list, with arguments for its parameters that have a direction.

        The control plane gives the others.
        """
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
            saved: list[tuple[Value, LValue | None]] = [copy() for copy in copies]
            for cell, (value, _) in zip(bound, saved, strict=True):
                cell[0] = value
            for cell, value in zip(data, values, strict=True):
                cell[0] = copied(value)
            self.finish(subroutine, bound, [place for _, place in saved])

        return ListedAction(self._action_names[id(subroutine)], subroutine, run)

    def _given(self, reference: x.ActionReferenceNode, action: ListedAction) -> list[x.ArgumentNode]:
        """Return the arguments in an entry or default action that are for the control plane's parameters."""
        directed = len(action.subroutine.parameters) - len(action.subroutine.data)
        total = len(action.subroutine.parameters)
        return reference.arguments[directed:] if len(reference.arguments) == total else reference.arguments

    def _data(self, action: ListedAction, arguments: list[x.ArgumentNode], scope: Environment) -> tuple[Value, ...]:
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

    def _entries(
        self, node: x.TableNode, table: RuntimeTable, scope: Environment, largest_wins: bool, delta: int
    ) -> None:
        """Add the entries of the program, with priorities as section 14.2.1.4 counts them.

        In RuntimeTable the larger priority wins; where the program wants the smaller one, they are negated.
        """
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
            table.entries.append(
                RuntimeEntry(matchers, RuntimeActionCall(entry.action.name, data), priority, constant=True)
            )

    def _ranks(self, entries: list[x.EntryNode], scope: Environment) -> list[int]:
        """Return the ranks 1, 2, ... of entries in order, of which the smallest wins.

        @priority, which is p4c's own, gives another rank.
        """
        ranks = list(range(1, len(entries) + 1))
        for index, entry in enumerate(entries):
            for annotation in entry.annotations:
                if annotation.name == "priority":
                    ranks[index] = self.natural(parse_expressions(annotation.tokens)[0], scope)
        return ranks

    def apply_table(self, table: RuntimeTable) -> tuple[bool, str]:
        """Evaluate the key, find the entry and run its action (section 14.2.2).

        Returns whether an entry was hit, and the action's name in the table.
        """
        values = [copied(value) for value in table.values()]
        entry = table.find(values) if table.keys else None
        if entry is None:
            call = table.default
        elif isinstance(entry.call, RuntimeActionCall):
            call = entry.call
        else:
            call = self.externs.choose(table, entry, values)
        table.current = entry
        self.externs.table_applied(table, entry)
        action = table.actions[call.action]
        action.run(call.arguments)
        return entry is not None, call.action

    def _items(self, keys: x.ExpressionNode, count: int) -> list[x.ExpressionNode]:
        items: list[x.ExpressionNode]
        if isinstance(keys, x.TupleNode | x.ListExpressionNode) and count > 1:
            items = keys.items
        elif isinstance(keys, x.AnythingNode):
            return [keys] * count
        else:
            items = [keys]
        if len(items) != count:
            raise ProgramError(keys.position, f"{len(items)} sets where {count} are needed")
        return items


def _entry_matcher(matcher: Matcher, key: RuntimeKey) -> Matcher:
    """Return the matcher of an entry's field; a single value in a field that takes prefixes is one of full length."""
    if isinstance(matcher, ExactMatcher) and key.match == "lpm" and key.width is not None:
        return MaskedMatcher(int(matcher.value), (1 << key.width) - 1)
    if isinstance(matcher, AnyValue) and key.match == "lpm":
        return MaskedMatcher(0, 0)
    return matcher


def _written(node: x.ExpressionNode) -> str:
    """Return the name of a key field without @name: its expression as it is written."""
    if isinstance(node, x.NameNode):
        return node.name
    if isinstance(node, x.MemberNode):
        return f"{_written(node.base)}.{node.name}"
    if isinstance(node, x.IndexNode) and isinstance(node.index, x.NumberNode):
        return f"{_written(node.base)}[{node.index.value}]"
    if isinstance(node, x.SliceNode) and isinstance(node.high, x.NumberNode) and isinstance(node.low, x.NumberNode):
        return f"{_written(node.base)}[{node.high.value}:{node.low.value}]"
    if isinstance(node, x.CallNode) and isinstance(node.function, x.MemberNode) and node.function.name == "isValid":
        return f"{_written(node.function.base)}.isValid()"
    return ""
