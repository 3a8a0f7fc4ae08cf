"""Expressions and comparisons of composite values, lowered to operations on fields."""

from __future__ import annotations

from collections.abc import Iterable

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.values import (
    ElementOf,
    HeaderValue,
    HeaderVariable,
    LValue,
    NoValue,
    SliceOf,
    StackValue,
    StackVariable,
    StructValue,
    TextValue,
    UnionVariable,
    Value,
    default_value,
)
from gradbed.switch.compiler.lower.context import Code, Frame, value_by_type, value_of
from gradbed.switch.compiler.lower.values import (
    ZERO,
    as_lvalue,
    as_scalar,
    assign,
    copied,
    evaluated_once,
    part,
    preserved,
    read,
    snapshot,
    validity,
)

# ---- Expressions ----


def scalar_of(node: s.Expression, frame: Frame, code: Code) -> ir.Expr:
    """Return the value of an expression with a scalar type."""
    return as_scalar(value_of(node, frame, code), node, code)


def constant_of(node: s.Expression, frame: Frame, what: str, code: Code) -> int:
    """Return the value of an expression that must be known at compile time; 0 after a report."""
    with code.branch():
        value = value_of(node, frame, code)
    if isinstance(value, ir.Const):
        return value.value
    code.error(node, f"{what} must be known at compile time")
    return 0


def values_of(nodes: list[s.Expression], frame: Frame, code: Code) -> list[Value]:
    """Return the values of expressions from left to right; a value is copied if a later expression may change it."""
    values: list[Value] = []
    ends: list[int] = []
    for node in nodes:
        values.append(value_of(node, frame, code))
        ends.append(len(code.statements))
    # From the last one, so that copies which are put in leave the positions of earlier ones as they are.
    for index in reversed(range(len(nodes))):
        values[index] = preserved(values[index], ends[index], nodes[index], code)
    return values


@value_by_type.register(s.Name)
def _name(node: s.Name, frame: Frame, code: Code) -> Value:
    assert node.symbol is not None
    found = frame.find(node.symbol)
    if found is not None:
        return found
    # A constant whose value is a list; those that are numbers carry their value.
    declaration = node.symbol.node
    if isinstance(declaration, s.ConstantDeclaration):
        return value_of(declaration.initial, frame, code)
    code.error(node, f"'{node.name}' has no value here")
    return ZERO


@value_by_type.register(s.Slice)
def _slice(node: s.Slice, frame: Frame, code: Code) -> Value:
    return op.slice_of(scalar_of(node.base, frame, code), node.high_bit, node.low_bit)


@value_by_type.register(s.Unary)
def _unary(node: s.Unary, frame: Frame, code: Code) -> Value:
    return op.unary(node.operator, scalar_of(node.operand, frame, code))


@value_by_type.register(s.Index)
def _index(node: s.Index, frame: Frame, code: Code) -> Value:
    base, index = values_of([node.base, node.index], frame, code)
    if isinstance(base, StructValue):
        assert isinstance(node.index.value, int)
        return base.parts[str(node.index.value)]
    if isinstance(base, StackValue):
        base = snapshot(base, node, code)
    if not isinstance(base, StackVariable):
        code.error(node, "this stack cannot be indexed on this target")
        return NoValue()
    number = as_scalar(index, node.index, code)
    if isinstance(number, ir.Const):
        if not 0 <= number.value < base.type.size:
            code.error(node.index, f"index {number.value} is outside the stack")
            return base.elements[0]
        return base.elements[number.value]
    return ElementOf(base, number, ())


@value_by_type.register(s.Binary)
def _binary(node: s.Binary, frame: Frame, code: Code) -> Value:
    assert node.type is not None
    if node.operator in ("&&", "||"):
        return _logical(node, frame, code)
    left, right = values_of([node.left, node.right], frame, code)
    if node.operator in ("==", "!="):
        equal = same(read(left, node.left, code), read(right, node.right, code), node, code)
        return equal if node.operator == "==" else op.negation(equal)
    return _arithmetic(node, as_scalar(left, node.left, code), as_scalar(right, node.right, code), code)


def applied(node: s.Binary, left: Value, frame: Frame, code: Code) -> Value:
    """Return a binary operation with its left operand evaluated already."""
    left = read(left, node, code)
    end = len(code.statements)
    right = scalar_of(node.right, frame, code)
    return _arithmetic(node, as_scalar(preserved(left, end, node, code), node, code), right, code)


