"""== of values that have parts."""

from __future__ import annotations

from collections.abc import Iterable

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.places import (
    HeaderPlace,
    HeaderValue,
    StackPlace,
    StackValue,
    StructValue,
    TextValue,
    UnionPlace,
    Value,
)
from gradbed.switch.compiler.lower.context import Code
from gradbed.switch.compiler.lower.copying import snapshot
from gradbed.switch.compiler.lower.parts import part, validity


def same(left: Value, right: Value, node: s.Node, code: Code) -> ir.Expr:
    if isinstance(left, StackValue) or isinstance(right, StackValue):
        left, right = snapshot(left, node, code), snapshot(right, node, code)
    match left, right:
        case ir.Expr(), ir.Expr():
            return op.equal(left, right)
        case StructValue(parts=these), StructValue(parts=those):
            return _all_same(zip(these.values(), those.values(), strict=True), node, code)
        case StackPlace(), StackPlace():
            return _all_same(zip(left.elements, right.elements, strict=True), node, code)
        case UnionPlace(members=these), UnionPlace(members=those):
            return _all_same(zip(these.values(), those.values(), strict=True), node, code)
        case ((HeaderPlace() | HeaderValue()), (HeaderPlace() | HeaderValue())):
            return _same_header(left, right, node, code)
        case TextValue(), TextValue():
            return op.flag(left.text == right.text)
        case (HeaderValue(), UnionPlace() as union) | (UnionPlace() as union, HeaderValue()):
            return op.negation(validity(union, node, code))
    code.error(node, "these values cannot be compared on this target")
    return op.FALSE


def _all_same(pairs: Iterable[tuple[Value, Value]], node: s.Node, code: Code) -> ir.Expr:
    result: ir.Expr = op.TRUE
    for left, right in pairs:
        result = op.conjunction(result, same(left, right, node, code))
    return result


def _same_header(
    left: HeaderPlace | HeaderValue, right: HeaderPlace | HeaderValue, node: s.Node, code: Code
) -> ir.Expr:
    left_valid, right_valid = validity(left, node, code), validity(right, node, code)
    has_varbit = any(isinstance(type_, t.Varbit) for type_ in left.type.fields.values())
    neither = op.conjunction(op.negation(left_valid), op.negation(right_valid))
    if has_varbit and isinstance(left, HeaderPlace) and isinstance(right, HeaderPlace):
        # BMv2 says false of two headers that are not valid, which P4 calls equal (section 8.17).
        return op.binary("||", neither, ir.SameHeader(t.BOOL, left.name, right.name), t.BOOL)
    if op.FALSE in (left_valid, right_valid):
        return neither
    pairs = [(part(left, name, node, code), part(right, name, node, code)) for name in left.type.fields]
    both = op.conjunction(op.conjunction(left_valid, right_valid), _all_same(pairs, node, code))
    return op.binary("||", neither, both, t.BOOL)
