"""Expressions: their types, and functions that evaluate them from left to right (P4_16, sections 8 and 6.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.scope import (
    Generic,
    Item,
    Nowhere,
    Place,
    Scope,
    SlicePlace,
    Typed,
    UnionItem,
    constant,
)
from gradbed.switch.reference.tables import AnyValue, Between, Exact, Masked, Matcher
from gradbed.switch.reference.tokens import Position, ProgramError
from gradbed.switch.reference.types import (
    ANYTHING,
    BOOLEAN,
    DEFAULT,
    ERROR,
    INTEGER,
    INVALID_HEADER,
    MATCH_KIND,
    STRING,
    VOID,
    ApplyResult,
    Bits,
    BlockType,
    EnumType,
    ExternType,
    Field,
    ListType,
    NewType,
    Record,
    Stack,
    Type,
    Varbit,
    base_of,
    bits_of,
    tuple_of,
)
from gradbed.switch.reference.values import Composite, Header, StackValue, Union, Value, copied, default, equal

PLAIN_TYPES = {
    "bool": BOOLEAN,
    "error": ERROR,
    "string": STRING,
    "void": VOID,
    "int": INTEGER,
    "match_kind": MATCH_KIND,
    "_": ANYTHING,
}
MAX_SHIFT = 1 << 16
Conversion = Callable[[Value], Value]


class ParserFailure(Exception):
    """The parser goes to `reject` with this error."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class UndefinedOperation(Exception):
    """The packet made the program do what has no meaning at all, such as dividing by zero."""


