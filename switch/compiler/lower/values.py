"""Values made of parts: selecting parts and elements, reading, copying and assigning them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.values import (
    LVALUES,
    ElementOf,
    HeaderValue,
    HeaderVariable,
    LValue,
    NoValue,
    SliceOf,
    StackCursor,
    StackValue,
    StackVariable,
    StructValue,
    UnionVariable,
    Value,
    default_value,
    header_field,
    header_names,
    value_type,
)
from gradbed.switch.compiler.lower.context import Code

# ---- Members and elements ----


ZERO = ir.Const(t.bit(1), 0)


def part(base: Value, name: str, node: s.Node, code: Code) -> Value:
    """Return `base.name`."""
    match base:
        case StructValue(parts=parts) | UnionVariable(members=parts):
            return parts[name]
        case HeaderVariable():
            return header_field(base.type.fields[name], base.name, name)
        case HeaderValue(parts=given):
            return default_value(base.type.fields[name]) if given is None else given[name]
        case ElementOf():
            return ElementOf(base.stack, base.index, (*base.path, name))
        case StackVariable():
            return _part_of_stack(base, name, node, code)
        case StackCursor():
            return _part_of_cursor(base, name, node, code)
    code.error(node, "this value has no parts on this target")
    return ZERO


def _part_of_stack(base: StackVariable, name: str, node: s.Node, code: Code) -> Value:
    if name == "size":
        return ir.Const(t.bit(32), base.type.size)
    if name == "lastIndex":
        return _last_index(base)
    if code.kind != "parser":
        code.error(node, f"'{name}' of a header stack is for parsers only")
        return base.elements[0]
    return StackCursor(base, name)


def _last_index(stack: StackVariable) -> ir.LastIndex:
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


# ---- Elements of a stack with an index known only at run time ----


def candidates(value: ElementOf, node: s.Node, code: Code) -> list[Value]:
    """Return the elements that an index may select."""
    found = []
    for element in value.stack.elements:
        candidate: Value = element
        for name in value.path:
            candidate = part(candidate, name, node, code)
        found.append(candidate)
    return found


def elements(lvalue: ElementOf, node: s.Node, code: Code) -> list[tuple[ir.Expr, LValue]]:
    """Return a condition and an l-value for each index: the l-value is selected if the condition holds."""
    index = evaluated_once(lvalue.index, node, code)
    return [
        (op.equal(index, ir.Const(index.type, number)), as_lvalue(candidate, node, code))
        for number, candidate in enumerate(candidates(lvalue, node, code))
    ]


def evaluated_once(expr: ir.Expr, node: s.Node, code: Code) -> ir.Expr:
    """Return an expression that may be used several times without evaluating it again."""
    return expr if ir.is_simple(expr) else copied(expr, node, code)


def copied(expr: ir.Expr, node: s.Node, code: Code) -> ir.Expr:
    """Return a copy of an expression, which later writes to its variables do not change."""
    if isinstance(expr, (ir.Const, ir.RuntimeData)):
        return expr
    copy = code.storage.scalar(expr.type, "tmp")
    code.assign(copy, expr, node)
    return copy


def choose(index: ir.Expr, scalars: list[ir.Expr]) -> ir.Expr:
    """Return `scalars[index]`."""
    result = scalars[-1]
    for number in range(len(scalars) - 2, -1, -1):
        result = op.choice(op.equal(index, ir.Const(index.type, number)), scalars[number], result)
    return result


def validity(value: Value, node: s.Node, code: Code) -> ir.Expr:
    """Return the value of isValid()."""
    match value:
        case HeaderVariable():
            return ir.FieldRef(t.BOOL, value.name, "$valid$")
        case UnionVariable():
            return op.disjunction([validity(member, node, code) for member in value.members.values()])
        case HeaderValue():
            return op.flag(value.parts is not None)
        case ElementOf():
            validities = [validity(element, node, code) for element in candidates(value, node, code)]
            return choose(evaluated_once(value.index, node, code), validities)
    code.error(node, "isValid() of this header is not available on this target")
    return op.FALSE


def as_lvalue(value: Value, node: s.Node, code: Code) -> LValue:
    if isinstance(value, LVALUES):
        return value
    code.error(node, "this cannot be written to on this target")
    return StructValue(t.UNKNOWN, {})


# ---- Reading ----


# Kinds of what a primitive names that holds fields.
_STORED = frozenset(("header", "header_stack", "header_union_stack"))


def read(value: Value, node: s.Node, code: Code) -> Value:
    """Return the value of an l-value: slices and elements become expressions or copies."""
    match value:
        case SliceOf():
            return op.slice_of(as_scalar(value.base, node, code), value.high, value.low)
        case ElementOf():
            return _read_element(value, node, code)
        case StackCursor(which="last"):
            return _read_element(last_element(value), node, code)
    return value


def as_scalar(value: Value, node: s.Node, code: Code) -> ir.Expr:
    value = read(value, node, code)
    if isinstance(value, ir.Expr):
        return value
    code.error(node, "this value cannot be used here on this target")
    return ZERO


def snapshot(value: Value, node: s.Node, code: Code) -> Value:
    """Return a copy of the value, which later writes to its variables do not change."""
    value = read(value, node, code)
    if isinstance(value, ir.Expr):
        return copied(value, node, code)
    type_ = value_type(value)
    if type_ is None or not header_names(value):
        return value
    variable = code.storage.variable(type_, "tmp")
    assign(variable, value, node, code)
    return variable


def preserved(value: Value, end: int, node: s.Node, code: Code) -> Value:
    """Return the value as of statement `end`: it is copied there if a later statement may change it."""
    if not may_change(code.statements[end:], value):
        return value
    with code.branch() as copies:
        copy = snapshot(value, node, code)
    code.statements[end:end] = copies
    return copy


def may_change(statements: Sequence[ir.LoweredStatement], value: Value) -> bool:
    """Return whether statements may write something that the value is read from."""
    if not statements:
        return False
    names = header_names(value)
    return bool(names) and any(_may_write(statement, names) for statement in statements)


def _may_write(statement: ir.LoweredStatement, names: set[str]) -> bool:
    match statement:
        case ir.LoweredAssign(target=target) | ir.LoweredLookahead(target=target):
            return bool(header_names(target) & names)
        case ir.LoweredIf(then=then, otherwise=otherwise):
            return any(_may_write(inner, names) for inner in (*then, *otherwise))
        case ir.LoweredBlock(body=body):
            return any(_may_write(inner, names) for inner in body)
        case ir.LoweredPrimitive(parameters=parameters):
            # Which of the fields is the result depends on the primitive; a header may be one of a union or a stack.
            return any(
                bool(header_names(parameter) & names)
                if isinstance(parameter, ir.Expr)
                else isinstance(parameter, ir.Ref) and parameter.kind in _STORED
                for parameter in parameters
            )
        case ir.Leave() | ir.Repeat() | ir.LoweredEnd() | ir.LoweredVerify() | ir.LoweredAdvance():
            return False
    # Extractions, parsers inside, tables.
    return True


def _read_element(value: ElementOf, node: s.Node, code: Code) -> Value:
    """Choose among all elements, since the index is known only at run time."""
    found = candidates(value, node, code)
    scalars = [candidate for candidate in found if isinstance(candidate, ir.Expr)]
    if len(scalars) == len(found):
        return choose(value.index, scalars)
    type_ = value_type(found[0])
    assert type_ is not None
    copy = code.storage.variable(type_, "element")
    reset(copy, node, code)
    index = evaluated_once(value.index, node, code)
    for number, candidate in enumerate(found):
        with code.branch() as body:
            assign(copy, candidate, node, code)
        condition = op.equal(index, ir.Const(index.type, number))
        code.emit(ir.LoweredIf(node.loc, node.end, condition, body, []))
    return copy


# ---- Assigning ----


def assign(lvalue: Value, value: Value, node: s.Node, code: Code) -> None:
    """Assign to an l-value."""
    match lvalue:
        case StackCursor(which="last"):
            _assign_element(last_element(lvalue), value, node, code)
            return
        case ElementOf():
            _assign_element(lvalue, value, node, code)
            return
    value = read(value, node, code)
    match lvalue:
        case ir.FieldRef():
            _assign_field(lvalue, value, node, code)
        case SliceOf():
            base = as_scalar(lvalue.base, node, code)
            bits = as_scalar(value, node, code)
            assign(lvalue.base, op.insert_bits(base, lvalue.high, lvalue.low, bits), node, code)
        case StructValue():
            _assign_struct(lvalue, value, node, code)
        case HeaderVariable():
            _assign_header(lvalue, value, node, code)
        case UnionVariable():
            _assign_union(lvalue, value, node, code)
        case StackVariable():
            _assign_stack(lvalue, value, node, code)
        case StackCursor():
            code.error(node, f"'{lvalue.which}' cannot be assigned on this target; extract it")
        case _:
            code.error(node, "this cannot be written to on this target")


def reset(lvalue: Value, node: s.Node, code: Code) -> None:
    """Make a variable uninitialized: headers become invalid, the rest keeps any value (P4_16 1.2.5, section 8.25)."""
    match lvalue:
        case HeaderVariable():
            code.primitive(node, "remove_header", ir.Ref("header", lvalue.name))
        case UnionVariable(members=parts) | StructValue(parts=parts):
            for inner in parts.values():
                reset(inner, node, code)
        case StackVariable():
            for element in lvalue.elements:
                reset(element, node, code)
        case ElementOf():
            _for_each(lvalue, node, code, lambda element: reset(element, node, code))


def set_valid(lvalue: Value, valid: bool, node: s.Node, code: Code) -> None:
    match lvalue:
        case HeaderVariable():
            code.primitive(node, "add_header" if valid else "remove_header", ir.Ref("header", lvalue.name))
        case ElementOf():
            _for_each(lvalue, node, code, lambda element: set_valid(element, valid, node, code))
        case _:
            code.error(node, "the validity of this header cannot be changed on this target")


def _for_each(lvalue: ElementOf, node: s.Node, code: Code, write: Callable[[LValue], None]) -> None:
    """Write to the element that the index selects."""
    for condition, element in elements(lvalue, node, code):
        with code.branch() as body:
            write(element)
        if body:
            code.emit(ir.LoweredIf(node.loc, node.end, condition, body, []))


def _assign_element(lvalue: ElementOf, value: Value, node: s.Node, code: Code) -> None:
    given = read(value, node, code)
    if (isinstance(given, ir.Expr) and not ir.is_simple(given)) or header_names(given) & header_names(lvalue):
        given = snapshot(given, node, code)
    _for_each(lvalue, node, code, lambda element: assign(element, given, node, code))


def _assign_field(lvalue: ir.FieldRef, value: Value, node: s.Node, code: Code) -> None:
    if isinstance(value, NoValue):
        return
    expr = as_scalar(value, node, code)
    if isinstance(lvalue.type, t.Varbit):
        if isinstance(expr, ir.FieldRef):
            code.primitive(node, "assign_VL", lvalue, expr)
        else:
            code.error(node, "a varbit can only be copied from another one on this target")
    elif expr != lvalue:
        code.assign(lvalue, expr, node)


def _assign_struct(lvalue: StructValue, value: Value, node: s.Node, code: Code) -> None:
    if value is lvalue or isinstance(value, NoValue):
        return
    if not isinstance(value, StructValue):
        code.error(node, "this value cannot be assigned on this target")
        return
    if len(lvalue.parts) > 1 and _overlap_badly(lvalue, value):
        value = snapshot(value, node, code)
        assert isinstance(value, StructValue)
    for target, source in zip(lvalue.parts.values(), value.parts.values(), strict=True):
        assign(target, source, node, code)


def _overlap_badly(lvalue: StructValue, value: StructValue) -> bool:
    """Return whether assigning part after part would overwrite something that is still to be read."""
    written: set[str] = set()
    for target, source in zip(lvalue.parts.values(), value.parts.values(), strict=True):
        if header_names(source) & written:
            return True
        written |= header_names(target)
    return False


def _assign_header(lvalue: HeaderVariable, value: Value, node: s.Node, code: Code) -> None:
    match value:
        case HeaderVariable():
            if value.name != lvalue.name:
                code.primitive(node, "assign_header", ir.Ref("header", lvalue.name), ir.Ref("header", value.name))
        case HeaderValue(parts=None):
            set_valid(lvalue, False, node, code)
        case HeaderValue(parts=dict(parts)):
            # Making a member of a union valid makes the others invalid.
            written = header_names(lvalue) | (header_names(lvalue.union) if lvalue.union is not None else set())
            if any(header_names(given) & written for given in parts.values()):
                parts = {name: snapshot(given, node, code) for name, given in parts.items()}
            set_valid(lvalue, True, node, code)
            for name, given in parts.items():
                assign(part(lvalue, name, node, code), given, node, code)
        case NoValue():
            pass
        case _:
            code.error(node, "this value cannot be assigned to a header on this target")


def _assign_union(lvalue: UnionVariable, value: Value, node: s.Node, code: Code) -> None:
    match value:
        case UnionVariable():
            for name, member in lvalue.members.items():
                assign(member, value.members[name], node, code)
        case HeaderValue():
            reset(lvalue, node, code)
        case NoValue():
            pass
        case _:
            code.error(node, "this value cannot be assigned to a header union on this target")


def _assign_stack(lvalue: StackVariable, value: Value, node: s.Node, code: Code) -> None:
    match value:
        case StackVariable():
            if value.name != lvalue.name:
                _copy_stack(lvalue, value, node, code)
        case StackValue():
            if any(header_names(element) & header_names(lvalue) for element in value.elements):
                _assign_stack(lvalue, snapshot(value, node, code), node, code)
                return
            for index, target in enumerate(lvalue.elements):
                if index < len(value.elements):
                    assign(target, value.elements[index], node, code)
                else:
                    reset(target, node, code)
        case NoValue():
            pass
        case _:
            code.error(node, "this value cannot be assigned to a header stack on this target")


def _copy_stack(lvalue: StackVariable, source: StackVariable, node: s.Node, code: Code) -> None:
    element = lvalue.type.element
    if isinstance(element, t.Struct) and element.is_union:
        for target, given in zip(lvalue.elements, source.elements, strict=True):
            assign(target, given, node, code)
        return
    kind = "header_stack"
    code.primitive(node, "assign_header_stack", ir.Ref(kind, lvalue.name), ir.Ref(kind, source.name))
