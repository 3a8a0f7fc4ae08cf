"""Statements to IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower import operations as op
from switch.compiler.lower.expressions import Expressions
from switch.compiler.lower.places import StackPlace, Value
from switch.compiler.lower.scope import Code, Frame, Loop

if TYPE_CHECKING:
    from switch.compiler.lower.assignments import Assignments
    from switch.compiler.lower.calls import Calls
    from switch.compiler.lower.tables import Tables

# A loop over a longer range, or one that is not known before, runs as a loop.
MAX_UNROLLED = 256


class Statements:
    assignments: Assignments
    calls: Calls
    expressions: Expressions
    tables: Tables

    def __init__(self, code: Code) -> None:
        self._code = code

    def block(self, block: s.Block, frame: Frame) -> None:
        for statement in block.statements:
            self.lower(statement, frame)

    def lower(self, node: s.Statement, frame: Frame) -> None:
        if isinstance(node, s.Assignment):
            self._assignment(node, frame)
        elif isinstance(node, s.CallStatement):
            assert isinstance(node.call, s.Call)
            self.calls.call(node.call, frame)
        elif isinstance(node, s.If):
            self._if(node, frame)
        elif isinstance(node, s.Block):
            self.block(node, frame)
        elif isinstance(node, s.VariableDeclaration):
            self._variable(node, frame)
        elif isinstance(node, s.Switch):
            self._switch(node, frame)
        elif isinstance(node, s.Return):
            self._return(node, frame)
        elif isinstance(node, s.Exit):
            self.exit(node)
        elif isinstance(node, s.For):
            self._for(node, frame)
        elif isinstance(node, s.ForIn):
            self._for_in(node, frame)
        elif isinstance(node, (s.Break, s.Continue)):
            loop = self._code.loops[-1]
            label = loop.leave if isinstance(node, s.Break) else loop.repeat
            self._leave(label, node)
        elif isinstance(node, s.Instantiation):
            assert node.symbol is not None
            frame.values[node.symbol] = self._code.program.instances.instantiate(node, frame)

    def _leave(self, label: ir.Label, node: s.Node) -> None:
        label.used = True
        self._code.emit(ir.Leave(node.loc, node.end, label))

    def _assignment(self, node: s.Assignment, frame: Frame) -> None:
        place = self.expressions.place(node.target, frame)
        if node.compound is None:
            value = self.expressions.value(node.source, frame)
        else:
            # The target is evaluated once.
            value = self.expressions.applied(node.compound, place, frame)
        self.assignments.assign(place, value, node)

    def _variable(self, node: s.VariableDeclaration, frame: Frame) -> None:
        symbol = node.symbol
        assert symbol is not None
        known = frame.values.get(symbol)
        if known is None:
            known = self._code.program.storage.variable(symbol.type, node.name)
        variable: Value = known
        initial = None
        if node.initial is not None:
            # Evaluated before the name counts: `bit<8> x = x;` reads an outer x.
            initial = self.expressions.value(node.initial, frame)
        frame.values[symbol] = variable
        if initial is not None:
            self.assignments.assign(variable, initial, node)
        else:
            self.assignments.reset(variable, node)

    def _return(self, node: s.Return, frame: Frame) -> None:
        label, result = self._code.returns[-1]
        if node.value is not None and result is not None:
            self.assignments.assign(result, self.expressions.value(node.value, frame), node)
        self._leave(label, node)

    def exit(self, node: s.Node) -> None:
        """Copy out what the calls around would copy, then end the pipeline."""
        for copy_out in reversed(self._code.copy_outs):
            self.calls.copy_back(copy_out, node)
        if self._code.kind != "action":
            self._code.emit(ir.End(node.loc, node.end))
            return
        if self._code.exit_flag is not None:
            self._code.emit(ir.Assign(node.loc, node.end, self._code.exit_flag, op.TRUE))
        else:
            self._code.emit(ir.Primitive(node.loc, node.end, "exit", ()))
        assert self._code.finished is not None
        self._leave(self._code.finished, node)

    # --- choices ---

    def _if(self, node: s.If, frame: Frame) -> None:
        tested = node.condition
        negated = False
        while isinstance(tested, s.Unary) and tested.operator == "!":
            tested, negated = tested.operand, not negated
        if isinstance(tested, s.Member) and isinstance(tested.base.type, t.ApplyResult):
            self._if_hit(node, tested, negated, frame)
            return
        condition = self.expressions.scalar(node.condition, frame)
        if isinstance(condition, ir.Const):
            chosen = node.then if condition.value else node.otherwise
            if chosen is not None:
                self.lower(chosen, frame)
            return
        then, otherwise = self._branches(node, frame)
        if then or otherwise:
            self._code.emit(ir.If(node.condition.loc, node.condition.end, condition, then, otherwise))

    def _branches(self, node: s.If, frame: Frame) -> tuple[list[ir.Stmt], list[ir.Stmt]]:
        with self._code.branch() as then:
            self.lower(node.then, frame)
        with self._code.branch() as otherwise:
            if node.otherwise is not None:
                self.lower(node.otherwise, frame)
        return then, otherwise

    def _if_hit(self, node: s.If, tested: s.Member, negated: bool, frame: Frame) -> None:
        assert isinstance(tested.base, s.Call)
        apply = self.tables.apply(tested.base, frame, kind="hit")
        then, otherwise = self._branches(node, frame)
        on_hit, on_miss = (then, otherwise) if (tested.name == "hit") != negated else (otherwise, then)
        apply.branches.setdefault("hit", []).extend(on_hit)
        apply.branches.setdefault("miss", []).extend(on_miss)

    def _switch(self, node: s.Switch, frame: Frame) -> None:
        if node.expression.type is t.ACTION_RUN:
            self._switch_on_action(node, frame)
            return
        value = self.expressions.scalar(node.expression, frame)
        if not ir.is_simple(value):
            copied = self.expressions.snapshot(value, node)
            assert isinstance(copied, ir.Expr)
            value = copied
        outer = self._code.statements
        for labels, body in _groups(node):
            with self._code.branch() as branch:
                self.block(body, frame)
            if None in labels:
                self._code.statements.extend(branch)
                break
            condition = op.disjunction([op.equal(value, self._label(label)) for label in labels if label is not None])
            if isinstance(condition, ir.Const):
                if condition.value:
                    self._code.statements.extend(branch)
                    break
                continue
            chain = ir.If(node.loc, node.end, condition, branch, [])
            self._code.emit(chain)
            self._code.statements = chain.otherwise
        self._code.statements = outer

    @staticmethod
    def _label(label: s.Expression) -> ir.Const:
        assert label.value is not None and label.type is not None
        return op.constant(label.value, label.type)

    def _switch_on_action(self, node: s.Switch, frame: Frame) -> None:
        assert isinstance(node.expression, s.Member) and isinstance(node.expression.base, s.Call)
        apply = self.tables.apply(node.expression.base, frame, kind="action")
        prefix = list(apply.branches.get("", []))
        names = apply.table.action_names()
        for labels, body in _groups(node):
            with self._code.branch() as branch:
                self.block(body, frame)
            for label in labels:
                if label is None:
                    apply.branches[""] = prefix + branch
                else:
                    assert isinstance(label, s.Name)
                    apply.branches[names[label.name]] = prefix + branch

    # --- loops ---

    def _for(self, node: s.For, frame: Frame) -> None:
        for statement in node.initial:
            self.lower(statement, frame)
        leave, again, next_ = ir.Label("break"), ir.Label("loop", used=True), ir.Label("continue")
        with self._code.branch() as body:
            condition = self.expressions.scalar(node.condition, frame)
            self._leave_if(op.negation(condition), leave, node)
            self._iteration(node.body, frame, Loop(leave, next_))
            for statement in node.update:
                self.lower(statement, frame)
            self._code.emit(ir.Repeat(node.loc, node.end, again))
        repeated = ir.Block(node.loc, node.end, again, body)
        self._code.emit(ir.Block(node.loc, node.end, leave, [repeated]))

    def _iteration(self, body: s.Statement, frame: Frame, loop: Loop) -> None:
        self._code.loops.append(loop)
        with self._code.branch() as iteration:
            self.lower(body, frame)
        self._code.loops.pop()
        self._code.emit(ir.Block(body.loc, body.end, loop.repeat, iteration))

    def _for_in(self, node: s.ForIn, frame: Frame) -> None:
        symbol = node.variable.symbol
        assert symbol is not None
        variable = self._code.program.storage.variable(symbol.type, node.variable.name)
        frame.values[symbol] = variable
        if isinstance(node.collection, s.Binary) and node.collection.operator == "..":
            first = self.expressions.scalar(node.collection.left, frame)
            last = self.expressions.scalar(node.collection.right, frame)
            if not isinstance(first, ir.Const) or not isinstance(last, ir.Const):
                self._for_in_range(node, variable, first, last, frame)
                return
            if last.value - first.value >= MAX_UNROLLED:
                self._for_in_range(node, variable, first, last, frame)
                return
            values: list[Value] = [ir.Const(first.type, number) for number in range(first.value, last.value + 1)]
        elif isinstance(node.collection, s.Cast) and isinstance(node.collection.operand, s.ListExpression):
            values = [self._as_it_is_now(item, symbol.type, frame) for item in node.collection.operand.items]
        else:
            stack = self.expressions.value(node.collection, frame)
            if not isinstance(stack, StackPlace):
                self._code.error(node.collection, "a loop cannot run over this on this target")
                return
            values = list(stack.elements)
        leave = ir.Label("break")
        with self._code.branch() as rounds:
            for value in values:
                self.assignments.assign(variable, value, node)
                self._iteration(node.body, frame, Loop(leave, ir.Label("continue")))
        self._code.emit(ir.Block(node.loc, node.end, leave, rounds))

    def _as_it_is_now(self, item: s.Expression, type_: t.Type, frame: Frame) -> Value:
        """The value of a list's item, whatever the rounds of a loop do to what it is made of."""
        if item.value is not None:
            return self.expressions.value(item, frame)
        kept = self._code.program.storage.variable(type_, "item")
        self.assignments.assign(kept, self.expressions.value(item, frame), item)
        return kept

    def _for_in_range(self, node: s.ForIn, variable: Value, first: ir.Expr, last: ir.Expr, frame: Frame) -> None:
        """The bounds count as they are at first, and so does the number of the round: the body may change all."""
        storage = self._code.program.storage
        number, limit = storage.scalar(first.type, "round"), storage.scalar(first.type, "last")
        self._code.emit(ir.Assign(node.loc, node.end, number, first))
        self._code.emit(ir.Assign(node.loc, node.end, limit, last))
        leave, again = ir.Label("break"), ir.Label("loop", used=True)
        with self._code.branch() as body:
            self._leave_if(op.binary(">", number, limit, t.BOOL), leave, node)
            self.assignments.assign(variable, number, node)
            self._iteration(node.body, frame, Loop(leave, ir.Label("continue")))
            # Before counting on, which could wrap around.
            self._leave_if(op.equal(number, limit), leave, node)
            following = op.binary("+", number, ir.Const(number.type, 1), number.type)
            self._code.emit(ir.Assign(node.loc, node.end, number, following))
            self._code.emit(ir.Repeat(node.loc, node.end, again))
        repeated = ir.Block(node.loc, node.end, again, body)
        self._code.emit(ir.Block(node.loc, node.end, leave, [repeated]))

    def _leave_if(self, condition: ir.Expr, label: ir.Label, node: s.Node) -> None:
        with self._code.branch() as stop:
            self._leave(label, node)
        self._code.emit(ir.If(node.loc, node.end, condition, stop, []))


def _groups(node: s.Switch) -> list[tuple[list[s.Expression | None], s.Block]]:
    """The labels that share a body, with that body."""
    groups: list[tuple[list[s.Expression | None], s.Block]] = []
    labels: list[s.Expression | None] = []
    for case in node.cases:
        labels.append(case.label)
        if case.body is not None:
            groups.append((labels, case.body))
            labels = []
    return groups
