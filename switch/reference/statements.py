"""Statements: functions that carry them out (P4_16, section 12). What they return says how control goes on."""

from __future__ import annotations

from collections.abc import Callable

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.expressions import ExpressionInterpreter
from gradbed.switch.reference.scope import Cell, CellLValue, Environment, TypedExpression
from gradbed.switch.reference.tables import RangeMatcher
from gradbed.switch.reference.tokens import ProgramError
from gradbed.switch.reference.values import (
    INTEGER,
    VOID,
    ApplyResultType,
    ListType,
    StackType,
    ValueType,
    base_of,
    bits_of,
    copied,
    default,
)

MAX_ROUNDS = 1 << 20


class ExitSignal(Exception):
    """Exit: ends every block that runs. Arguments are copied out all the same (section 12.5)."""


class Signal:
    """The way in which a statement ended, where control does not simply go on."""

    def __init__(self, name: str) -> None:
        self.name = name


RETURN, BREAK, CONTINUE = Signal("return"), Signal("break"), Signal("continue")
Step = Callable[[], Signal | None]
RESULT = "return value"
"""In a scope: the type and the cell of what a function returns. No program has a name with a blank."""


class StatementInterpreter(ExpressionInterpreter):
    """Interprets statements."""

    def declare(self, node: x.SyntaxNode, scope: Environment) -> Step | None:
        raise NotImplementedError

    def block(self, nodes: list[x.SyntaxNode], scope: Environment) -> Step:
        """Return the function that runs statements one after the other, in a scope of their own."""
        return self.sequence(nodes, Environment(scope))

    def sequence(self, nodes: list[x.SyntaxNode], scope: Environment) -> Step:
        steps = [step for node in nodes if (step := self.step(node, scope)) is not None]
        if len(steps) == 1:
            return steps[0]

        def run() -> Signal | None:
            for step in steps:
                signal = step()
                if signal is not None:
                    return signal
            return None

        return run

    def step(self, node: x.SyntaxNode, scope: Environment) -> Step | None:
        """Return a statement, or a declaration among statements; None if it does nothing."""
        if not isinstance(node, x.StatementNode):
            return self.declare(node, scope)
        return self.statement(node, scope)

    def statement(self, node: x.StatementNode, scope: Environment) -> Step:
        if isinstance(node, x.AssignmentNode):
            return self._assignment(node, scope)
        if isinstance(node, x.CallStatementNode):
            run = self.call(node.call, scope, None).run

            def call() -> None:
                run()

            return call
        if isinstance(node, x.BlockNode):
            return self.block(node.statements, scope)
        if isinstance(node, x.IfNode):
            return self._if(node, scope)
        if isinstance(node, x.ReturnNode):
            return self._return(node, scope)
        if isinstance(node, x.ExitNode):
            return _exit
        if isinstance(node, x.BreakNode):
            return lambda: BREAK
        if isinstance(node, x.ContinueNode):
            return lambda: CONTINUE
        if isinstance(node, x.SwitchNode):
            return self._switch(node, scope)
        if isinstance(node, x.ForNode):
            return self._for(node, scope)
        if isinstance(node, x.ForInNode):
            return self._for_in(node, scope)
        raise ProgramError(node.position, f"{type(node).__name__} is not in the reference")

    def _assignment(self, node: x.AssignmentNode, scope: Environment) -> Step:
        """Return an assignment: the l-value is found first, then the right side is evaluated (section 12.1)."""
        type_, place = self.target(node.target, scope)
        if not node.operator:
            run = self.as_type(node.value, scope, type_).run

            def assign() -> None:
                found = place()
                found.set(copied(run()))

            return assign
        held: list[TypedExpression] = [TypedExpression(type_, lambda: value[0])]
        value: Cell = [None]
        if node.operator in ("<<", ">>"):
            computed = self._shift(node.operator, held[0], self.expression(node.value, scope), node.position)
        else:
            left, right = self.unified(held[0], self.expression(node.value, scope), node.position)
            computed = self.operation(node.operator, left, right, node.position)
        compute = self.converted(computed, type_, node.position).run

        def change() -> None:
            found = place()
            value[0] = found.get()
            found.set(compute())

        return change

    def _if(self, node: x.IfNode, scope: Environment) -> Step:
        condition = self.expression(node.condition, scope).run
        then = self.statement(node.then, scope)
        other = self.statement(node.other, scope) if node.other is not None else None

        def run() -> Signal | None:
            if condition():
                return then()
            return other() if other is not None else None

        return run

    def _return(self, node: x.ReturnNode, scope: Environment) -> Step:
        type_, cell = scope.get(RESULT, node.position)
        if node.value is None:
            return lambda: RETURN
        if type_ == VOID:
            raise ProgramError(node.position, "nothing is returned here")
        value = self.as_type(node.value, scope, type_).run

        def run() -> Signal:
            cell[0] = copied(value())
            return RETURN

        return run

    def _switch(self, node: x.SwitchNode, scope: Environment) -> Step:
        typed = self.expression(node.value, scope)
        bodies = [self.block(case.body.statements, scope) if case.body is not None else None for case in node.cases]
        # A label without a body shares the next one's (section 12.7).
        following: list[Step | None] = []
        for index in range(len(bodies)):
            following.append(next((body for body in bodies[index:] if body is not None), None))
        run = typed.run
        if isinstance(typed.type, ApplyResultType):
            labels = [self._action_label(case.label) for case in node.cases]
            choices = dict(zip(labels, following, strict=True))

            def by_action() -> Signal | None:
                chosen = choices.get(run(), choices.get(None))
                return chosen() if chosen is not None else None

            return by_action
        tests = [
            (None if case.label is None else self.as_type(case.label, scope, typed.type).run, body)
            for case, body in zip(node.cases, following, strict=True)
        ]

        def by_value() -> Signal | None:
            value = run()
            for label, body in tests:
                if label is not None and label() == value:
                    return body() if body is not None else None
            for label, body in tests:
                if label is None:
                    return body() if body is not None else None
            return None

        return by_value

    def _action_label(self, label: x.ExpressionNode | None) -> str | None:
        if label is None:
            return None
        if not isinstance(label, x.NameNode):
            raise ProgramError(label.position, "the name of an action is needed")
        return label.name

    # ---- Loops (section 12.8) ----

    def _for(self, node: x.ForNode, scope: Environment) -> Step:
        inner = Environment(scope)
        begin = self.sequence(node.initial, inner)
        condition = self.expression(node.condition, inner).run
        body = self.statement(node.body, inner)
        updates = self.sequence(list(node.updates), inner)

        def run() -> Signal | None:
            begin()
            for _ in range(MAX_ROUNDS):
                if not condition():
                    return None
                signal = body()
                if signal is RETURN:
                    return signal
                if signal is BREAK:
                    return None
                updates()
            raise ProgramError(node.position, "the loop does not end")

        return run

    def _for_in(self, node: x.ForInNode, scope: Environment) -> Step:
        inner = Environment(scope)
        declared = self.type(node.type, scope) if node.type is not None else None
        items: Callable[[], list[object]]
        if isinstance(node.items, x.BinaryNode) and node.items.operator == "..":
            low, high = self.expression(node.items.left, scope), self.expression(node.items.right, scope)
            low, high = self.unified(low, high, node.position)
            item_type: ValueType = low.type if low.type != INTEGER or declared is None else declared

            def items() -> list[object]:
                ends = RangeMatcher(low.run(), high.run())
                return list(range(ends.low, ends.high + 1))

        else:
            listed = self.expression(node.items, scope)
            kind = base_of(listed.type)
            if not isinstance(kind, ListType | StackType):
                raise ProgramError(node.position, f"a value of {listed.type} has no items")
            item_type = kind.element

            def items() -> list[object]:
                return [copied(part) for part in listed.run().parts]

        type_ = declared if declared is not None else item_type
        if node.type is not None:
            cell = inner.variable(node.name, type_)

            def place() -> CellLValue:
                return CellLValue(cell, 0)

        else:
            type_, place = self.target(x.NameNode(node.name, position=node.position), scope)  # type: ignore[assignment]
        bits = bits_of(type_)
        body = self.statement(node.body, inner)

        def run() -> Signal | None:
            for item in items():
                place().set(bits.wrap(item) if bits is not None and isinstance(item, int) else item)
                signal = body()
                if signal is RETURN:
                    return signal
                if signal is BREAK:
                    return None
            return None

        return run

    # ---- Declarations of variables ----

    def variable(self, node: x.VariableNode, scope: Environment) -> Step:
        type_ = self.type(node.type, scope)
        value = self.as_type(node.value, scope, type_).run if node.value is not None else None
        cell = scope.variable(node.name, type_)

        def initialise() -> None:
            cell[0] = default(type_) if value is None else copied(value())

        return initialise


def _exit() -> Signal | None:
    raise ExitSignal