def _arithmetic(node: s.Binary, left: ir.Expr, right: ir.Expr, code: Code) -> ir.Expr:
    assert node.type is not None
    type_ = t.representation(node.type)
    if node.operator in ("/", "%") and not (isinstance(left, ir.Const) and isinstance(right, ir.Const)):
        return _divided(node, left, right, code)
    try:
        return op.binary(node.operator, left, right, type_)
    except op.FoldError as error:
        code.error(node, str(error))
        return ir.Const(type_, 0)


def _divided(node: s.Binary, left: ir.Expr, right: ir.Expr, code: Code) -> ir.Expr:
    """Lower a division by a power of two to a shift or mask: no target divides, and BMv2 ends at a zero divisor."""
    if not isinstance(right, ir.Const) or right.value & (right.value - 1):
        what = "the divisor is no power of two" if isinstance(right, ir.Const) else "the divisor is not known before"
        hint = "only numbers that are known when the program is compiled are divided, and all by powers of two"
        code.reporter.error(
            node.loc, f"'{node.operator}' cannot be computed in a packet: {what}", node.end, hint=hint
        )
        return ir.Const(left.type, 0)
    if node.operator == "%":
        return op.binary("&", left, ir.Const(left.type, right.value - 1), left.type)
    return op.binary(">>", left, ir.Const(t.bit(32), right.value.bit_length() - 1), left.type)


def _logical(node: s.Binary, frame: Frame, code: Code) -> ir.Expr:
    left = scalar_of(node.left, frame, code)
    if isinstance(left, ir.Const):
        decided = bool(left.value) == (node.operator == "||")
        return left if decided else scalar_of(node.right, frame, code)
    with code.branch() as effects:
        right = scalar_of(node.right, frame, code)
        if effects:
            # The right side does something, which must not happen if the left side decides.
            result = code.storage.scalar(t.BOOL, "tmp")
            code.assign(result, right, node)
    if not effects:
        return op.binary(node.operator, left, right, t.BOOL)
    code.assign(result, left, node)
    condition = result if node.operator == "&&" else op.negation(result)
    code.emit(ir.LoweredIf(node.loc, node.end, condition, effects, []))
    return result


@value_by_type.register(s.Conditional)
def _conditional(node: s.Conditional, frame: Frame, code: Code) -> Value:
    condition = scalar_of(node.condition, frame, code)
    if isinstance(condition, ir.Const):
        return value_of(node.if_true if condition.value else node.if_false, frame, code)
    assert node.type is not None
    with code.branch() as true_effects:
        first = read(value_of(node.if_true, frame, code), node, code)
    with code.branch() as false_effects:
        second = read(value_of(node.if_false, frame, code), node, code)
    if not true_effects and not false_effects and isinstance(first, ir.Expr) and isinstance(second, ir.Expr):
        return op.choice(condition, first, second)
    condition = evaluated_once(condition, node, code)
    result = code.storage.variable(node.type, "tmp")
    with code.branch() as then:
        code.statements.extend(true_effects)
        assign(result, first, node, code)
    with code.branch() as otherwise:
        code.statements.extend(false_effects)
        assign(result, second, node, code)
    code.emit(ir.LoweredIf(node.loc, node.end, condition, then, otherwise))
    return result


@value_by_type.register(s.Cast)
@value_by_type.register(s.Convert)
def _converted(node: s.Cast | s.Convert, frame: Frame, code: Code) -> Value:
    assert node.type is not None
    is_default = isinstance(node.operand, (s.InvalidHeader, s.DefaultValue))
    if is_default or node.operand.type in (t.INVALID_HEADER, t.DEFAULT_VALUE):
        return default_value(node.type)
    operand = read(value_of(node.operand, frame, code), node, code)
    if isinstance(operand, StructValue) and isinstance(node.type, t.Struct):
        return StructValue(node.type, dict(zip(node.type.fields, operand.parts.values(), strict=True)))
    if not isinstance(operand, ir.Expr):
        return operand
    return op.cast(operand, t.representation(node.type))


