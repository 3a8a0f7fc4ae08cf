"""Operators: types of operands and results, and values where they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker import hints
from switch.compiler.checker.coercion import Coercion
from switch.compiler.checker.context import Context
from switch.compiler.checker.conversions import castable
from switch.compiler.symbols import Applicable, ApplyResult, Extern, Scope, Table
from switch.compiler.values import Constant, FoldError, Symbolic, compare, fold_binary, fold_unary, stored, wrap

if TYPE_CHECKING:
    from switch.compiler.checker.expressions import ExpressionChecker

_COMPARISONS = frozenset(("<", "<=", ">", ">="))
_EQUALITIES = frozenset(("==", "!="))
_LOGICAL = frozenset(("&&", "||"))


class OperatorChecker:
    def __init__(self, context: Context, expressions: ExpressionChecker, coercion: Coercion) -> None:
        self._context = context
        self._expressions = expressions
        self._coercion = coercion

    def unary(self, node: s.Unary, scope: Scope) -> t.Type:
        operand = self._expressions.check(node.operand, scope)
        if operand is t.UNKNOWN:
            return t.UNKNOWN
        if node.operator == "!":
            if operand is not t.BOOL:
                self._context.error(node.operand, f"'!' takes a bool, this is {operand}")
                return t.UNKNOWN
            if isinstance(node.operand.value, bool):
                node.value = not node.operand.value
            return t.BOOL
        node.operand = self._coercion.plain(node.operand)
        assert node.operand.type is not None
        operand = node.operand.type
        if not (isinstance(operand, (t.Bit, t.Int)) or (operand is t.INTEGER and node.operator != "~")):
            self._context.error(node.operand, f"'{node.operator}' takes a number, this is {operand}")
            return t.UNKNOWN
        if isinstance(node.operand.value, int):
            node.value = fold_unary(node.operator, node.operand.value, operand)
        return operand

    def binary(self, node: s.Binary, scope: Scope) -> t.Type:
        left = self._expressions.check(node.left, scope)
        right = self._expressions.check(node.right, scope)
        if left is t.UNKNOWN or right is t.UNKNOWN:
            return t.BOOL if node.operator in _EQUALITIES | _COMPARISONS | _LOGICAL else t.UNKNOWN
        operator = node.operator
        if operator in _LOGICAL:
            return self._logical(node)
        if operator in _EQUALITIES:
            return self._equality(node)
        if operator in ("&&&", ".."):
            return self._set(node)
        node.left = self._coercion.plain(node.left)
        node.right = self._coercion.plain(node.right)
        if operator in ("<<", ">>"):
            return self._shift(node)
        if operator == "++":
            return self._concatenation(node)
        common = self._common_number(node)
        if common is None:
            return t.UNKNOWN
        if operator in _COMPARISONS:
            if node.left.value is not None and node.right.value is not None:
                node.value = compare(operator, node.left.value, node.right.value)
            return t.BOOL
        if operator in ("/", "%") and isinstance(common, t.Int):
            self._context.error(node, f"'{operator}' is not defined for signed numbers")
            return t.UNKNOWN
        if operator in ("&", "|", "^", "|+|", "|-|") and common is t.INTEGER and operator in ("|+|", "|-|"):
            self._context.error(node, f"'{operator}' needs numbers with a width")
            return t.UNKNOWN
        self._fold(node, common)
        return common

    def _fold(self, node: s.Binary, type_: t.Type) -> None:
        left, right = node.left.value, node.right.value
        if _divides_by_zero(node):
            self._context.error(node.right, "division by zero")
            return
        if isinstance(left, int) and isinstance(right, int):
            try:
                node.value = fold_binary(node.operator, left, right, type_)
            except FoldError as error:
                self._context.error(node, str(error))

    def _common_number(self, node: s.Binary) -> t.Type | None:
        left, right = node.left.type, node.right.type
        assert left is not None and right is not None
        if left is t.INTEGER and isinstance(right, (t.Bit, t.Int)):
            node.left = self._coercion.coerce(node.left, right)
            return right
        if right is t.INTEGER and isinstance(left, (t.Bit, t.Int)):
            node.right = self._coercion.coerce(node.right, left)
            return left
        if left != right or not (left is t.INTEGER or isinstance(left, (t.Bit, t.Int))):
            self._context.error(
                node,
                f"'{node.operator}' takes two numbers of the same type, these are {left} and {right}",
                hint=hints.of_operands(self._context.reporter.sources, node),
            )
            return None
        return left

    def _logical(self, node: s.Binary) -> t.Type:
        for side in (node.left, node.right):
            if side.type is not t.BOOL:
                self._context.error(side, f"'{node.operator}' takes two bools, this is {side.type}")
                return t.BOOL
        left, right = node.left.value, node.right.value
        if isinstance(left, bool):
            if left == (node.operator == "||"):
                node.value = left
            elif isinstance(right, bool):
                node.value = right
        return t.BOOL

    def _equality(self, node: s.Binary) -> t.Type:
        left, right = node.left.type, node.right.type
        assert left is not None and right is not None
        if left != right:
            if self._coercion.converts(node.right, left):
                node.right = self._coercion.coerce(node.right, left)
            elif self._coercion.converts(node.left, right):
                node.left = self._coercion.coerce(node.left, right)
            elif isinstance(left, t.Enum) or isinstance(right, t.Enum):
                node.left, node.right = self._coercion.plain(node.left), self._coercion.plain(node.right)
                if (node.left.type, node.right.type) != (left, right):
                    return self._equality(node)
                self._incomparable(node)
            else:
                self._incomparable(node)
        elif isinstance(left, (Extern, Applicable, Table, ApplyResult)) or left is t.ACTION_RUN:
            self._incomparable(node)
        if node.left.value is not None and node.right.value is not None:
            node.value = compare(node.operator, node.left.value, node.right.value)
        return t.BOOL

    def _incomparable(self, node: s.Binary) -> None:
        hint = hints.of_operands(self._context.reporter.sources, node)
        self._context.error(node, f"cannot compare {node.left.type} with {node.right.type}", hint=hint)

    def _shift(self, node: s.Binary) -> t.Type:
        left, right = node.left.type, node.right.type
        if not (left is t.INTEGER or isinstance(left, (t.Bit, t.Int))):
            self._context.error(node.left, f"'{node.operator}' shifts numbers, this is {left}")
            return t.UNKNOWN
        if not (right is t.INTEGER or isinstance(right, t.Bit) or node.right.value is not None):
            self._context.error(node.right, f"a shift amount must be a bit<N>, this is {right}")
            return t.UNKNOWN
        if left is t.INTEGER and node.right.value is None:
            self._context.error(node.left, "the number to shift needs a width, for instance 32w1")
            return t.UNKNOWN
        if isinstance(node.right.value, int) and node.right.value < 0:
            self._context.error(node.right, "a shift amount cannot be negative")
            return t.UNKNOWN
        if isinstance(left, (t.Bit, t.Int)) and isinstance(node.right.value, int) and node.right.value >= left.width:
            message = f"a {left} is shifted by {node.right.value}, no less than its width"
            self._context.reporter.warning(node.loc, message, node.end, category="overflow")
        if right is t.INTEGER:
            amount = node.right.value
            if isinstance(amount, int):
                width = max(1, amount.bit_length())
                node.right = self._coercion.converted(node.right, t.bit(min(width, t.MAX_WIDTH_BITS)), amount)
        assert left is not None
        self._fold(node, left)
        return left

    def _concatenation(self, node: s.Binary) -> t.Type:
        left, right = node.left.type, node.right.type
        if left is t.STRING and right is t.STRING:
            if isinstance(node.left.value, str) and isinstance(node.right.value, str):
                node.value = node.left.value + node.right.value
            return t.STRING
        if not isinstance(left, (t.Bit, t.Int)) or not isinstance(right, (t.Bit, t.Int)):
            self._context.error(node, f"'++' joins numbers with a width, these are {left} and {right}")
            return t.UNKNOWN
        width = left.width + right.width
        if width > t.MAX_WIDTH_BITS:
            self._context.error(node, f"the result of '++' is wider than {t.MAX_WIDTH_BITS} bits")
            return t.UNKNOWN
        result = t.bit(width) if isinstance(left, t.Bit) else t.int_(width)
        if isinstance(node.left.value, int) and isinstance(node.right.value, int):
            mask = (1 << right.width) - 1
            node.value = wrap((node.left.value << right.width) | (node.right.value & mask), result)
        return result

    def _set(self, node: s.Binary) -> t.Type:
        node.left = self._coercion.plain(node.left)
        node.right = self._coercion.plain(node.right)
        common = self._common_number(node)
        return t.UNKNOWN if common is None else t.SetOf(common)

    def conditional(self, node: s.Conditional, scope: Scope) -> t.Type:
        node.condition = self._expressions.check_as(node.condition, scope, t.BOOL)
        first = self._expressions.check(node.if_true, scope)
        second = self._expressions.check(node.if_false, scope)
        if first is t.UNKNOWN or second is t.UNKNOWN:
            return t.UNKNOWN
        if first != second:
            if self._coercion.converts(node.if_false, first):
                node.if_false = self._coercion.coerce(node.if_false, first)
            elif self._coercion.converts(node.if_true, second):
                node.if_true = self._coercion.coerce(node.if_true, second)
                first = second
            else:
                node.if_true, node.if_false = self._coercion.plain(node.if_true), self._coercion.plain(node.if_false)
                if node.if_true.type != node.if_false.type:
                    self._context.error(node, f"the values of '?' have different types: {first} and {second}")
                    return t.UNKNOWN
                assert node.if_true.type is not None
                first = node.if_true.type
        if isinstance(node.condition.value, bool):
            node.value = node.if_true.value if node.condition.value else node.if_false.value
        elif first is t.INTEGER:
            self._context.error(node, "the values of '?' need a width, for instance 8w1")
            return t.UNKNOWN
        return first

    def cast(self, node: s.Cast, scope: Scope) -> t.Type:
        target = self._context.types.resolve(node.target, scope)
        source = self._expressions.check(node.operand, scope)
        if source is t.UNKNOWN or target is t.UNKNOWN:
            return target
        implicit = self._coercion.converts(node.operand, target) or source in (t.DEFAULT_VALUE, t.INVALID_HEADER)
        if implicit and source is not t.INTEGER:
            node.operand = self._coercion.coerce(node.operand, target)
            return target
        value = node.operand.value
        if not castable(source, target, value is not None):
            self._context.error(node, f"{source} cannot be cast to {target}")
            return target
        if value is not None:
            node.value = self._cast_value(node, value, target)
        return target

    def _cast_value(self, node: s.Cast, value: Constant, target: t.Type) -> Constant | None:
        if isinstance(value, str):
            return value
        number = stored(value)
        if target is t.BOOL:
            if number not in (0, 1):
                self._context.error(node, f"only 0 and 1 can be cast to bool, not {number}")
            return bool(number)
        if target is t.INTEGER:
            return number
        if isinstance(target, t.Enum):
            name = next((name for name, one in target.values.items() if one == number), str(number))
            return Symbolic(target, name, number)
        return wrap(number, t.representation(target))


def _divides_by_zero(node: s.Binary) -> bool:
    return node.operator in ("/", "%") and node.right.value == 0
