"""Statements, lowered."""

from __future__ import annotations

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.values import StackVariable, Value
from gradbed.switch.compiler.lower.context import Code, Frame, Loop, lower, lower_block, value_by_type, value_of
from gradbed.switch.compiler.lower.expressions import applied, lvalue_of, scalar_of, values_of
from gradbed.switch.compiler.lower.inlining import exit_pipeline, instantiate
from gradbed.switch.compiler.lower.tables import apply_table
from gradbed.switch.compiler.lower.values import as_scalar, assign, evaluated_once, reset
from gradbed.switch.compiler.symbols import ApplyResult

# A loop over a longer range, or one that is not known before, runs as a loop.
MAX_UNROLLED = 256

lower.register(s.Block)(lower_block)


@lower.register(s.CallStatement)
def _call(node: s.CallStatement, frame: Frame, code: Code) -> None:
    # Also where the call has a value that is known: it is for what it does.
    value_by_type(node.call, frame, code)


@lower.register(s.Exit)
def _exit(node: s.Exit, frame: Frame, code: Code) -> None:
    exit_pipeline(node, code)


@lower.register(s.Break)
def _break(node: s.Break, frame: Frame, code: Code) -> None:
    code.leave(code.loops[-1].leave, node)


@lower.register(s.Continue)
def _continue(node: s.Continue, frame: Frame, code: Code) -> None:
    code.leave(code.loops[-1].repeat, node)


@lower.register(s.Instantiation)
def _instantiation(node: s.Instantiation, frame: Frame, code: Code) -> None:
    assert node.symbol is not None
    frame.values[node.symbol] = instantiate(node, frame, code.program)


@lower.register(s.Assignment)
def _assignment(node: s.Assignment, frame: Frame, code: Code) -> None:
    lvalue = lvalue_of(node.target, frame, code)
    if node.compound is None:
        value = value_of(node.source, frame, code)
    else:
        # The target is evaluated once.
        value = applied(node.compound, lvalue, frame, code)
    assign(lvalue, value, node, code)


@lower.register(s.VariableDeclaration)
def _variable(node: s.VariableDeclaration, frame: Frame, code: Code) -> None:
    symbol = node.symbol
    assert symbol is not None
    variable = frame.values.get(symbol)
    if variable is None:
        variable = code.storage.variable(symbol.type, node.name)
    # Evaluated before the name counts: `bit<8> x = x;` reads an outer x.
    initial = None if node.initial is None else value_of(node.initial, frame, code)
    frame.values[symbol] = variable
    if initial is not None:
        assign(variable, initial, node, code)
    else:
        reset(variable, node, code)


@lower.register(s.Return)
def _return(node: s.Return, frame: Frame, code: Code) -> None:
    label, result = code.returns[-1]
    if node.value is not None and result is not None:
        assign(result, value_of(node.value, frame, code), node, code)
    code.leave(label, node)


# ---- Choices ----


@lower.register(s.If)
def _if(node: s.If, frame: Frame, code: Code) -> None:
    tested = node.condition
    negated = False
    while isinstance(tested, s.Unary) and tested.operator == "!":
        tested, negated = tested.operand, not negated
    if isinstance(tested, s.Member) and isinstance(tested.base.type, ApplyResult):
        _if_hit(node, tested, negated, frame, code)
        return
    condition = scalar_of(node.condition, frame, code)
    if isinstance(condition, ir.Const):
        chosen = node.then if condition.value else node.otherwise
        if chosen is not None:
            lower(chosen, frame, code)
        return
    then, otherwise = _branches(node, frame, code)
    if then or otherwise:
        code.emit(ir.LoweredIf(node.condition.loc, node.condition.end, condition, then, otherwise))


def _branches(node: s.If, frame: Frame, code: Code) -> tuple[list[ir.LoweredStatement], list[ir.LoweredStatement]]:
    with code.branch() as then:
        lower(node.then, frame, code)
    with code.branch() as otherwise:
        if node.otherwise is not None:
            lower(node.otherwise, frame, code)
    return then, otherwise


def _if_hit(node: s.If, tested: s.Member, negated: bool, frame: Frame, code: Code) -> None:
    assert isinstance(tested.base, s.Call)
    apply = apply_table(tested.base, frame, code, kind="hit")
    then, otherwise = _branches(node, frame, code)
    on_hit, on_miss = (then, otherwise) if (tested.name == "hit") != negated else (otherwise, then)
    apply.branches.setdefault("hit", []).extend(on_hit)
    apply.branches.setdefault("miss", []).extend(on_miss)


@lower.register(s.Switch)
def _switch(node: s.Switch, frame: Frame, code: Code) -> None:
    if node.expression.type is t.ACTION_RUN:
        _switch_on_action(node, frame, code)
        return
    if code.in_action:
        message = "p4c's back end for BMv2 takes no switch in an action: write if and else"
        code.reporter.warning(node.loc, message, node.expression.end, category="unsupported")
    value = evaluated_once(scalar_of(node.expression, frame, code), node, code)
    outer = code.statements
    for labels, body in _groups(node):
        with code.branch() as branch:
            lower_block(body, frame, code)
        if None in labels:
            code.statements.extend(branch)
            break
        condition = op.disjunction([op.equal(value, _label(label)) for label in labels if label is not None])
        if isinstance(condition, ir.Const):
            if condition.value:
                code.statements.extend(branch)
                break
            continue
        chain = ir.LoweredIf(node.loc, node.end, condition, branch, [])
        code.emit(chain)
        code.statements = chain.otherwise
    code.statements = outer


