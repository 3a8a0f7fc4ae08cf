"""== of values that have parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower import operations as op
from switch.compiler.lower.places import (
    HeaderPlace,
    HeaderValue,
    StackPlace,
    StackValue,
    StructValue,
    TextValue,
    UnionPlace,
    Value,
)
from switch.compiler.lower.scope import Code

if TYPE_CHECKING:
    from switch.compiler.lower.expressions import Expressions


class Comparisons:
    def __init__(self, code: Code, expressions: Expressions) -> None:
        self._code = code
        self._expressions = expressions

    def same(self, left: Value, right: Value, node: s.Node) -> ir.Expr:
        if isinstance(left, ir.Expr) and isinstance(right, ir.Expr):
            return op.equal(left, right)
        if isinstance(left, StructValue) and isinstance(right, StructValue):
            return self._all_same(list(zip(left.parts.values(), right.parts.values(), strict=True)), node)
        if isinstance(left, StackValue) or isinstance(right, StackValue):
            left, right = self._expressions.snapshot(left, node), self._expressions.snapshot(right, node)
        if isinstance(left, StackPlace) and isinstance(right, StackPlace):
            return self._all_same(list(zip(left.elements, right.elements, strict=True)), node)
        if isinstance(left, UnionPlace) and isinstance(right, UnionPlace):
            return self._all_same(list(zip(left.members.values(), right.members.values(), strict=True)), node)
        if isinstance(left, (HeaderPlace, HeaderValue)) and isinstance(right, (HeaderPlace, HeaderValue)):
            return self._same_header(left, right, node)
        if isinstance(left, TextValue) and isinstance(right, TextValue):
            return op.flag(left.text == right.text)
        if isinstance(left, HeaderValue) and isinstance(right, UnionPlace):
            return op.negation(self._expressions.validity(right, node))
        if isinstance(left, UnionPlace) and isinstance(right, HeaderValue):
            return op.negation(self._expressions.validity(left, node))
        self._code.error(node, "these values cannot be compared on this target")
        return op.FALSE

    def _all_same(self, pairs: list[tuple[Value, Value]], node: s.Node) -> ir.Expr:
        result: ir.Expr = op.TRUE
        for left, right in pairs:
            result = op.conjunction(result, self.same(left, right, node))
        return result

    def _same_header(
        self, left: HeaderPlace | HeaderValue, right: HeaderPlace | HeaderValue, node: s.Node
    ) -> ir.Expr:
        left_valid, right_valid = self._expressions.validity(left, node), self._expressions.validity(right, node)
        has_varbit = any(isinstance(type_, t.Varbit) for type_ in left.type.fields.values())
        if has_varbit and isinstance(left, HeaderPlace) and isinstance(right, HeaderPlace):
            return ir.SameHeader(t.BOOL, left.name, right.name)
        if op.FALSE in (left_valid, right_valid):
            return op.conjunction(op.negation(left_valid), op.negation(right_valid))
        fields = self._all_same(
            [
                (self._expressions.part(left, name, node), self._expressions.part(right, name, node))
                for name in left.type.fields
            ],
            node,
        )
        both = op.conjunction(op.conjunction(left_valid, right_valid), fields)
        neither = op.conjunction(op.negation(left_valid), op.negation(right_valid))
        return op.binary("||", neither, both, t.BOOL)
