"""Types and conversions of P4_16 (sections 7, 8.11)."""

from __future__ import annotations

from collections.abc import Callable

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.scope import (
    Environment,
    Generic,
    TypedExpression,
    constant,
)
from gradbed.switch.reference.tokens import Position, ProgramError
from gradbed.switch.reference.values import (
    ANYTHING,
    BOOLEAN,
    DEFAULT,
    ERROR,
    INTEGER,
    INVALID_HEADER,
    MATCH_KIND,
    STRING,
    VOID,
    BitsType,
    BlockType,
    Composite,
    ExternType,
    ListType,
    RecordField,
    RecordType,
    RuntimeHeader,
    RuntimeStack,
    RuntimeUnion,
    StackType,
    Value,
    ValueType,
    VarbitType,
    base_of,
    bits_of,
    copied,
    default,
    tuple_of,
)

PLAIN_TYPES = {
    "bool": BOOLEAN,
    "error": ERROR,
    "string": STRING,
    "void": VOID,
    "int": INTEGER,
    "match_kind": MATCH_KIND,
    "_": ANYTHING,
}
Conversion = Callable[[Value], Value]


class TypeInterpreter:
    """Resolves types, and converts values between them."""

    def expression(
        self, node: x.ExpressionNode, scope: Environment, expected: ValueType | None = None
    ) -> TypedExpression:
        raise NotImplementedError

    # ---- Types ----

    def type(self, node: x.TypeNode, scope: Environment) -> ValueType:
        if isinstance(node, x.BitsTypeNode):
            width = self.natural(node.width, scope)
            return VarbitType(width) if node.kind == "varbit" else BitsType(width, node.kind == "int")
        if isinstance(node, x.StackTypeNode):
            return StackType(self.type(node.element, scope), self.natural(node.size, scope))
        assert isinstance(node, x.NamedTypeNode)
        if node.name in PLAIN_TYPES and not node.arguments:
            return PLAIN_TYPES[node.name]
        arguments = [self.type(each, scope) for each in node.arguments]
        if node.name == "tuple":
            return tuple_of(arguments)
        if node.name == "list":
            return ListType(arguments[0])
        meaning = scope.get(node.name, node.position)
        if isinstance(meaning, ValueType):
            return meaning
        if isinstance(meaning, Generic):
            return self.specialised(meaning, arguments, node.position)
        raise ProgramError(node.position, f"{node.name} is no type")

    def specialised(self, generic: Generic, arguments: list[ValueType], position: Position) -> ValueType:
        """Return a generic struct, header or extern with its type arguments."""
        declaration = generic.declaration
        if isinstance(declaration, x.ExternNode):
            return ExternType(declaration.name, tuple(arguments))
        if not isinstance(declaration, x.FieldsNode):
            return BlockType(declaration.name)
        if len(arguments) != len(declaration.type_parameters):
            raise ProgramError(position, f"{declaration.name} has {len(declaration.type_parameters)} type parameters")
        inner = Environment(generic.scope)
        for name, type_ in zip(declaration.type_parameters, arguments, strict=True):
            inner.set(name, type_)
        name = declaration.name
        if arguments:
            name = f"{name}<{', '.join(map(str, arguments))}>"
        return RecordType(declaration.kind, name, self.fields(declaration, inner))

    def fields(self, declaration: x.FieldsNode, scope: Environment) -> tuple[RecordField, ...]:
        return tuple(
            RecordField(each.name, self.type(each.type, scope), {a.name: a.tokens for a in each.annotations})
            for each in declaration.fields
        )

    def natural(self, node: x.ExpressionNode, scope: Environment) -> int:
        """Return the value of an expression that is known at compile time."""
        typed = self.expression(node, scope)
        if not typed.constant:
            raise ProgramError(node.position, "a constant is needed")
        return int(typed.run())

    # ---- Conversions (section 8.11) ----

    def converted(self, typed: TypedExpression, target: ValueType, position: Position) -> TypedExpression:
        """Convert an expression implicitly to a type."""
        conversion = self.conversion(typed.type, target, position)
        if conversion is None:
            return typed if typed.type == target else TypedExpression(target, typed.run, typed.constant, typed.place)
        run = typed.run
        if typed.constant:
            return constant(target, conversion(run()))
        return TypedExpression(target, lambda: conversion(run()))

    def as_type(self, node: x.ExpressionNode, scope: Environment, target: ValueType) -> TypedExpression:
        """Return an expression, converted to this type."""
        return self.converted(self.expression(node, scope, target), target, node.position)

    def conversion(self, source: ValueType, target: ValueType, position: Position) -> Conversion | None:
        """Return how a value is converted; None if it stays as it is."""
        if source == target or target == ANYTHING:
            return None
        bits = bits_of(target)
        if source == INTEGER and isinstance(base_of(target), BitsType) and bits is not None:
            return bits.wrap
        if source in (INVALID_HEADER, DEFAULT):
            return lambda _: default(target)
        from_base, to_base = base_of(source), base_of(target)
        if from_base == to_base:
            return None
        if isinstance(from_base, RecordType) and from_base.kind in ("tuple", "unnamed"):
            return self._from_list(from_base, to_base, position)
        if (
            isinstance(from_base, RecordType)
            and isinstance(to_base, RecordType)
            and (from_base.kind, len(from_base.fields)) == (to_base.kind, len(to_base.fields))
        ):
            return None
        raise ProgramError(position, f"a value of {source} where {target} is needed")

    def _from_list(self, source: RecordType, target: ValueType, position: Position) -> Conversion:
        """Return the conversion of {a, b} or {x = a, y = b} to a tuple, struct, header, stack or list."""
        if isinstance(target, StackType | ListType):
            element = target.element
            steps = [self.conversion(each.type, element, position) for each in source.fields]

            def to_elements(value: Composite) -> Value:
                parts = [copied(v) if step is None else step(v) for v, step in zip(value.parts, steps, strict=True)]
                if isinstance(target, ListType):
                    return Composite(target, parts)
                parts += [default(element) for _ in range(target.size - len(parts))]
                return RuntimeStack(target, parts)

            return to_elements
        if not isinstance(target, RecordType):
            raise ProgramError(position, f"a list where {target} is needed")
        if source.kind == "unnamed":
            order = [source.indices[each.name] for each in target.fields if each.name in source.indices]
        else:
            order = list(range(len(source.fields)))
        if len(order) != len(target.fields) or len(order) != len(source.fields):
            raise ProgramError(position, f"{len(source.fields)} items do not make a {target}")
        moves = [
            (index, self.conversion(source.fields[index].type, each.type, position))
            for index, each in zip(order, target.fields, strict=True)
        ]

        def to_record(value: Composite) -> Value:
            parts = [copied(value.parts[i]) if step is None else step(value.parts[i]) for i, step in moves]
            if target.kind == "header":
                return RuntimeHeader(target, parts, valid=True)
            return RuntimeUnion(target, parts) if target.kind == "header_union" else Composite(target, parts)

        return to_record

    def cast(self, source: ValueType, target: ValueType, position: Position) -> Conversion | None:
        """Return the conversion of an explicit cast (section 8.11.1); None if the value stays as it is."""
        one, two = base_of(source), base_of(target)
        if one == two:
            return None
        if isinstance(two, BitsType) and (isinstance(one, BitsType) or one in (INTEGER, BOOLEAN)):
            return lambda value: two.wrap(int(value))
        if two == BOOLEAN and (isinstance(one, BitsType) or one == INTEGER):
            return bool
        if two == INTEGER and isinstance(bits_of(one), BitsType):
            return int
        return self.conversion(source, target, position)

    def unified(
        self, left: TypedExpression, right: TypedExpression, position: Position
    ) -> tuple[TypedExpression, TypedExpression]:
        """Return both operands converted to one type.

        Numbers without a width and lists take the type of the other operand (section 8.11.2).
        """
        a, b = base_of(left.type), base_of(right.type)
        if left.type == right.type:
            return left, right
        if a in (INTEGER, INVALID_HEADER, DEFAULT) or (isinstance(a, RecordType) and a.kind in ("tuple", "unnamed")):
            if b == INTEGER:
                return left, right
            return self.converted(left, right.type, position), right
        return left, self.converted(right, left.type, position)