class Expressions:
    """What of an elaborated program evaluates."""

    error_names: set[str]

    def call(self, node: x.Call, scope: Scope, expected: Type | None) -> Typed:
        raise NotImplementedError

    def value_set(self, meaning: Any) -> Matcher | None:
        raise NotImplementedError

    def constructed(self, node: x.Expression, scope: Scope) -> Any:
        raise NotImplementedError

    # ---- Types ----

    def type(self, node: x.TypeNode, scope: Scope) -> Type:
        if isinstance(node, x.BitsNode):
            width = self.natural(node.width, scope)
            return Varbit(width) if node.kind == "varbit" else Bits(width, node.kind == "int")
        if isinstance(node, x.StackNode):
            return Stack(self.type(node.element, scope), self.natural(node.size, scope))
        assert isinstance(node, x.NamedNode)
        if node.name in PLAIN_TYPES and not node.arguments:
            return PLAIN_TYPES[node.name]
        arguments = [self.type(each, scope) for each in node.arguments]
        if node.name == "tuple":
            return tuple_of(arguments)
        if node.name == "list":
            return ListType(arguments[0])
        meaning = scope.get(node.name, node.position)
        if isinstance(meaning, Type):
            return meaning
        if isinstance(meaning, Generic):
            return self.specialised(meaning, arguments, node.position)
        raise ProgramError(node.position, f"{node.name} is no type")

    def specialised(self, generic: Generic, arguments: list[Type], position: Position) -> Type:
        """A generic struct, header or extern with its type arguments."""
        declaration = generic.declaration
        if isinstance(declaration, x.Extern):
            return ExternType(declaration.name, tuple(arguments))
        if not isinstance(declaration, x.Fields):
            return BlockType(declaration.name)
        if len(arguments) != len(declaration.type_parameters):
            raise ProgramError(position, f"{declaration.name} has {len(declaration.type_parameters)} type parameters")
        inner = Scope(generic.scope)
        for name, type_ in zip(declaration.type_parameters, arguments, strict=True):
            inner.set(name, type_)
        name = declaration.name
        if arguments:
            name = f"{name}<{', '.join(map(str, arguments))}>"
        return Record(declaration.kind, name, self.fields(declaration, inner))

    def fields(self, declaration: x.Fields, scope: Scope) -> tuple[Field, ...]:
        return tuple(
            Field(each.name, self.type(each.type, scope), {a.name: a.tokens for a in each.annotations})
            for each in declaration.fields
        )

    def natural(self, node: x.Expression, scope: Scope) -> int:
        """A number that is known when the program is compiled."""
        typed = self.expression(node, scope)
        if not typed.constant:
            raise ProgramError(node.position, "a constant is needed")
        return int(typed.run())

    # ---- Conversions (section 8.11) ----

    def converted(self, typed: Typed, target: Type, position: Position) -> Typed:
        """The implicit conversion to a type."""
        conversion = self.conversion(typed.type, target, position)
        if conversion is None:
            return typed if typed.type == target else Typed(target, typed.run, typed.constant, typed.place)
        run = typed.run
        if typed.constant:
            return constant(target, conversion(run()))
        return Typed(target, lambda: conversion(run()))

    def as_type(self, node: x.Expression, scope: Scope, target: Type) -> Typed:
        """An expression where a value of this type is needed."""
        return self.converted(self.expression(node, scope, target), target, node.position)

    def conversion(self, source: Type, target: Type, position: Position) -> Conversion | None:
        """None if the value stays as it is."""
        if source == target or target == ANYTHING:
            return None
        bits = bits_of(target)
        if source == INTEGER and isinstance(base_of(target), Bits) and bits is not None:
            return bits.wrap
        if source in (INVALID_HEADER, DEFAULT):
            return lambda _: default(target)
        from_base, to_base = base_of(source), base_of(target)
        if from_base == to_base:
            return None
        if isinstance(from_base, Record) and from_base.kind in ("tuple", "unnamed"):
            return self._from_list(from_base, to_base, position)
        if (
            isinstance(from_base, Record)
            and isinstance(to_base, Record)
            and (from_base.kind, len(from_base.fields)) == (to_base.kind, len(to_base.fields))
        ):
            return None
        raise ProgramError(position, f"a value of {source} where {target} is needed")

    def _from_list(self, source: Record, target: Type, position: Position) -> Conversion:
        """{a, b} and {x = a, y = b} as a tuple, struct, header, stack or list."""
        if isinstance(target, Stack | ListType):
            element = target.element
            steps = [self.conversion(each.type, element, position) for each in source.fields]

            def to_elements(value: Composite) -> Value:
                parts = [copied(v) if step is None else step(v) for v, step in zip(value.parts, steps, strict=True)]
                if isinstance(target, ListType):
                    return Composite(target, parts)
                parts += [default(element) for _ in range(target.size - len(parts))]
                return StackValue(target, parts)

            return to_elements
        if not isinstance(target, Record):
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
                return Header(target, parts, valid=True)
            return Union(target, parts) if target.kind == "header_union" else Composite(target, parts)

        return to_record

    # ---- Expressions ----

    def expression(self, node: x.Expression, scope: Scope, expected: Type | None = None) -> Typed:
        """expected: where the context gives a type; lists and `...` are made for it."""
        if isinstance(node, x.Number):
            if node.width is None:
                return constant(INTEGER, node.value)
            bits = Bits(node.width, node.signed)
            return constant(bits, bits.wrap(node.value))
        if isinstance(node, x.Boolean):
            return constant(BOOLEAN, node.value)
        if isinstance(node, x.String):
            return constant(STRING, node.value)
        if isinstance(node, x.Name):
            return self._name(node, scope)
        if isinstance(node, x.Member):
            return self._member(node, scope)
        if isinstance(node, x.Index):
            return self._index(node, scope)
        if isinstance(node, x.Slice):
            return self._slice(node, scope)
        if isinstance(node, x.Unary):
            return self._folded(self._unary(node, scope))
        if isinstance(node, x.Binary):
            return self._folded(self._binary(node, scope))
        if isinstance(node, x.Conditional):
            return self._folded(self._conditional(node, scope, expected))
        if isinstance(node, x.Cast):
            return self._folded(self._cast(node, scope))
        if isinstance(node, x.Call):
            return self.call(node, scope, expected)
        if isinstance(node, x.ListExpression):
            return self._list(node, scope, expected)
        if isinstance(node, x.InvalidHeader):
            return constant(INVALID_HEADER, None) if expected is None else Typed(expected, lambda: default(expected))
        if isinstance(node, x.Dots):
            return constant(DEFAULT, None) if expected is None else Typed(expected, lambda: default(expected))
        raise ProgramError(node.position, f"{type(node).__name__} is no value")

    def _folded(self, typed: Typed) -> Typed:
        return constant(typed.type, typed.run()) if typed.constant else typed

    def _name(self, node: x.Name, scope: Scope) -> Typed:
        meaning = (scope.outermost if node.absolute else scope).get(node.name, node.position)
        if isinstance(meaning, Typed):
            return meaning
        raise ProgramError(node.position, f"{node.name} is no value")

    def type_named(self, node: x.Expression, scope: Scope) -> Type | None:
        """The type that an expression is the name of."""
        if isinstance(node, x.TypeName):
            return self.type(node.type, scope)
        if not isinstance(node, x.Name):
            return None
        meaning = (scope.outermost if node.absolute else scope).find(node.name)
        if meaning is None and node.name == "error":
            return ERROR
        return meaning if isinstance(meaning, Type) else None

    def _member(self, node: x.Member, scope: Scope) -> Typed:
        of_type = self.type_named(node.base, scope)
        if of_type == ERROR:
            if node.name not in self.error_names:
                raise ProgramError(node.position, f"there is no error {node.name}")
            return constant(ERROR, node.name)
        if isinstance(of_type, NewType):
            of_type = base_of(of_type) if not isinstance(of_type.base, EnumType) else of_type.base
        if isinstance(of_type, EnumType):
            if node.name not in of_type.values:
                raise ProgramError(node.position, f"enum {of_type} has no member {node.name}")
            return constant(of_type, of_type.values[node.name])
        base = self.expression(node.base, scope)
        kind = base_of(base.type)
        if isinstance(kind, ApplyResult):
            return self._apply_result(node, base)
        if isinstance(kind, Stack):
            return self._stack_member(node, base, kind)
        if not isinstance(kind, Record) or node.name not in kind.indices:
            raise ProgramError(node.position, f"a value of {base.type} has no member {node.name}")
        index = kind.indices[node.name]
        run = base.run

        def place() -> Place:
            value = run()
            return UnionItem(value, index) if isinstance(value, Union) else Item(value.parts, index)

        return Typed(
            kind.fields[index].type,
            lambda: run().parts[index],
            base.constant,
            place if base.place is not None else None,
        )

    def _apply_result(self, node: x.Member, base: Typed) -> Typed:
        run = base.run
        if node.name == "hit":
            return Typed(BOOLEAN, lambda: run()[0])
        if node.name == "miss":
            return Typed(BOOLEAN, lambda: not run()[0])
        if node.name == "action_run":
            return Typed(base.type, lambda: run()[1])
        raise ProgramError(node.position, f"{base.type} has no {node.name}")

    def _stack_member(self, node: x.Member, base: Typed, stack: Stack) -> Typed:
        run = base.run
        if node.name == "size":
            return constant(Bits(32), stack.size)
        if node.name == "lastIndex":
            return Typed(Bits(32), lambda: (run().next - 1) & 0xFFFFFFFF)
        if node.name not in ("next", "last"):
            raise ProgramError(node.position, f"a header stack has no {node.name}")
        back = node.name == "last"

        def element() -> tuple[list[Value], int]:
            held = run()
            index = held.next - back
            if not 0 <= index < len(held.parts):
                raise ParserFailure("StackOutOfBounds")
            return held.parts, index

        def value() -> Value:
            parts, index = element()
            return parts[index]

        return Typed(stack.element, value, place=lambda: Item(*element()))

    def _index(self, node: x.Index, scope: Scope) -> Typed:
        base = self.expression(node.base, scope)
        index = self.expression(node.index, scope)
        kind = base_of(base.type)
        run, at = base.run, index.run
        if isinstance(kind, Record) and kind.kind == "tuple":
            which = self.natural(node.index, scope)
            return Typed(kind.fields[which].type, lambda: run().parts[which], base.constant)
        if not isinstance(kind, Stack):
            raise ProgramError(node.position, f"a value of {base.type} has no elements")
        element = kind.element
        if index.constant and not 0 <= index.run() < kind.size:
            raise ProgramError(node.position, f"a stack of {kind.size} has no element {index.run()}")

        def found() -> tuple[list[Value], int]:
            # Section 8.18: an index outside the stack reads an undefined value, and what is written is lost.
            parts, number = run().parts, at()
            return (parts, number) if 0 <= number < len(parts) else ([default(element)], 0)

        def value() -> Value:
            parts, number = found()
            return parts[number]

        return Typed(element, value, place=(lambda: Item(*found())) if base.place is not None else None)

    def _slice(self, node: x.Slice, scope: Scope) -> Typed:
        base = self.expression(node.base, scope)
        low = self.natural(node.low, scope)
        high = self.natural(node.high, scope)
        if node.from_low:
            high = low + high - 1
        bits = bits_of(base.type)
        if not 0 <= low <= high or (bits is not None and high >= bits.width):
            raise ProgramError(node.position, f"a value of {base.type} has no bits {high} to {low}")
        run = base.run
        mask = (1 << (high - low + 1)) - 1
        place = None
        if base.place is not None and bits is not None:
            find, whole = base.place, bits

            def place() -> Place:
                return SlicePlace(find(), whole, high, low)

        made = Typed(Bits(high - low + 1), lambda: run() >> low & mask, base.constant, place)
        return self._folded(made)

    def _unary(self, node: x.Unary, scope: Scope) -> Typed:
        operand = self.expression(node.operand, scope)
        run = operand.run
        kind = base_of(operand.type)
        if node.operator == "!":
            return Typed(BOOLEAN, lambda: not run(), operand.constant)
        if node.operator == "+":
            return Typed(kind, run, operand.constant)
        if kind == INTEGER and node.operator == "-":
            return Typed(INTEGER, lambda: -run(), operand.constant)
        if not isinstance(kind, Bits):
            raise ProgramError(node.position, f"{node.operator} of a value of {operand.type}")
        wrap = kind.wrap
        if node.operator == "-":
            return Typed(kind, lambda: wrap(-run()), operand.constant)
        return Typed(kind, lambda: wrap(~run()), operand.constant)

    def _binary(self, node: x.Binary, scope: Scope) -> Typed:
        operator = node.operator
        left = self.expression(node.left, scope)
        right = self.expression(node.right, scope)
        fixed = left.constant and right.constant
        a, b = left.run, right.run
        if operator == "&&":
            return Typed(BOOLEAN, lambda: a() and b(), fixed or (left.constant and not a()))
        if operator == "||":
            return Typed(BOOLEAN, lambda: a() or b(), fixed or (left.constant and a()))
        if operator in ("<<", ">>"):
            return self._shift(operator, left, right, node.position)
        if operator == "++":
            return self._concatenation(left, right, node.position)
        left, right = self.unified(left, right, node.position)
        return self.operation(operator, left, right, node.position)

    def operation(self, operator: str, left: Typed, right: Typed, position: Position) -> Typed:
        """An operator on two values of one type; shifts and `++` are others."""
        fixed = left.constant and right.constant
        a, b = left.run, right.run
        if operator in ("==", "!="):
            same = operator == "=="
            if isinstance(base_of(left.type), Record | Stack):
                # The left operand is a value of its own by the time the right one is evaluated.
                return Typed(BOOLEAN, lambda: equal(copied(a()), b()) == same, fixed)
            return Typed(BOOLEAN, lambda: (a() == b()) == same, fixed)
        if operator in _COMPARISONS:
            compare = _COMPARISONS[operator]
            return Typed(BOOLEAN, lambda: compare(a(), b()), fixed)
        kind = base_of(left.type)
        if operator in _ARITHMETIC and isinstance(kind, Bits):
            compute, wrap = _ARITHMETIC[operator], kind.wrap
            return Typed(kind, lambda: wrap(compute(a(), b())), fixed)
        if operator in _ARITHMETIC and kind == INTEGER:
            compute = _ARITHMETIC[operator]
            return Typed(kind, lambda: compute(a(), b()), fixed)
        if operator in ("|+|", "|-|") and isinstance(kind, Bits):
            saturate = kind.saturate
            if operator == "|+|":
                return Typed(kind, lambda: saturate(a() + b()), fixed)
            return Typed(kind, lambda: saturate(a() - b()), fixed)
        raise ProgramError(position, f"{operator} of values of {left.type}")

    def unified(self, left: Typed, right: Typed, position: Position) -> tuple[Typed, Typed]:
        """Both operands as one type: numbers without a width and lists take that of the other (section 8.11.2)."""
        a, b = base_of(left.type), base_of(right.type)
        if left.type == right.type:
            return left, right
        if a in (INTEGER, INVALID_HEADER, DEFAULT) or (isinstance(a, Record) and a.kind in ("tuple", "unnamed")):
            if b == INTEGER:
                return left, right
            return self.converted(left, right.type, position), right
        return left, self.converted(right, left.type, position)

    def _shift(self, operator: str, left: Typed, right: Typed, position: Position) -> Typed:
        a, b = left.run, right.run
        kind = base_of(left.type)
        fixed = left.constant and right.constant
        wrap: Callable[[int], int]
        if isinstance(kind, Bits):
            wrap, width = kind.wrap, kind.width
        elif kind == INTEGER and right.constant:
            wrap, width = int, MAX_SHIFT
        else:
            raise ProgramError(position, f"a shift of a value of {left.type}")

        def shift() -> Value:
            value, by = a(), b()
            if by < 0:
                raise UndefinedOperation("a shift by a negative number")
            by = min(by, width)
            return wrap(value << by) if operator == "<<" else value >> by

        return Typed(kind, shift, fixed)

    def _concatenation(self, left: Typed, right: Typed, position: Position) -> Typed:
        one, two = base_of(left.type), base_of(right.type)
        if not isinstance(one, Bits) or not isinstance(two, Bits):
            raise ProgramError(position, f"++ of values of {left.type} and {right.type}")
        made = Bits(one.width + two.width, one.signed)
        a, b, wrap, width, mask = left.run, right.run, made.wrap, two.width, two.mask
        return Typed(made, lambda: wrap(a() << width | b() & mask), left.constant and right.constant)

    def _conditional(self, node: x.Conditional, scope: Scope, expected: Type | None) -> Typed:
        condition = self.expression(node.condition, scope)
        then, other = self.unified(
            self.expression(node.then, scope, expected), self.expression(node.other, scope, expected), node.position
        )
        if then.type == INTEGER and not condition.constant and isinstance(expected, Bits):
            then, other = (self.converted(each, expected, node.position) for each in (then, other))
        choose, a, b = condition.run, then.run, other.run
        fixed = condition.constant and (then if choose() else other).constant
        return Typed(then.type, lambda: a() if choose() else b(), fixed)

    def _cast(self, node: x.Cast, scope: Scope) -> Typed:
        target = self.type(node.type, scope)
        operand = self.expression(node.operand, scope, target)
        step = self.cast(operand.type, target, node.position)
        run = operand.run
        if step is None:
            return Typed(target, run, operand.constant)
        return Typed(target, lambda: step(run()), operand.constant)

    def cast(self, source: Type, target: Type, position: Position) -> Conversion | None:
        """An explicit cast (section 8.11.1)."""
        one, two = base_of(source), base_of(target)
        if one == two:
            return None
        if isinstance(two, Bits) and (isinstance(one, Bits) or one in (INTEGER, BOOLEAN)):
            return lambda value: two.wrap(int(value))
        if two == BOOLEAN and (isinstance(one, Bits) or one == INTEGER):
            return bool
        if two == INTEGER and isinstance(bits_of(one), Bits):
            return int
        return self.conversion(source, target, position)

    def _list(self, node: x.ListExpression, scope: Scope, expected: Type | None) -> Typed:
        """The items are evaluated in the order in which they are written, each to a value of its own."""
        target = base_of(expected) if expected is not None else None
        wanted: list[Type | None] = [None] * len(node.items)
        if isinstance(target, Record):
            for index in range(len(node.items)):
                if node.names is not None:
                    name = node.names[index]
                    if name not in target.indices:
                        raise ProgramError(node.position, f"{target} has no field {name}")
                    wanted[index] = target.fields[target.indices[name]].type
                elif index < len(target.fields):
                    wanted[index] = target.fields[index].type
        elif isinstance(target, Stack | ListType):
            wanted = [target.element] * len(node.items)
        items: list[Typed] = []
        for each, type_ in zip(node.items, wanted, strict=True):
            item = self.expression(each, scope, type_)
            items.append(item if type_ is None else self.converted(item, type_, each.position))
        runs = [item.run for item in items]
        if node.names is None:
            made: Type = tuple_of([item.type for item in items])
        else:
            named = zip(node.names, items, strict=True)
            made = Record("unnamed", "{...}", tuple(Field(name, item.type) for name, item in named))
        fixed = all(item.constant for item in items)

        def build() -> Composite:
            return Composite(made, [copied(run()) for run in runs])

        if node.rest:
            if not isinstance(target, Record):
                raise ProgramError(node.position, "... needs a struct, header or tuple")
            return Typed(target, self._with_rest(target, build, node), fixed)
        typed = Typed(made, build, fixed)
        if isinstance(target, Record | Stack | ListType) and expected is not None:
            return self.converted(typed, expected, node.position)
        return typed

    def _with_rest(
        self, target: Record, build: Callable[[], Composite], node: x.ListExpression
    ) -> Callable[[], Value]:
        names = node.names or [each.name for each in target.fields[: len(node.items)]]
        indices = [target.indices[name] for name in names]

        def run() -> Value:
            made = default(target)
            for index, value in zip(indices, build().parts, strict=True):
                made.parts[index] = value
            if isinstance(made, Header):
                made.valid = True
            return made

        return run

    # ---- L-values ----

    def target(self, node: x.Expression, scope: Scope, type_: Type | None = None) -> tuple[Type, Callable[[], Place]]:
        """The l-value of an assignment, or of an out or inout argument. type_: what `_` stands for."""
        if isinstance(node, x.Anything):
            nothing = type_ or ANYTHING
            return nothing, lambda: Nowhere(nothing)
        typed = self.expression(node, scope)
        if typed.place is None:
            raise ProgramError(node.position, "an l-value is needed")
        return typed.type, typed.place

    # ---- Sets (section 8.15) ----

    def matcher(self, node: x.Expression, scope: Scope, type_: Type) -> Callable[[], Matcher]:
        """A set of values of this type. It is made when it is needed: a set need not be constant in a select."""
        if isinstance(node, x.Anything):
            everything = AnyValue()
            return lambda: everything
        if isinstance(node, x.Binary) and node.operator in ("&&&", ".."):
            low = self.as_type(node.left, scope, type_)
            high = self.as_type(node.right, scope, type_)
            if node.operator == "..":
                return self._ready(lambda: Between(low.run(), high.run()), low.constant and high.constant)
            return self._ready(lambda: Masked(low.run(), high.run()), low.constant and high.constant)
        if isinstance(node, x.Name):
            values = self.value_set(scope.find(node.name))
            if values is not None:
                return lambda: values
        if isinstance(node, x.Tuple) and isinstance(base_of(type_), Record):
            node = x.ListExpression(node.items, position=node.position)
        value = self.as_type(node, scope, type_)
        return self._ready(lambda: Exact(value.run()), value.constant)

    def _ready(self, make: Callable[[], Matcher], fixed: bool) -> Callable[[], Matcher]:
        if not fixed:
            return make
        made = make()
        return lambda: made


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _divided(a: int, b: int) -> int:
    if b <= 0 or a < 0:
        raise UndefinedOperation("a division by zero or of negative numbers")
    return a // b


def _remainder(a: int, b: int) -> int:
    if b <= 0 or a < 0:
        raise UndefinedOperation("a remainder by zero or of negative numbers")
    return a % b


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "%": _remainder,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