@value_by_type.register(s.ListExpression)
@value_by_type.register(s.StructExpression)
def _aggregate(node: s.ListExpression | s.StructExpression, frame: Frame, code: Code) -> Value:
    type_ = node.type
    if isinstance(node, s.StructExpression):
        names = [name for name, _ in node.fields]
        given = values_of([item for _, item in node.fields], frame, code)
    else:
        given = values_of(node.items, frame, code)
        names = list(type_.fields) if isinstance(type_, t.Struct) else list(map(str, range(len(given))))
    given = [read(value, node, code) for value in given]
    if isinstance(type_, t.Stack):
        return StackValue(type_, given)
    parts = dict(zip(names, given, strict=False))
    if isinstance(type_, t.NamedFields) or type_ is None:
        return StructValue(type_ or t.UNKNOWN, parts)
    if isinstance(type_, t.Struct):
        complete = {
            name: parts[name] if name in parts else default_value(inner) for name, inner in type_.fields.items()
        }
        return HeaderValue(type_, complete) if type_.is_header else StructValue(type_, complete)
    if isinstance(type_, t.Tuple):
        for index in range(len(given), len(type_.elements)):
            parts[str(index)] = default_value(type_.elements[index])
    return StructValue(type_, parts)


def lvalue_of(node: s.Expression, frame: Frame, code: Code) -> LValue:
    """Return the l-value of an expression; its indices are evaluated now (P4_16 1.2.5, section 6.7)."""
    match node:
        case s.Slice():
            base = lvalue_of(node.base, frame, code)
            if isinstance(base, SliceOf):
                return SliceOf(base.base, base.low + node.high_bit, base.low + node.low_bit)
            return SliceOf(base, node.high_bit, node.low_bit)
        case s.Member():
            return as_lvalue(part(lvalue_of(node.base, frame, code), node.name, node, code), node, code)
        case s.Index():
            return _element_lvalue(node, lvalue_of(node.base, frame, code), frame, code)
    return as_lvalue(value_of(node, frame, code), node, code)


def _element_lvalue(node: s.Index, base: LValue, frame: Frame, code: Code) -> LValue:
    if isinstance(base, StructValue):
        return as_lvalue(base.parts[str(node.index.value)], node, code)
    index = scalar_of(node.index, frame, code)
    if not isinstance(base, StackVariable):
        code.error(node, "this stack cannot be indexed on this target")
        return StructValue(t.UNKNOWN, {})
    if isinstance(index, ir.Const):
        return base.elements[min(index.value, base.type.size - 1)]
    return ElementOf(base, copied(index, node, code), ())


# ---- Comparisons of composite values ----


def same(left: Value, right: Value, node: s.Node, code: Code) -> ir.Expr:
    if isinstance(left, StackValue) or isinstance(right, StackValue):
        left, right = snapshot(left, node, code), snapshot(right, node, code)
    match left, right:
        case ir.Expr(), ir.Expr():
            return op.equal(left, right)
        case StructValue(parts=these), StructValue(parts=those):
            return _all_same(zip(these.values(), those.values(), strict=True), node, code)
        case StackVariable(), StackVariable():
            return _all_same(zip(left.elements, right.elements, strict=True), node, code)
        case UnionVariable(members=these), UnionVariable(members=those):
            return _all_same(zip(these.values(), those.values(), strict=True), node, code)
        case ((HeaderVariable() | HeaderValue()), (HeaderVariable() | HeaderValue())):
            return _same_header(left, right, node, code)
        case TextValue(), TextValue():
            return op.flag(left.text == right.text)
        case (HeaderValue(), UnionVariable() as union) | (UnionVariable() as union, HeaderValue()):
            return op.negation(validity(union, node, code))
    code.error(node, "these values cannot be compared on this target")
    return op.FALSE


def _all_same(pairs: Iterable[tuple[Value, Value]], node: s.Node, code: Code) -> ir.Expr:
    result: ir.Expr = op.TRUE
    for left, right in pairs:
        result = op.conjunction(result, same(left, right, node, code))
    return result


def _same_header(
    left: HeaderVariable | HeaderValue, right: HeaderVariable | HeaderValue, node: s.Node, code: Code
) -> ir.Expr:
    left_valid, right_valid = validity(left, node, code), validity(right, node, code)
    has_varbit = any(isinstance(type_, t.Varbit) for type_ in left.type.fields.values())
    neither = op.conjunction(op.negation(left_valid), op.negation(right_valid))
    if has_varbit and isinstance(left, HeaderVariable) and isinstance(right, HeaderVariable):
        # BMv2 says false of two headers that are not valid, which P4 calls equal (section 8.17).
        return op.binary("||", neither, ir.SameHeader(t.BOOL, left.name, right.name), t.BOOL)
    if op.FALSE in (left_valid, right_valid):
        return neither
    pairs = [(part(left, name, node, code), part(right, name, node, code)) for name in left.type.fields]
    both = op.conjunction(op.conjunction(left_valid, right_valid), _all_same(pairs, node, code))
    return op.binary("||", neither, both, t.BOOL)