def _label(label: s.Expression) -> ir.Const:
    assert label.value is not None and label.type is not None
    return op.constant(label.value, label.type)


def _switch_on_action(node: s.Switch, frame: Frame, code: Code) -> None:
    assert isinstance(node.expression, s.Member) and isinstance(node.expression.base, s.Call)
    apply = apply_table(node.expression.base, frame, code)
    prefix = list(apply.branches.get("", []))
    names = apply.table.action_names()
    for labels, body in _groups(node):
        with code.branch() as branch:
            lower_block(body, frame, code)
        for label in labels:
            if label is None:
                apply.branches[""] = prefix + branch
            else:
                assert isinstance(label, s.Name)
                apply.branches[names[label.name]] = prefix + branch


def _groups(node: s.Switch) -> list[tuple[list[s.Expression | None], s.Block]]:
    """Return each body of a switch with the labels that share it."""
    groups: list[tuple[list[s.Expression | None], s.Block]] = []
    labels: list[s.Expression | None] = []
    for case in node.cases:
        labels.append(case.label)
        if case.body is not None:
            groups.append((labels, case.body))
            labels = []
    return groups


# ---- Loops ----


@lower.register(s.For)
def _for(node: s.For, frame: Frame, code: Code) -> None:
    for statement in node.initial:
        lower(statement, frame, code)
    leave, again, next_ = ir.Label("break"), ir.Label("loop", used=True), ir.Label("continue")
    with code.branch() as body:
        condition = scalar_of(node.condition, frame, code)
        _leave_if(op.negation(condition), leave, node, code)
        _iteration(node.body, frame, Loop(leave, next_), code)
        for statement in node.update:
            lower(statement, frame, code)
        code.emit(ir.Repeat(node.loc, node.end, again))
    repeated = ir.LoweredBlock(node.loc, node.end, again, body)
    code.emit(ir.LoweredBlock(node.loc, node.end, leave, [repeated]))


def _iteration(body: s.Statement, frame: Frame, loop: Loop, code: Code) -> None:
    code.loops.append(loop)
    with code.branch() as iteration:
        lower(body, frame, code)
    code.loops.pop()
    code.emit(ir.LoweredBlock(body.loc, body.end, loop.repeat, iteration))


@lower.register(s.ForIn)
def _for_in(node: s.ForIn, frame: Frame, code: Code) -> None:
    symbol = node.variable.symbol
    assert symbol is not None
    variable = code.storage.variable(symbol.type, node.variable.name)
    frame.values[symbol] = variable
    collection = node.collection
    match collection:
        case s.Binary(operator=".."):
            bounds = values_of([collection.left, collection.right], frame, code)
            first, last = (as_scalar(bound, collection, code) for bound in bounds)
            numbers = _unrolled_numbers(first, last)
            if numbers is None:
                _for_in_range(node, variable, first, last, frame, code)
                return
            values: list[Value] = [ir.Const(first.type, number) for number in numbers]
        case s.Cast(operand=s.ListExpression(items=items)):
            values = [_stable_item(item, symbol.type, frame, code) for item in items]
        case _:
            stack = value_of(collection, frame, code)
            if not isinstance(stack, StackVariable):
                code.error(collection, "a loop cannot run over this on this target")
                return
            values = list(stack.elements)
    leave = ir.Label("break")
    with code.branch() as rounds:
        for value in values:
            assign(variable, value, node, code)
            _iteration(node.body, frame, Loop(leave, ir.Label("continue")), code)
    code.emit(ir.LoweredBlock(node.loc, node.end, leave, rounds))


def _unrolled_numbers(first: ir.Expr, last: ir.Expr) -> range | None:
    """Return the numbers from first to last, if they are known and few enough to write the body for each."""
    if not isinstance(first, ir.Const) or not isinstance(last, ir.Const):
        return None
    return range(first.value, last.value + 1) if last.value - first.value < MAX_UNROLLED else None


def _stable_item(item: s.Expression, type_: t.Type, frame: Frame, code: Code) -> Value:
    """Return the value of an item of a list, which the iterations of a loop do not change."""
    if item.value is not None:
        return value_of(item, frame, code)
    preserved = code.storage.variable(type_, "item")
    assign(preserved, value_of(item, frame, code), item, code)
    return preserved


def _for_in_range(node: s.ForIn, variable: Value, first: ir.Expr, last: ir.Expr, frame: Frame, code: Code) -> None:
    """Lower a loop over a range. The body may change the bounds and its variable without effect on the iterations."""
    storage = code.storage
    number, limit = storage.scalar(first.type, "round"), storage.scalar(first.type, "last")
    code.assign(number, first, node)
    code.assign(limit, last, node)
    leave, again = ir.Label("break"), ir.Label("loop", used=True)
    with code.branch() as body:
        _leave_if(op.binary(">", number, limit, t.BOOL), leave, node, code)
        assign(variable, number, node, code)
        _iteration(node.body, frame, Loop(leave, ir.Label("continue")), code)
        # Before counting on, which could wrap around.
        _leave_if(op.equal(number, limit), leave, node, code)
        following = op.binary("+", number, ir.Const(number.type, 1), number.type)
        code.assign(number, following, node)
        code.emit(ir.Repeat(node.loc, node.end, again))
    repeated = ir.LoweredBlock(node.loc, node.end, again, body)
    code.emit(ir.LoweredBlock(node.loc, node.end, leave, [repeated]))


def _leave_if(condition: ir.Expr, label: ir.Label, node: s.Node, code: Code) -> None:
    with code.branch() as stop:
        code.leave(label, node)
    code.emit(ir.LoweredIf(node.loc, node.end, condition, stop, []))
