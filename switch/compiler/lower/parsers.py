"""Parsers to states."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower.expressions import Expressions
from switch.compiler.lower.places import Value
from switch.compiler.lower.scope import Code, Frame
from switch.compiler.ranges import prefixes_of_range

if TYPE_CHECKING:
    from switch.compiler.lower.instances import InstanceState
    from switch.compiler.lower.statements import Statements

MAX_CASES = 4096


class Parsers:
    expressions: Expressions
    statements: Statements

    def __init__(self, code: Code) -> None:
        self._code = code

    def inline(self, declaration: s.ParserDeclaration, state: InstanceState, node: s.Node) -> None:
        """Run a sub-parser here."""
        start = self.states(declaration, state, prefix=f"{state.instance.name}_")
        self._code.emit(ir.SubParser(node.loc, node.end, start))

    def states(self, declaration: s.ParserDeclaration, state: InstanceState, prefix: str = "") -> ir.State:
        """All states of a parser; returns the one to start with."""
        assert declaration.states is not None
        frame = state.frame
        lowered = {
            item.name: ir.State(self._code.program.state_names.unique(prefix + item.name), [], None, item.loc)
            for item in declaration.states
        }
        for item in declaration.states:
            target = lowered[item.name]
            with self._code.branch() as body:
                for statement in item.statements:
                    self.statements.lower(statement, frame)
                target.transition = self._transition(item, lowered, frame)
            target.body = body
        with self._code.branch() as initial:
            for local in declaration.locals:
                if isinstance(local, s.VariableDeclaration):
                    self.statements.lower(local, frame)
        start = lowered["start"]
        if not initial:
            return start
        name = self._code.program.state_names.unique(prefix + "initial")
        return ir.State(name, initial, ir.Select([], [], start), declaration.loc)

    def _transition(self, item: s.StateDeclaration, states: dict[str, ir.State], frame: Frame) -> ir.Select:
        node = item.transition
        if node is None:
            return ir.Select([], [], "reject")
        if node.keys is None:
            return ir.Select([], [], states.get(node.state, node.state), default_at=(node.loc, node.end))
        keys = [
            self._key(value, key)
            for value, key in zip(self.expressions.values(node.keys, frame), node.keys, strict=True)
        ]
        select = ir.Select(keys, [], "reject", has_default=False)
        for case in node.cases:
            target = states.get(case.state, case.state)
            if isinstance(case.label, s.Wildcard) or (
                isinstance(case.label, s.ListExpression)
                and all(isinstance(label, s.Wildcard) for label in case.label.items)
            ):
                select.default = target
                select.has_default = True
                select.default_at = case.loc, case.end
                break
            select.cases.extend(self._cases(case, keys, target, frame))
            if len(select.cases) > MAX_CASES:
                raise self._code.reporter.fatal(case.loc, f"select has more than {MAX_CASES} cases")
        return select

    def _key(self, value: Value, node: s.Expression) -> ir.Expr:
        expr = self.expressions.as_scalar(value, node)
        if isinstance(expr, (ir.FieldRef, ir.StackLast)) and getattr(expr, "field", "") != "$valid$":
            return expr
        copy = self._code.program.storage.scalar(expr.type, "select")
        self._code.emit(ir.Assign(node.loc, node.end, copy, expr))
        return copy

    def _cases(self, case: s.SelectCase, keys: list[ir.Expr], target: ir.Target, frame: Frame) -> list[ir.Case]:
        labels = case.label.items if isinstance(case.label, s.ListExpression) else [case.label]
        value_set = self._value_set(labels, frame)
        if value_set is not None:
            if len(labels) > 1:
                self._code.error(case, "a value set must be the whole label on this target")
            return [ir.Case([], value_set, target, (case.loc, case.end))]
        if len(labels) != len(keys):
            return []
        options = [self._options(label, key, frame) for label, key in zip(labels, keys, strict=True)]
        at = case.loc, case.end
        return [ir.Case(list(matches), "", target, at) for matches in itertools.product(*options)]

    def _value_set(self, labels: list[s.Expression], frame: Frame) -> str | None:
        for label in labels:
            if isinstance(label, s.Name) and label.symbol is not None and label.symbol.kind == "value_set":
                return self._code.program.value_set(label.symbol, frame)
        return None

    def _options(self, label: s.Expression, key: ir.Expr, frame: Frame) -> list[tuple[int, int | None]]:
        """(value, mask) pairs that together are the label; mask None: all bits."""
        width = t.width_bits(key.type) or 0
        ones = (1 << width) - 1
        if isinstance(label, s.Wildcard):
            return [(0, 0)]
        if isinstance(label, s.Binary) and label.operator in ("&&&", ".."):
            first, second = (
                self._constant(label.left, frame) & ones,
                self._constant(label.right, frame) & ones,
            )
            if label.operator == "&&&":
                return [(first & second, second)]
            if isinstance(key.type, t.Int):
                self._code.error(label, "ranges of signed numbers are not supported on this target")
                return []
            if first > second:
                self._code.error(label, "this range is empty")
                return []
            return [
                (value, None if mask == ones else mask) for value, mask in prefixes_of_range(first, second, width)
            ]
        return [(self._constant(label, frame) & ones, None)]

    def _constant(self, node: s.Expression, frame: Frame) -> int:
        value = self.expressions.value(node, frame)
        if isinstance(value, ir.Const):
            return value.value
        self._code.error(node, "a label must be known at compile time")
        return 0
