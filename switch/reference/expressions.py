"""Expressions: their types, and functions that evaluate them from left to right (P4_16, sections 8 and 6.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.conversions import TypeInterpreter
from gradbed.switch.reference.scope import (
    CellLValue,
    DiscardedLValue,
    Environment,
    LValue,
    SliceLValue,
    TypedExpression,
    UnionMemberLValue,
    constant,
)
from gradbed.switch.reference.tables import AnyValue, ExactMatcher, MaskedMatcher, Matcher, RangeMatcher
from gradbed.switch.reference.tokens import Position, ProgramError
from gradbed.switch.reference.values import (
    ANYTHING,
    BOOLEAN,
    DEFAULT,
    ERROR,
    INTEGER,
    INVALID_HEADER,
    STRING,
    ApplyResultType,
    BitsType,
    Composite,
    EnumType,
    IntroducedType,
    ListType,
    RecordField,
    RecordType,
    RuntimeHeader,
    RuntimeUnion,
    StackType,
    Value,
    ValueType,
    base_of,
    bits_of,
    copied,
    default,
    equal,
    tuple_of,
)

MAX_SHIFT = 1 << 16


class ParserFailure(Exception):
    """The parser goes to `reject` with this error."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class UndefinedOperation(Exception):
    """The packet made the program do what has no meaning at all, such as dividing by zero."""


