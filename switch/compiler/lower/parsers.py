"""Parsers and the deparser, lowered."""

from __future__ import annotations

import itertools

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import LoweredValueSet
from gradbed.switch.compiler.ir.values import Value
from gradbed.switch.compiler.lower.context import Code, Frame, ProgramState, lower, value_of
from gradbed.switch.compiler.lower.expressions import constant_of, values_of
from gradbed.switch.compiler.lower.inlining import lower_variables
from gradbed.switch.compiler.lower.values import as_scalar
from gradbed.switch.compiler.symbols import Symbol

# ---- Parsers ----


MAX_CASES = 4096


def parser_states(declaration: s.ParserDeclaration, frame: Frame, code: Code, prefix: str = "") -> ir.LoweredState:
    """Lower all states of a parser; return the first one."""
    assert declaration.states is not None
    lowered = {
        item.name: ir.LoweredState(code.program.state_names.unique(prefix + item.name), [], None, item.loc)
        for item in declaration.states
    }
    for item in declaration.states:
        target = lowered[item.name]
        with code.branch() as body:
            for statement in item.statements:
                lower(statement, frame, code)
            target.transition = _transition(item, lowered, frame, code)
        target.body = body
    with code.branch() as initial:
        lower_variables(declaration, frame, code)
    start = lowered["start"]
    if not initial:
        return start
    name = code.program.state_names.unique(prefix + "initial")
    return ir.LoweredState(name, initial, ir.Select([], [], start), declaration.loc)


def _transition(item: s.StateDeclaration, states: dict[str, ir.LoweredState], frame: Frame, code: Code) -> ir.Select:
    node = item.transition
    if node is None:
        return ir.Select([], [], "reject")
    if node.keys is None:
        return ir.Select([], [], states.get(node.state, node.state), default_at=(node.loc, node.end))
    keys = [_key(value, key, code) for value, key in zip(values_of(node.keys, frame, code), node.keys, strict=True)]
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
        select.cases.extend(_cases(case, keys, target, frame, code))
        if len(select.cases) > MAX_CASES:
            raise code.reporter.fatal(case.loc, f"select has more than {MAX_CASES} cases")
    return select


def _key(value: Value, node: s.Expression, code: Code) -> ir.Expr:
    expr = as_scalar(value, node, code)
    if isinstance(expr, (ir.FieldRef, ir.StackLast)) and getattr(expr, "field", "") != "$valid$":
        return expr
    copy = code.storage.scalar(expr.type, "select")
    code.assign(copy, expr, node)
    return copy


def _cases(case: s.SelectCase, keys: list[ir.Expr], target: ir.Target, frame: Frame, code: Code) -> list[ir.Case]:
    labels = case.label.items if isinstance(case.label, s.ListExpression) else [case.label]
    value_set = _value_set(labels, frame, code)
    if value_set is not None:
        if len(labels) > 1:
            code.error(case, "a value set must be the whole label on this target")
        return [ir.Case([], value_set, target, (case.loc, case.end))]
    if len(labels) != len(keys):
        return []
    options = [_options(label, key, frame, code) for label, key in zip(labels, keys, strict=True)]
    at = case.loc, case.end
    return [ir.Case(list(matches), "", target, at) for matches in itertools.product(*options)]


def _value_set(labels: list[s.Expression], frame: Frame, code: Code) -> str | None:
    """Return the name of the value set among the labels."""
    for label in labels:
        if isinstance(label, s.Name) and label.symbol is not None and label.symbol.kind == "value_set":
            return _name_of_value_set(label.symbol, frame, code.program)
    return None


def _name_of_value_set(symbol: Symbol, frame: Frame, program: ProgramState) -> str:
    node = symbol.node
    assert isinstance(node, s.ValueSetDeclaration) and isinstance(symbol.type, t.SetOf)
    key = (symbol, frame.prefix)
    if key not in program.value_sets:
        name = program.control_name(node.annotations, frame.prefix, node.name)
        size = value_of(node.size, frame, Code(program, "constructor"))
        if not isinstance(size, ir.Const):
            program.reporter.error(node.size.loc, "the size of a value set must be known at compile time")
        elif not 0 < size.value <= ir.MAX_SIZE:
            program.reporter.error(node.size.loc, f"a size of {size.value} is outside 1 to {ir.MAX_SIZE}")
        number = size.value if isinstance(size, ir.Const) else 1
        program.value_sets[key] = LoweredValueSet(name, symbol.type.element, number, node)
    return program.value_sets[key].name


