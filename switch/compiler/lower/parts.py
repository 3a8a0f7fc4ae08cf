"""Parts of values: members and elements, and which element is meant where the index is known late."""

from __future__ import annotations

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.places import (
    PLACES,
    ElementOf,
    HeaderPlace,
    HeaderValue,
    Place,
    StackCursor,
    StackPlace,
    StructValue,
    UnionPlace,
    Value,
    default_value,
    header_field,
)
from gradbed.switch.compiler.lower.context import Code

ZERO = ir.Const(t.bit(1), 0)


def part(base: Value, name: str, node: s.Node, code: Code) -> Value:
    """base.name"""
    match base:
        case StructValue(parts=parts) | UnionPlace(members=parts):
            return parts[name]
        case HeaderPlace():
            return header_field(base.type.fields[name], base.name, name)
        case HeaderValue(parts=given):
            return default_value(base.type.fields[name]) if given is None else given[name]
        case ElementOf():
            return ElementOf(base.stack, base.index, (*base.path, name))
        case StackPlace():
            return _part_of_stack(base, name, node, code)
        case StackCursor():
            return _part_of_cursor(base, name, node, code)
    code.error(node, "this value has no parts on this target")
    return ZERO


def _part_of_stack(base: StackPlace, name: str, node: s.Node, code: Code) -> Value:
    if name == "size":
        return ir.Const(t.bit(32), base.type.size)
    if name == "lastIndex":
        return _last_index(base)
    if code.kind != "parser":
        code.error(node, f"'{name}' of a header stack is for parsers only")
        return base.elements[0]
    return StackCursor(base, name)


def _last_index(stack: StackPlace) -> ir.LastIndex:
    element = stack.type.element
    return ir.LastIndex(t.bit(32), stack.name, isinstance(element, t.Struct) and element.is_union)


def _part_of_cursor(base: StackCursor, name: str, node: s.Node, code: Code) -> Value:
    element = base.stack.type.element
    assert isinstance(element, t.Struct)
    if element.is_union and not base.member:
        return StackCursor(base.stack, base.which, name)
    if base.which == "next":
        code.error(node, "fields of 'next' cannot be used on this target; extract it first")
        return ZERO
    inner = element.fields[base.member] if base.member else element
    assert isinstance(inner, t.Struct)
    return ir.StackLast(t.representation(inner.fields[name]), base.stack.name, base.member, name)


def last_element(value: StackCursor) -> ElementOf:
    path = (value.member,) if value.member else ()
    return ElementOf(value.stack, _last_index(value.stack), path)


# --- elements of a stack whose index is known only at run time ---


def candidates(value: ElementOf, node: s.Node, code: Code) -> list[Value]:
    """Return what it may be, by the index."""
    found = []
    for element in value.stack.elements:
        candidate: Value = element
        for name in value.path:
            candidate = part(candidate, name, node, code)
        found.append(candidate)
    return found


def elements(place: ElementOf, node: s.Node, code: Code) -> list[tuple[ir.Expr, Place]]:
    """Return for each index the condition that it is meant, and the place there."""
    index = once(place.index, node, code)
    return [
        (op.equal(index, ir.Const(index.type, number)), as_place(candidate, node, code))
        for number, candidate in enumerate(candidates(place, node, code))
    ]


def once(expr: ir.Expr, node: s.Node, code: Code) -> ir.Expr:
    """An expression that is used several times, evaluated once."""
    return expr if ir.is_simple(expr) else copied(expr, node, code)


def copied(expr: ir.Expr, node: s.Node, code: Code) -> ir.Expr:
    """An expression as it is now, whatever happens to the variables it was read from."""
    if isinstance(expr, (ir.Const, ir.RuntimeData)):
        return expr
    copy = code.storage.scalar(expr.type, "tmp")
    code.assign(copy, expr, node)
    return copy


def choose(index: ir.Expr, scalars: list[ir.Expr]) -> ir.Expr:
    """scalars[index]"""
    result = scalars[-1]
    for number in range(len(scalars) - 2, -1, -1):
        result = op.choice(op.equal(index, ir.Const(index.type, number)), scalars[number], result)
    return result


def validity(value: Value, node: s.Node, code: Code) -> ir.Expr:
    """isValid()"""
    match value:
        case HeaderPlace():
            return ir.FieldRef(t.BOOL, value.name, "$valid$")
        case UnionPlace():
            return op.disjunction([validity(member, node, code) for member in value.members.values()])
        case HeaderValue():
            return op.flag(value.parts is not None)
        case ElementOf():
            validities = [validity(element, node, code) for element in candidates(value, node, code)]
            return choose(once(value.index, node, code), validities)
    code.error(node, "isValid() of this header is not available on this target")
    return op.FALSE


def as_place(value: Value, node: s.Node, code: Code) -> Place:
    if isinstance(value, PLACES):
        return value
    code.error(node, "this cannot be written to on this target")
    return StructValue(t.UNKNOWN, {})