class ExpressionInterpreter(TypeInterpreter):
    """Interprets expressions, l-values and sets."""

    error_names: set[str]

    def call(self, node: x.CallNode, scope: Environment, expected: ValueType | None) -> TypedExpression:
        raise NotImplementedError

    def value_set(self, meaning: Any) -> Matcher | None:
        raise NotImplementedError

    def constructed(self, node: x.ExpressionNode, scope: Environment) -> Any:
        raise NotImplementedError

    # ---- Expressions ----

    def expression(
        self, node: x.ExpressionNode, scope: Environment, expected: ValueType | None = None
    ) -> TypedExpression:
        """Return the expression; `expected` is the type that the context gives, for which lists and `...` are
        made."""
        if isinstance(node, x.NumberNode):
            if node.width is None:
                return constant(INTEGER, node.value)
            bits = BitsType(node.width, node.signed)
            return constant(bits, bits.wrap(node.value))
        if isinstance(node, x.BooleanNode):
            return constant(BOOLEAN, node.value)
        if isinstance(node, x.StringNode):
            return constant(STRING, node.value)
        if isinstance(node, x.NameNode):
            return self._name(node, scope)
        if isinstance(node, x.MemberNode):
            return self._member(node, scope)
        if isinstance(node, x.IndexNode):
            return self._index(node, scope)
        if isinstance(node, x.SliceNode):
            return self._slice(node, scope)
        if isinstance(node, x.UnaryNode):
            return self._folded(self._unary(node, scope))
        if isinstance(node, x.BinaryNode):
            return self._folded(self._binary(node, scope))
        if isinstance(node, x.ConditionalNode):
            return self._folded(self._conditional(node, scope, expected))
        if isinstance(node, x.CastNode):
            return self._folded(self._cast(node, scope))
        if isinstance(node, x.CallNode):
            return self.call(node, scope, expected)
        if isinstance(node, x.ListExpressionNode):
            return self._list(node, scope, expected)
        if isinstance(node, x.InvalidHeaderNode):
            return (
                constant(INVALID_HEADER, None)
                if expected is None
                else TypedExpression(expected, lambda: default(expected))
            )
        if isinstance(node, x.DotsNode):
            return (
                constant(DEFAULT, None) if expected is None else TypedExpression(expected, lambda: default(expected))
            )
        raise ProgramError(node.position, f"{type(node).__name__} is no value")

    def _folded(self, typed: TypedExpression) -> TypedExpression:
        return constant(typed.type, typed.run()) if typed.constant else typed

    def _name(self, node: x.NameNode, scope: Environment) -> TypedExpression:
        meaning = (scope.outermost if node.absolute else scope).get(node.name, node.position)
        if isinstance(meaning, TypedExpression):
            return meaning
        raise ProgramError(node.position, f"{node.name} is no value")

    def type_named(self, node: x.ExpressionNode, scope: Environment) -> ValueType | None:
        """Return the type that an expression names, if it does."""
        if isinstance(node, x.TypeNameNode):
            return self.type(node.type, scope)
        if not isinstance(node, x.NameNode):
            return None
        meaning = (scope.outermost if node.absolute else scope).find(node.name)
        if meaning is None and node.name == "error":
            return ERROR
        return meaning if isinstance(meaning, ValueType) else None

    def _member(self, node: x.MemberNode, scope: Environment) -> TypedExpression:
        of_type = self.type_named(node.base, scope)
        if of_type == ERROR:
            if node.name not in self.error_names:
                raise ProgramError(node.position, f"there is no error {node.name}")
            return constant(ERROR, node.name)
        if isinstance(of_type, IntroducedType):
            of_type = base_of(of_type) if not isinstance(of_type.base, EnumType) else of_type.base
        if isinstance(of_type, EnumType):
            if node.name not in of_type.values:
                raise ProgramError(node.position, f"enum {of_type} has no member {node.name}")
            return constant(of_type, of_type.values[node.name])
        base = self.expression(node.base, scope)
        kind = base_of(base.type)
        if isinstance(kind, ApplyResultType):
            return self._apply_result(node, base)
        if isinstance(kind, StackType):
            return self._stack_member(node, base, kind)
        if not isinstance(kind, RecordType) or node.name not in kind.indices:
            raise ProgramError(node.position, f"a value of {base.type} has no member {node.name}")
        index = kind.indices[node.name]
        run = base.run

        def place() -> LValue:
            value = run()
            return (
                UnionMemberLValue(value, index) if isinstance(value, RuntimeUnion) else CellLValue(value.parts, index)
            )

        return TypedExpression(
            kind.fields[index].type,
            lambda: run().parts[index],
            base.constant,
            place if base.place is not None else None,
        )

    def _apply_result(self, node: x.MemberNode, base: TypedExpression) -> TypedExpression:
        run = base.run
        if node.name == "hit":
            return TypedExpression(BOOLEAN, lambda: run()[0])
        if node.name == "miss":
            return TypedExpression(BOOLEAN, lambda: not run()[0])
        if node.name == "action_run":
            return TypedExpression(base.type, lambda: run()[1])
        raise ProgramError(node.position, f"{base.type} has no {node.name}")

    def _stack_member(self, node: x.MemberNode, base: TypedExpression, stack: StackType) -> TypedExpression:
        run = base.run
        if node.name == "size":
            return constant(BitsType(32), stack.size)
        if node.name == "lastIndex":
            return TypedExpression(BitsType(32), lambda: (run().next - 1) & 0xFFFFFFFF)
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

        return TypedExpression(stack.element, value, place=lambda: CellLValue(*element()))

    def _index(self, node: x.IndexNode, scope: Environment) -> TypedExpression:
        base = self.expression(node.base, scope)
        index = self.expression(node.index, scope)
        kind = base_of(base.type)
        run, at = base.run, index.run
        if isinstance(kind, RecordType) and kind.kind == "tuple":
            which = self.natural(node.index, scope)
            return TypedExpression(kind.fields[which].type, lambda: run().parts[which], base.constant)
        if not isinstance(kind, StackType):
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

        return TypedExpression(
            element, value, place=(lambda: CellLValue(*found())) if base.place is not None else None
        )

    def _slice(self, node: x.SliceNode, scope: Environment) -> TypedExpression:
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

            def place() -> LValue:
                return SliceLValue(find(), whole, high, low)

        made = TypedExpression(BitsType(high - low + 1), lambda: run() >> low & mask, base.constant, place)
        return self._folded(made)

    def _unary(self, node: x.UnaryNode, scope: Environment) -> TypedExpression:
        operand = self.expression(node.operand, scope)
        run = operand.run
        kind = base_of(operand.type)
        if node.operator == "!":
            return TypedExpression(BOOLEAN, lambda: not run(), operand.constant)
        if node.operator == "+":
            return TypedExpression(kind, run, operand.constant)
        if kind == INTEGER and node.operator == "-":
            return TypedExpression(INTEGER, lambda: -run(), operand.constant)
        if not isinstance(kind, BitsType):
            raise ProgramError(node.position, f"{node.operator} of a value of {operand.type}")
        wrap = kind.wrap
        if node.operator == "-":
            return TypedExpression(kind, lambda: wrap(-run()), operand.constant)
        return TypedExpression(kind, lambda: wrap(~run()), operand.constant)

    def _binary(self, node: x.BinaryNode, scope: Environment) -> TypedExpression:
        operator = node.operator
        left = self.expression(node.left, scope)
        right = self.expression(node.right, scope)
        fixed = left.constant and right.constant
        a, b = left.run, right.run
        if operator == "&&":
            return TypedExpression(BOOLEAN, lambda: a() and b(), fixed or (left.constant and not a()))
        if operator == "||":
            return TypedExpression(BOOLEAN, lambda: a() or b(), fixed or (left.constant and a()))
        if operator in ("<<", ">>"):
            return self._shift(operator, left, right, node.position)
        if operator == "++":
            return self._concatenation(left, right, node.position)
        left, right = self.unified(left, right, node.position)
        return self.operation(operator, left, right, node.position)

    def operation(
        self, operator: str, left: TypedExpression, right: TypedExpression, position: Position
    ) -> TypedExpression:
        """Apply an operator to two values of one type; shifts and `++` are elsewhere."""
        fixed = left.constant and right.constant
        a, b = left.run, right.run
        if operator in ("==", "!="):
            same = operator == "=="
            if isinstance(base_of(left.type), RecordType | StackType):
                # The left operand is a value of its own by the time the right one is evaluated.
                return TypedExpression(BOOLEAN, lambda: equal(copied(a()), b()) == same, fixed)
            return TypedExpression(BOOLEAN, lambda: (a() == b()) == same, fixed)
        if operator in _COMPARISONS:
            compare = _COMPARISONS[operator]
            return TypedExpression(BOOLEAN, lambda: compare(a(), b()), fixed)
        kind = base_of(left.type)
        if operator in _ARITHMETIC and isinstance(kind, BitsType):
            compute, wrap = _ARITHMETIC[operator], kind.wrap
            return TypedExpression(kind, lambda: wrap(compute(a(), b())), fixed)
        if operator in _ARITHMETIC and kind == INTEGER:
            compute = _ARITHMETIC[operator]
            return TypedExpression(kind, lambda: compute(a(), b()), fixed)
        if operator in ("|+|", "|-|") and isinstance(kind, BitsType):
            saturate = kind.saturate
            if operator == "|+|":
                return TypedExpression(kind, lambda: saturate(a() + b()), fixed)
            return TypedExpression(kind, lambda: saturate(a() - b()), fixed)
        raise ProgramError(position, f"{operator} of values of {left.type}")

    def _shift(
        self, operator: str, left: TypedExpression, right: TypedExpression, position: Position
    ) -> TypedExpression:
        a, b = left.run, right.run
        kind = base_of(left.type)
        fixed = left.constant and right.constant
        wrap: Callable[[int], int]
        if isinstance(kind, BitsType):
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

        return TypedExpression(kind, shift, fixed)

    def _concatenation(self, left: TypedExpression, right: TypedExpression, position: Position) -> TypedExpression:
        one, two = base_of(left.type), base_of(right.type)
        if not isinstance(one, BitsType) or not isinstance(two, BitsType):
            raise ProgramError(position, f"++ of values of {left.type} and {right.type}")
        made = BitsType(one.width + two.width, one.signed)
        a, b, wrap, width, mask = left.run, right.run, made.wrap, two.width, two.mask
        return TypedExpression(made, lambda: wrap(a() << width | b() & mask), left.constant and right.constant)

    def _conditional(
        self, node: x.ConditionalNode, scope: Environment, expected: ValueType | None
    ) -> TypedExpression:
        condition = self.expression(node.condition, scope)
        then, other = self.unified(
            self.expression(node.then, scope, expected), self.expression(node.other, scope, expected), node.position
        )
        if then.type == INTEGER and not condition.constant and isinstance(expected, BitsType):
            then, other = (self.converted(each, expected, node.position) for each in (then, other))
        choose, a, b = condition.run, then.run, other.run
        fixed = condition.constant and (then if choose() else other).constant
        return TypedExpression(then.type, lambda: a() if choose() else b(), fixed)

    def _cast(self, node: x.CastNode, scope: Environment) -> TypedExpression:
        target = self.type(node.type, scope)
        operand = self.expression(node.operand, scope, target)
        step = self.cast(operand.type, target, node.position)
        run = operand.run
        if step is None:
            return TypedExpression(target, run, operand.constant)
        return TypedExpression(target, lambda: step(run()), operand.constant)

    def _list(self, node: x.ListExpressionNode, scope: Environment, expected: ValueType | None) -> TypedExpression:
        """Return a list expression.

        Its items are evaluated in the order in which they are written, each to a copy.
        """
        target = base_of(expected) if expected is not None else None
        wanted: list[ValueType | None] = [None] * len(node.items)
        if isinstance(target, RecordType):
            for index in range(len(node.items)):
                if node.names is not None:
                    name = node.names[index]
                    if name not in target.indices:
                        raise ProgramError(node.position, f"{target} has no field {name}")
                    wanted[index] = target.fields[target.indices[name]].type
                elif index < len(target.fields):
                    wanted[index] = target.fields[index].type
        elif isinstance(target, StackType | ListType):
            wanted = [target.element] * len(node.items)
        items: list[TypedExpression] = []
        for each, type_ in zip(node.items, wanted, strict=True):
            item = self.expression(each, scope, type_)
            items.append(item if type_ is None else self.converted(item, type_, each.position))
        runs = [item.run for item in items]
        if node.names is None:
            made: ValueType = tuple_of([item.type for item in items])
        else:
            named = zip(node.names, items, strict=True)
            made = RecordType("unnamed", "{...}", tuple(RecordField(name, item.type) for name, item in named))
        fixed = all(item.constant for item in items)

        def build() -> Composite:
            return Composite(made, [copied(run()) for run in runs])

        if node.rest:
            if not isinstance(target, RecordType):
                raise ProgramError(node.position, "... needs a struct, header or tuple")
            return TypedExpression(target, self._with_rest(target, build, node), fixed)
        typed = TypedExpression(made, build, fixed)
        if isinstance(target, RecordType | StackType | ListType) and expected is not None:
            return self.converted(typed, expected, node.position)
        return typed

    def _with_rest(
        self, target: RecordType, build: Callable[[], Composite], node: x.ListExpressionNode
    ) -> Callable[[], Value]:
        names = node.names or [each.name for each in target.fields[: len(node.items)]]
        indices = [target.indices[name] for name in names]

        def run() -> Value:
            made = default(target)
            for index, value in zip(indices, build().parts, strict=True):
                made.parts[index] = value
            if isinstance(made, RuntimeHeader):
                made.valid = True
            return made

        return run

    # ---- L-values ----

    def target(
        self, node: x.ExpressionNode, scope: Environment, type_: ValueType | None = None
    ) -> tuple[ValueType, Callable[[], LValue]]:
        """Return the type and the l-value of an assignment, or of an out or inout argument.

        `type_` is what `_` stands for.
        """
        if isinstance(node, x.AnythingNode):
            nothing = type_ or ANYTHING
            return nothing, lambda: DiscardedLValue(nothing)
        typed = self.expression(node, scope)
        if typed.place is None:
            raise ProgramError(node.position, "an l-value is needed")
        return typed.type, typed.place

    # ---- Sets (section 8.15) ----

    def matcher(self, node: x.ExpressionNode, scope: Environment, type_: ValueType) -> Callable[[], Matcher]:
        """Return the maker of a set of values of this type: in a select a set need not be constant."""
        if isinstance(node, x.AnythingNode):
            everything = AnyValue()
            return lambda: everything
        if isinstance(node, x.BinaryNode) and node.operator in ("&&&", ".."):
            low = self.as_type(node.left, scope, type_)
            high = self.as_type(node.right, scope, type_)
            if node.operator == "..":
                return self._ready(lambda: RangeMatcher(low.run(), high.run()), low.constant and high.constant)
            return self._ready(lambda: MaskedMatcher(low.run(), high.run()), low.constant and high.constant)
        if isinstance(node, x.NameNode):
            values = self.value_set(scope.find(node.name))
            if values is not None:
                return lambda: values
        if isinstance(node, x.TupleNode) and isinstance(base_of(type_), RecordType):
            node = x.ListExpressionNode(node.items, position=node.position)
        value = self.as_type(node, scope, type_)
        return self._ready(lambda: ExactMatcher(value.run()), value.constant)

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
