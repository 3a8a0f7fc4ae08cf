"""Operators: types of operands and results, and values that are known (P4_16 1.2.5, section 8)."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.context import Context, check, type_of
from gradbed.switch.compiler.checker.conversions import (
    as_underlying,
    check_as,
    coerce,
    converted,
    is_castable,
    is_coercible,
    operand_hint,
)
from gradbed.switch.compiler.checker.type_resolver import resolve
from gradbed.switch.compiler.symbols import Applicable, ApplyResult, ExternInstanceType, Scope, TableType
from gradbed.switch.compiler.values import (
    Constant,
    FoldError,
    Symbolic,
    compare,
    fold_binary,
    fold_unary,
    stored,
    wrap,
)

_COMPARISONS = frozenset(("<", "<=", ">", ">="))
_EQUALITIES = frozenset(("==", "!="))
_LOGICAL = frozenset(("&&", "||"))


@type_of.register(s.Unary)
def _unary(node: s.Unary, scope: Scope, context: Context) -> t.Type:
    operand = check(node.operand, scope, context)
    if operand is t.UNKNOWN:
        return t.UNKNOWN
    if node.operator == "!":
        if operand is not t.BOOL:
            context.error(node.operand, f"'!' takes a bool, this is {operand}")
            return t.UNKNOWN
        if isinstance(node.operand.value, bool):
            node.value = not node.operand.value
        return t.BOOL
    node.operand = as_underlying(node.operand, context)
    assert node.operand.type is not None
    operand = node.operand.type
    if not (isinstance(operand, (t.Bit, t.Int)) or (operand is t.INTEGER and node.operator != "~")):
        context.error(node.operand, f"'{node.operator}' takes a number, this is {operand}")
        return t.UNKNOWN
    if isinstance(node.operand.value, int):
        node.value = fold_unary(node.operator, node.operand.value, operand)
    return operand


@type_of.register(s.Binary)
def _binary(node: s.Binary, scope: Scope, context: Context) -> t.Type:
    left = check(node.left, scope, context)
    right = check(node.right, scope, context)
    if left is t.UNKNOWN or right is t.UNKNOWN:
        return t.BOOL if node.operator in _EQUALITIES | _COMPARISONS | _LOGICAL else t.UNKNOWN
    operator = node.operator
    if operator in _LOGICAL:
        return _logical(node, context)
    if operator in _EQUALITIES:
        return _equality(node, context)
    if operator in ("&&&", ".."):
        return _set(node, context)
    node.left = as_underlying(node.left, context)
    node.right = as_underlying(node.right, context)
    if operator in ("<<", ">>"):
        return _shift(node, context)
    if operator == "++":
        return _concatenation(node, context)
    common = _common_number(node, context)
    if common is None:
        return t.UNKNOWN
    if operator in _COMPARISONS:
        if node.left.value is not None and node.right.value is not None:
            node.value = compare(operator, node.left.value, node.right.value)
        return t.BOOL
    if operator in ("/", "%") and isinstance(common, t.Int):
        context.error(node, f"'{operator}' is not defined for signed numbers")
        return t.UNKNOWN
    if operator in ("&", "|", "^", "|+|", "|-|") and common is t.INTEGER and operator in ("|+|", "|-|"):
        context.error(node, f"'{operator}' needs numbers with a width")
        return t.UNKNOWN
    _fold(node, common, context)
    return common


def _fold(node: s.Binary, type_: t.Type, context: Context) -> None:
    left, right = node.left.value, node.right.value
    if _divides_by_zero(node):
        context.error(node.right, "division by zero")
        return
    if isinstance(left, int) and isinstance(right, int):
        try:
            node.value = fold_binary(node.operator, left, right, type_)
        except FoldError as error:
            context.error(node, str(error))


def _common_number(node: s.Binary, context: Context) -> t.Type | None:
    left, right = node.left.type, node.right.type
    assert left is not None and right is not None
    if left is t.INTEGER and isinstance(right, (t.Bit, t.Int)):
        node.left = coerce(node.left, right, context)
        return right
    if right is t.INTEGER and isinstance(left, (t.Bit, t.Int)):
        node.right = coerce(node.right, left, context)
        return left
    if left != right or not (left is t.INTEGER or isinstance(left, (t.Bit, t.Int))):
        context.error(
            node,
            f"'{node.operator}' takes two numbers of the same type, these are {left} and {right}",
            hint=operand_hint(context.reporter.sources, node),
        )
        return None
    return left


def _logical(node: s.Binary, context: Context) -> t.Type:
    for side in (node.left, node.right):
        if side.type is not t.BOOL:
            context.error(side, f"'{node.operator}' takes two bools, this is {side.type}")
            return t.BOOL
    left, right = node.left.value, node.right.value
    if isinstance(left, bool):
        if left == (node.operator == "||"):
            node.value = left
        elif isinstance(right, bool):
            node.value = right
    return t.BOOL


def _equality(node: s.Binary, context: Context) -> t.Type:
    left, right = node.left.type, node.right.type
    assert left is not None and right is not None
    if left != right:
        if is_coercible(node.right, left):
            node.right = coerce(node.right, left, context)
        elif is_coercible(node.left, right):
            node.left = coerce(node.left, right, context)
        elif isinstance(left, t.Enum) or isinstance(right, t.Enum):
            node.left, node.right = as_underlying(node.left, context), as_underlying(node.right, context)
            if (node.left.type, node.right.type) != (left, right):
                return _equality(node, context)
            _incomparable(node, context)
        else:
            _incomparable(node, context)
    elif isinstance(left, (ExternInstanceType, Applicable, TableType, ApplyResult)) or left is t.ACTION_RUN:
        _incomparable(node, context)
    if node.left.value is not None and node.right.value is not None:
        node.value = compare(node.operator, node.left.value, node.right.value)
    return t.BOOL


def _incomparable(node: s.Binary, context: Context) -> None:
    hint = operand_hint(context.reporter.sources, node)
    context.error(node, f"cannot compare {node.left.type} with {node.right.type}", hint=hint)


def _shift(node: s.Binary, context: Context) -> t.Type:
    left, right = node.left.type, node.right.type
    if not (left is t.INTEGER or isinstance(left, (t.Bit, t.Int))):
        context.error(node.left, f"'{node.operator}' shifts numbers, this is {left}")
        return t.UNKNOWN
    if not (right is t.INTEGER or isinstance(right, t.Bit) or node.right.value is not None):
        context.error(node.right, f"a shift amount must be a bit<N>, this is {right}")
        return t.UNKNOWN
    if left is t.INTEGER and node.right.value is None:
        context.error(node.left, "the number to shift needs a width, for instance 32w1")
        return t.UNKNOWN
    if isinstance(node.right.value, int) and node.right.value < 0:
        context.error(node.right, "a shift amount cannot be negative")
        return t.UNKNOWN
    if isinstance(left, (t.Bit, t.Int)) and isinstance(node.right.value, int) and node.right.value >= left.width:
        message = f"a {left} is shifted by {node.right.value}, no less than its width"
        context.reporter.warning(node.loc, message, node.end, category="overflow")
    if right is t.INTEGER:
        amount = node.right.value
        if isinstance(amount, int):
            width = max(1, amount.bit_length())
            node.right = converted(node.right, t.bit(min(width, t.MAX_WIDTH_BITS)), amount)
    assert left is not None
    _fold(node, left, context)
    return left


def _concatenation(node: s.Binary, context: Context) -> t.Type:
    left, right = node.left.type, node.right.type
    if left is t.STRING and right is t.STRING:
        if isinstance(node.left.value, str) and isinstance(node.right.value, str):
            node.value = node.left.value + node.right.value
        return t.STRING
    if not isinstance(left, (t.Bit, t.Int)) or not isinstance(right, (t.Bit, t.Int)):
        context.error(node, f"'++' joins numbers with a width, these are {left} and {right}")
        return t.UNKNOWN
    width = left.width + right.width
    if width > t.MAX_WIDTH_BITS:
        context.error(node, f"the result of '++' is wider than {t.MAX_WIDTH_BITS} bits")
        return t.UNKNOWN
    result = t.bit(width) if isinstance(left, t.Bit) else t.int_(width)
    if isinstance(node.left.value, int) and isinstance(node.right.value, int):
        mask = (1 << right.width) - 1
        node.value = wrap((node.left.value << right.width) | (node.right.value & mask), result)
    return result


def _set(node: s.Binary, context: Context) -> t.Type:
    node.left = as_underlying(node.left, context)
    node.right = as_underlying(node.right, context)
    common = _common_number(node, context)
    return t.UNKNOWN if common is None else t.SetOf(common)


@type_of.register(s.Conditional)
def _conditional(node: s.Conditional, scope: Scope, context: Context) -> t.Type:
    node.condition = check_as(node.condition, scope, t.BOOL, context)
    first = check(node.if_true, scope, context)
    second = check(node.if_false, scope, context)
    if first is t.UNKNOWN or second is t.UNKNOWN:
        return t.UNKNOWN
    if first != second:
        if is_coercible(node.if_false, first):
            node.if_false = coerce(node.if_false, first, context)
        elif is_coercible(node.if_true, second):
            node.if_true = coerce(node.if_true, second, context)
            first = second
        else:
            node.if_true, node.if_false = as_underlying(node.if_true, context), as_underlying(node.if_false, context)
            if node.if_true.type != node.if_false.type:
                context.error(node, f"the values of '?' have different types: {first} and {second}")
                return t.UNKNOWN
            assert node.if_true.type is not None
            first = node.if_true.type
    if isinstance(node.condition.value, bool):
        node.value = node.if_true.value if node.condition.value else node.if_false.value
    elif first is t.INTEGER:
        context.error(node, "the values of '?' need a width, for instance 8w1")
        return t.UNKNOWN
    return first


@type_of.register(s.Cast)
def _cast(node: s.Cast, scope: Scope, context: Context) -> t.Type:
    target = resolve(node.target, scope, context)
    source = check(node.operand, scope, context)
    if source is t.UNKNOWN or target is t.UNKNOWN:
        return target
    implicit = is_coercible(node.operand, target) or source in (t.DEFAULT_VALUE, t.INVALID_HEADER)
    if implicit and source is not t.INTEGER:
        node.operand = coerce(node.operand, target, context)
        return target
    value = node.operand.value
    if not is_castable(source, target, value is not None):
        context.error(node, f"{source} cannot be cast to {target}")
        return target
    if value is not None:
        node.value = _cast_value(node, value, target, context)
    return target


def _cast_value(node: s.Cast, value: Constant, target: t.Type, context: Context) -> Constant | None:
    if isinstance(value, str):
        return value
    number = stored(value)
    if target is t.BOOL:
        if number not in (0, 1):
            context.error(node, f"only 0 and 1 can be cast to bool, not {number}")
        return bool(number)
    if target is t.INTEGER:
        return number
    if isinstance(target, t.Enum):
        name = next((name for name, one in target.values.items() if one == number), str(number))
        return Symbolic(target, name, number)
    return wrap(number, t.representation(target))


def _divides_by_zero(node: s.Binary) -> bool:
    return node.operator in ("/", "%") and node.right.value == 0
