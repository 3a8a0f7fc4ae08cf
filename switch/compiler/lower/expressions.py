"""Expressions to values. What an expression does besides having a value is written as statements before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower import operations as op
from switch.compiler.lower.comparisons import Comparisons
from switch.compiler.lower.places import (
    PLACES,
    ElementOf,
    HeaderPlace,
    HeaderValue,
    Nothing,
    Place,
    SliceOf,
    StackCursor,
    StackPlace,
    StackValue,
    StructValue,
    TextValue,
    UnionPlace,
    Value,
    header_names,
)
from switch.compiler.lower.scope import Code, Frame

if TYPE_CHECKING:
    from switch.compiler.lower.assignments import Assignments
    from switch.compiler.lower.calls import Calls

ZERO = ir.Const(t.bit(1), 0)


class Expressions:
    assignments: Assignments
    calls: Calls

    def __init__(self, code: Code) -> None:
        self._code = code
        self.comparisons = Comparisons(code, self)

    # --- values ---

    def value(self, node: s.Expression, frame: Frame) -> Value:
        """The value, possibly a place that is read only when the value is used."""
        known = node.value
        if known is not None:
            if isinstance(known, str):
                return TextValue(known)
            assert node.type is not None
            return op.constant(known, node.type)
        if isinstance(node, s.Name):
            return self._name(node, frame)
        if isinstance(node, s.Member):
            return self._member(node, frame)
        if isinstance(node, s.Binary):
            return self._binary(node, frame)
        if isinstance(node, s.Index):
            return self._index(node, frame)
        if isinstance(node, s.Slice):
            return op.slice_of(self.scalar(node.base, frame), node.high_bit, node.low_bit)
        if isinstance(node, s.Unary):
            return op.unary(node.operator, self.scalar(node.operand, frame))
        if isinstance(node, s.Conditional):
            return self._conditional(node, frame)
        if isinstance(node, (s.Cast, s.Convert)):
            return self._converted(node, frame)
        if isinstance(node, s.Call):
            return self.calls.call(node, frame)
        if isinstance(node, (s.ListExpression, s.StructExpression)):
            return self._aggregate(node, frame)
        return Nothing()

    def scalar(self, node: s.Expression, frame: Frame) -> ir.Expr:
        """The value of an expression with a scalar type."""
        return self.as_scalar(self.value(node, frame), node)

    def as_scalar(self, value: Value, node: s.Node) -> ir.Expr:
        value = self.read(value, node)
        if isinstance(value, ir.Expr):
            return value
        self._code.error(node, "this value cannot be used here on this target")
        return ZERO

    def values(self, nodes: list[s.Expression], frame: Frame) -> list[Value]:
        """Left to right; a value is copied if what follows might change it."""
        results: list[Value] = []
        effects = [has_effects(node) for node in nodes]
        for index, node in enumerate(nodes):
            value = self.value(node, frame)
            if any(effects[index + 1 :]):
                value = self.snapshot(value, node)
            results.append(value)
        return results

    def snapshot(self, value: Value, node: s.Node) -> Value:
        """The value as it is now, whatever happens to the variables it was read from."""
        if isinstance(value, (ir.Const, ir.RuntimeData)):
            return value
        if isinstance(value, ir.Expr):
            copy = self._code.program.storage.scalar(value.type, "tmp")
            self._code.emit(ir.Assign(node.loc, node.end, copy, value))
            return copy
        type_ = value_type(value)
        if type_ is None or not header_names(value):
            return value
        variable = self._code.program.storage.variable(type_, "tmp")
        self.assignments.assign(variable, value, node)
        return variable

    def read(self, value: Value, node: s.Node) -> Value:
        """A place as a value: slices and elements become expressions or copies."""
        if isinstance(value, SliceOf):
            return op.slice_of(self.as_scalar(value.base, node), value.high, value.low)
        if isinstance(value, ElementOf):
            return self._read_element(value, node)
        if isinstance(value, StackCursor) and value.which == "last":
            return self._read_element(self.last_element(value), node)
        return value

    def last_element(self, value: StackCursor) -> ElementOf:
        path = (value.member,) if value.member else ()
        return ElementOf(value.stack, self._last_index(value.stack), path)

    # --- names and parts ---

    def _name(self, node: s.Name, frame: Frame) -> Value:
        assert node.symbol is not None
        value = frame.find(node.symbol)
        if value is None:
            value = self._constant_list(node, frame)
        return value

    def _constant_list(self, node: s.Name, frame: Frame) -> Value:
        """A constant whose value is a list; those that are numbers carry their value."""
        assert node.symbol is not None
        declaration = node.symbol.node
        if isinstance(declaration, s.ConstantDeclaration):
            return self.value(declaration.initial, frame)
        self._code.error(node, f"'{node.name}' has no value here")
        return ZERO

    def _member(self, node: s.Member, frame: Frame) -> Value:
        base_type = node.base.type
        if isinstance(base_type, t.ApplyResult):
            return self.calls.apply_result(node, frame)
        return self.part(self.value(node.base, frame), node.name, node)

    def part(self, base: Value, name: str, node: s.Node) -> Value:
        """base.name"""
        if isinstance(base, StructValue):
            return base.parts[name]
        if isinstance(base, HeaderPlace):
            return header_field(base.type.fields[name], base.name, name)
        if isinstance(base, HeaderValue):
            if base.parts is None:
                return default_value(base.type.fields[name])
            return base.parts[name]
        if isinstance(base, UnionPlace):
            return base.members[name]
        if isinstance(base, ElementOf):
            return ElementOf(base.stack, base.index, (*base.path, name))
        if isinstance(base, StackPlace):
            return self._part_of_stack(base, name, node)
        if isinstance(base, StackCursor):
            return self._part_of_cursor(base, name, node)
        self._code.error(node, "this value has no parts on this target")
        return ZERO

    def _part_of_stack(self, base: StackPlace, name: str, node: s.Node) -> Value:
        if name == "size":
            return ir.Const(t.bit(32), base.type.size)
        if self._code.kind != "parser" and name != "lastIndex":
            self._code.error(node, f"'{name}' of a header stack is for parsers only")
            return base.elements[0]
        if name == "lastIndex":
            return self._last_index(base)
        return StackCursor(base, name)

    @staticmethod
    def _last_index(stack: StackPlace) -> ir.LastIndex:
        element = stack.type.element
        return ir.LastIndex(t.bit(32), stack.name, isinstance(element, t.Struct) and element.is_union)

    def _part_of_cursor(self, base: StackCursor, name: str, node: s.Node) -> Value:
        element = base.stack.type.element
        assert isinstance(element, t.Struct)
        if element.is_union and not base.member:
            return StackCursor(base.stack, base.which, name)
        if base.which == "next":
            self._code.error(node, "fields of 'next' cannot be used on this target; extract it first")
            return ZERO
        inner = element.fields[base.member] if base.member else element
        assert isinstance(inner, t.Struct)
        return ir.StackLast(t.representation(inner.fields[name]), base.stack.name, base.member, name)

    def _index(self, node: s.Index, frame: Frame) -> Value:
        base, index = self.values([node.base, node.index], frame)
        if isinstance(base, StructValue):
            assert isinstance(node.index.value, int)
            return base.parts[str(node.index.value)]
        if isinstance(base, StackValue):
            base = self.snapshot(base, node)
        if not isinstance(base, StackPlace):
            self._code.error(node, "this stack cannot be indexed on this target")
            return Nothing()
        number = self.as_scalar(index, node.index)
        if isinstance(number, ir.Const):
            if not 0 <= number.value < base.type.size:
                self._code.error(node.index, f"index {number.value} is outside the stack")
                return base.elements[0]
            return base.elements[number.value]
        return ElementOf(base, number, ())

    def _read_element(self, value: ElementOf, node: s.Node) -> Value:
        """Which element is known at run time only: choose among all."""
        candidates = [self._element(value, index, node) for index in range(value.stack.type.size)]
        if all(isinstance(candidate, ir.Expr) for candidate in candidates):
            return self._choose(value.index, candidates)
        type_ = value_type(candidates[0])
        assert type_ is not None
        copy = self._code.program.storage.variable(type_, "element")
        self.assignments.reset(copy, node)
        index = self._once(value.index, node)
        for number, candidate in enumerate(candidates):
            with self._code.branch() as body:
                self.assignments.assign(copy, candidate, node)
            condition = op.equal(index, ir.Const(index.type, number))
            self._code.emit(ir.If(node.loc, node.end, condition, body, []))
        return copy

    def _choose(self, index: ir.Expr, candidates: list[Value]) -> ir.Expr:
        result = candidates[-1]
        assert isinstance(result, ir.Expr)
        for number in range(len(candidates) - 2, -1, -1):
            candidate = candidates[number]
            assert isinstance(candidate, ir.Expr)
            result = op.choice(op.equal(index, ir.Const(index.type, number)), candidate, result)
        return result

    def _once(self, expr: ir.Expr, node: s.Node) -> ir.Expr:
        """An expression that is used several times, evaluated once."""
        return expr if ir.is_simple(expr) else self._as_expr(self.snapshot(expr, node))

    @staticmethod
    def _as_expr(value: Value) -> ir.Expr:
        assert isinstance(value, ir.Expr)
        return value

    def _element(self, value: ElementOf, index: int, node: s.Node) -> Value:
        element: Value = value.stack.elements[index]
        for name in value.path:
            element = self.part(element, name, node)
        return element

    def elements(self, place: ElementOf, node: s.Node) -> list[tuple[ir.Expr, Place]]:
        """For each index the condition that it is meant, and the place there."""
        index = self._once(place.index, node)
        result: list[tuple[ir.Expr, Place]] = []
        for number in range(place.stack.type.size):
            element = self._element(place, number, node)
            result.append((op.equal(index, ir.Const(index.type, number)), self.as_place(element, node)))
        return result

    def validity(self, value: Value, node: s.Node) -> ir.Expr:
        """isValid()"""
        if isinstance(value, HeaderPlace):
            return ir.FieldRef(t.BOOL, value.name, "$valid$")
        if isinstance(value, UnionPlace):
            return op.disjunction([self.validity(member, node) for member in value.members.values()])
        if isinstance(value, HeaderValue):
            return op.flag(value.parts is not None)
        if isinstance(value, ElementOf):
            candidates: list[Value] = [
                self.validity(self._element(value, index, node), node) for index in range(value.stack.type.size)
            ]
            return self._choose(self._once(value.index, node), candidates)
        self._code.error(node, "isValid() of this header is not available on this target")
        return op.FALSE

    # --- operators ---

    def _binary(self, node: s.Binary, frame: Frame) -> Value:
        assert node.type is not None
        if node.operator in ("&&", "||"):
            return self._logical(node, frame)
        left, right = self.values([node.left, node.right], frame)
        if node.operator in ("==", "!="):
            same = self.comparisons.same(self.read(left, node.left), self.read(right, node.right), node)
            return same if node.operator == "==" else op.negation(same)
        return self._arithmetic(node, self.as_scalar(left, node.left), self.as_scalar(right, node.right))

    def applied(self, node: s.Binary, left: Value, frame: Frame) -> Value:
        """`node` with its left operand evaluated already."""
        left = self.read(left, node)
        if has_effects(node.right):
            left = self.snapshot(left, node)
        return self._arithmetic(node, self.as_scalar(left, node), self.scalar(node.right, frame))

    def _arithmetic(self, node: s.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        assert node.type is not None
        type_ = t.representation(node.type)
        try:
            return op.binary(node.operator, left, right, type_)
        except op.FoldError as error:
            self._code.error(node, str(error))
            return ir.Const(type_, 0)

    def _logical(self, node: s.Binary, frame: Frame) -> ir.Expr:
        left = self.scalar(node.left, frame)
        if isinstance(left, ir.Const):
            decided = bool(left.value) == (node.operator == "||")
            return left if decided else self.scalar(node.right, frame)
        with self._code.branch() as effects:
            right = self.scalar(node.right, frame)
            if effects:
                # The right side does something, which must not happen if the left side decides.
                result = self._code.program.storage.scalar(t.BOOL, "tmp")
                self._code.emit(ir.Assign(node.loc, node.end, result, right))
        if not effects:
            return op.binary(node.operator, left, right, t.BOOL)
        self._code.emit(ir.Assign(node.loc, node.end, result, left))
        condition = result if node.operator == "&&" else op.negation(result)
        self._code.emit(ir.If(node.loc, node.end, condition, effects, []))
        return result

    def _conditional(self, node: s.Conditional, frame: Frame) -> Value:
        condition = self.scalar(node.condition, frame)
        if isinstance(condition, ir.Const):
            return self.value(node.if_true if condition.value else node.if_false, frame)
        assert node.type is not None
        with self._code.branch() as true_effects:
            first = self.read(self.value(node.if_true, frame), node)
        with self._code.branch() as false_effects:
            second = self.read(self.value(node.if_false, frame), node)
        if not true_effects and not false_effects and isinstance(first, ir.Expr) and isinstance(second, ir.Expr):
            return op.choice(condition, first, second)
        condition = self._once(condition, node)
        result = self._code.program.storage.variable(node.type, "tmp")
        with self._code.branch() as then:
            self._code.statements.extend(true_effects)
            self.assignments.assign(result, first, node)
        with self._code.branch() as otherwise:
            self._code.statements.extend(false_effects)
            self.assignments.assign(result, second, node)
        self._code.emit(ir.If(node.loc, node.end, condition, then, otherwise))
        return result

    def _converted(self, node: s.Cast | s.Convert, frame: Frame) -> Value:
        assert node.type is not None
        if isinstance(node.operand, s.InvalidHeader) or node.operand.type is t.INVALID_HEADER:
            return default_value(node.type)
        if isinstance(node.operand, s.DefaultValue) or node.operand.type is t.DEFAULT_VALUE:
            return default_value(node.type)
        operand = self.read(self.value(node.operand, frame), node)
        if isinstance(operand, StructValue) and isinstance(node.type, t.Struct):
            return StructValue(node.type, dict(zip(node.type.fields, operand.parts.values(), strict=True)))
        if not isinstance(operand, ir.Expr):
            return operand
        return op.cast(operand, t.representation(node.type))

    # --- aggregates ---

    def _aggregate(self, node: s.ListExpression | s.StructExpression, frame: Frame) -> Value:
        type_ = node.type
        if isinstance(node, s.StructExpression):
            names = [name for name, _ in node.fields]
            given = self.values([item for _, item in node.fields], frame)
        else:
            given = self.values(node.items, frame)
            names = list(type_.fields) if isinstance(type_, t.Struct) else list(map(str, range(len(given))))
        given = [self.read(value, node) for value in given]
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

    # --- places ---

    def place(self, node: s.Expression, frame: Frame) -> Place:
        """What an expression that can be written to stands for; indices are evaluated now."""
        if isinstance(node, s.Slice):
            base = self.place(node.base, frame)
            if isinstance(base, SliceOf):
                return SliceOf(base.base, base.low + node.high_bit, base.low + node.low_bit)
            return SliceOf(base, node.high_bit, node.low_bit)
        if isinstance(node, s.Member):
            return self.as_place(self.part(self.place(node.base, frame), node.name, node), node)
        if isinstance(node, s.Index):
            base_value = self.place(node.base, frame)
            if isinstance(base_value, StructValue):
                return self.as_place(base_value.parts[str(node.index.value)], node)
            index = self.scalar(node.index, frame)
            if not isinstance(base_value, StackPlace):
                self._code.error(node, "this stack cannot be indexed on this target")
                return StructValue(t.UNKNOWN, {})
            if isinstance(index, ir.Const):
                return base_value.elements[min(index.value, base_value.type.size - 1)]
            fixed = self.snapshot(index, node)
            assert isinstance(fixed, ir.Expr)
            return ElementOf(base_value, fixed, ())
        return self.as_place(self.value(node, frame), node)

    def as_place(self, value: Value, node: s.Node) -> Place:
        if isinstance(value, PLACES):
            return value
        self._code.error(node, "this cannot be written to on this target")
        return StructValue(t.UNKNOWN, {})


def header_field(type_: t.Type, header: str, name: str) -> Value:
    """A field of a header; one that is a struct has a field per part."""
    if isinstance(type_, t.Struct):
        return StructValue(
            type_,
            {part: header_field(inner, header, f"{name}.{part}") for part, inner in type_.fields.items()},
        )
    return ir.FieldRef(t.representation(type_), header, name)


def default_value(type_: t.Type) -> Value:
    """Zero, false, the first member, NoError; headers are invalid."""
    if isinstance(type_, t.Struct):
        if type_.kind != "struct":
            return HeaderValue(type_, None)
        return StructValue(type_, {name: default_value(inner) for name, inner in type_.fields.items()})
    if isinstance(type_, t.Tuple):
        return StructValue(type_, {str(index): default_value(inner) for index, inner in enumerate(type_.elements)})
    if isinstance(type_, t.Stack):
        return StackValue(type_, [])
    return ir.Const(t.representation(type_), 0)


def value_type(value: Value) -> t.Type | None:
    if isinstance(value, (StructValue, HeaderPlace, HeaderValue, UnionPlace, StackPlace, StackValue, ir.Expr)):
        return value.type
    return None


def has_effects(node: s.Expression) -> bool:
    """Whether evaluating it can change something (or must happen at its own time)."""
    if node.effects is None:
        if isinstance(node, (s.Name, s.IntLiteral, s.BoolLiteral)):
            node.effects = False
        elif isinstance(node, s.Member):
            node.effects = has_effects(node.base)
        elif isinstance(node, s.Binary):
            node.effects = has_effects(node.left) or has_effects(node.right)
        else:
            node.effects = any(isinstance(inner, s.Call) and _changes(inner) for inner in s.walk(node))
    return node.effects


def _changes(call: s.Call) -> bool:
    target = call.target
    if target is None or target.kind == "size_method":
        return False
    return not (target.kind == "header_method" and target.name == "isValid")