def _options(label: s.Expression, key: ir.Expr, frame: Frame, code: Code) -> list[tuple[int, int | None]]:
    """Return (value, mask) pairs that together are the label; mask None stands for all bits."""
    width = t.width_bits(key.type) or 0
    ones = (1 << width) - 1
    if isinstance(label, s.Wildcard):
        return [(0, 0)]
    if isinstance(label, s.Binary) and label.operator in ("&&&", ".."):
        first, second = (
            constant_of(label.left, frame, "a label", code) & ones,
            constant_of(label.right, frame, "a label", code) & ones,
        )
        if label.operator == "&&&":
            return [(first & second, second)]
        if isinstance(key.type, t.Int):
            code.error(label, "ranges of signed numbers are not supported on this target")
            return []
        if first > second:
            code.error(label, "this range is empty")
            return []
        return [(value, None if mask == ones else mask) for value, mask in prefixes_of_range(first, second, width)]
    return [(constant_of(label, frame, "a label", code) & ones, None)]


# ---- The deparser ----


_NO_BRANCHES = "a deparser cannot branch on this target, except to emit a header if that is valid"
_INSTEAD = "emit() leaves out headers that are not valid: make them so at the end of egress"


def lower_deparser(
    program: ProgramState, body: list[ir.LoweredStatement]
) -> tuple[list[str], list[ir.LoweredStatement]]:
    """Return the headers in the order in which they are emitted, and the statements before that.

    BMv2 runs all statements before it writes the first header, whatever the order in the program.
    """
    order: list[str] = []
    primitives: list[ir.LoweredStatement] = []
    for statement in body:
        if isinstance(statement, ir.LoweredIf):
            headers = _emitted_if_valid(statement)
            if headers is not None:
                order += headers
                continue
            chosen = _chosen(program, statement)
            if chosen is None:
                program.reporter.error(statement.loc or 1, _NO_BRANCHES, statement.end, hint=_INSTEAD)
                continue
            primitives += chosen
        elif isinstance(statement, ir.LoweredPrimitive) and statement.op == "emit":
            order.append(_header(statement))
        elif isinstance(statement, (ir.LoweredAssign, ir.LoweredPrimitive)):
            if _written(statement) & set(order):
                message = "a header that has been emitted cannot be changed on this target"
                program.reporter.error(statement.loc or 1, message, statement.end)
            primitives.append(statement)
        else:
            program.reporter.error(statement.loc or 1, _NO_BRANCHES, statement.end, hint=_INSTEAD)
    return order, primitives


def _header(emit: ir.LoweredPrimitive) -> str:
    (header,) = emit.parameters
    assert isinstance(header, ir.Ref)
    return header.name


def _emitted_if_valid(statement: ir.LoweredIf) -> list[str] | None:
    """Return the header of `if (header.isValid()) { emit(header); }`, which is what emit() does; None for others."""
    if statement.otherwise or not isinstance(statement.condition, ir.FieldRef):
        return None
    headers = []
    for inner in statement.then:
        if not (isinstance(inner, ir.LoweredPrimitive) and inner.op == "emit"):
            return None
        headers.append(_header(inner))
    return headers if {(name, "$valid$") for name in headers} == {_field(statement.condition)} else None


def _field(lvalue: ir.FieldRef) -> tuple[str, str]:
    return lvalue.header, lvalue.field


def _chosen(program: ProgramState, statement: ir.LoweredIf) -> list[ir.LoweredStatement] | None:
    """Return conditional assignments as assignments of a conditional expression; None if there is anything else."""
    condition = program.storage.scalar(t.BOOL, "condition")
    result: list[ir.LoweredStatement] = [
        ir.LoweredAssign(statement.loc, statement.end, condition, statement.condition)
    ]
    for branch, taken in ((statement.then, True), (statement.otherwise, False)):
        for inner in branch:
            if not isinstance(inner, ir.LoweredAssign):
                return None
            values = (inner.value, inner.target) if taken else (inner.target, inner.value)
            choice = ir.LoweredChoice(inner.target.type, condition, *values)
            result.append(ir.LoweredAssign(inner.loc, inner.end, inner.target, choice))
    return result


def _written(statement: ir.LoweredAssign | ir.LoweredPrimitive) -> set[str]:
    """Return the headers that a statement may change."""
    if isinstance(statement, ir.LoweredAssign):
        return {statement.target.header}
    if statement.op in ("log_msg", "assert", "assume"):
        return set()
    names = {part.header for part in statement.parameters if isinstance(part, ir.FieldRef)}
    return names | {part.name for part in statement.parameters if isinstance(part, ir.Ref)}


# ---- Ranges ----


def prefixes_of_range(first: int, last: int, width_bits: int) -> list[tuple[int, int]]:
    """Return the fewest (value, mask) pairs with prefix masks that together match first..last."""
    ones = (1 << width_bits) - 1
    pairs = []
    while first <= last:
        size = first & -first if first else 1 << width_bits
        while size > last - first + 1:
            size >>= 1
        pairs.append((first, ones & ~(size - 1)))
        first += size
    return pairs
