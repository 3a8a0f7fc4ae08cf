"""Expressions, and types as written. Each may contain the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.compiler.nodes import Node
from gradbed.switch.compiler.symbols import ParameterType, Symbol
from gradbed.switch.compiler.types import Type
from gradbed.switch.compiler.values import Constant


@dataclass(slots=True, eq=False)
class Expression(Node):
    """An expression."""

    type: Type | None = field(default=None, init=False)
    """Set by the checker."""
    value: Constant | None = field(default=None, init=False)
    """Value of an expression known at compile time, set by the checker."""


# ---- Types as written ----


@dataclass(slots=True, eq=False)
class TypeSyntax(Node):
    pass


@dataclass(slots=True, eq=False)
class BaseType(TypeSyntax):
    """bool, error, string, void, match_kind, int, bit, or bit<N>, int<N>, varbit<N>."""

    name: str
    width: Expression | None


@dataclass(slots=True, eq=False)
class NamedType(TypeSyntax):
    name: str
    absolute: bool
    arguments: list[TypeSyntax]


@dataclass(slots=True, eq=False)
class StackTypeSyntax(TypeSyntax):
    element: TypeSyntax
    size: Expression


@dataclass(slots=True, eq=False)
class TupleTypeSyntax(TypeSyntax):
    """A tuple or list type."""

    elements: list[TypeSyntax]
    is_list: bool = False
    """Whether it is list<T>."""


@dataclass(slots=True, eq=False)
class AnyTypeSyntax(TypeSyntax):
    """The type argument `_`."""


# ---- Expressions ----


@dataclass(slots=True, eq=False)
class IntLiteral(Expression):
    """An integer literal."""

    number: int
    width: int | None
    signed: bool
    base: int = 10  # as written
    """Base as written: 2, 8, 10 or 16."""


@dataclass(slots=True, eq=False)
class BoolLiteral(Expression):
    flag: bool


@dataclass(slots=True, eq=False)
class StringLiteral(Expression):
    text: str


@dataclass(slots=True, eq=False)
class Name(Expression):
    name: str
    absolute: bool = False
    symbol: Symbol | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Member(Expression):
    base: Expression
    name: str


@dataclass(slots=True, eq=False)
class Index(Expression):
    base: Expression
    index: Expression


@dataclass(slots=True, eq=False)
class Slice(Expression):
    """A slice of bits: base[high:low], or base[low+:high]."""

    base: Expression
    high: Expression
    """The highest bit, or the number of bits if `counts_up`."""
    low: Expression
    counts_up: bool = False
    """Whether it is base[low+:high]."""
    high_bit: int = field(default=0, init=False)
    """Set by the checker."""
    low_bit: int = field(default=0, init=False)
    """Set by the checker."""


@dataclass(slots=True, eq=False)
class Unary(Expression):
    operator: str
    operand: Expression


@dataclass(slots=True, eq=False)
class Binary(Expression):
    """A binary operation, or one of the sets `value &&& mask` and `first .. last`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(slots=True, eq=False)
class Conditional(Expression):
    condition: Expression
    if_true: Expression
    if_false: Expression


@dataclass(slots=True, eq=False)
class Cast(Expression):
    target: TypeSyntax
    operand: Expression


@dataclass(slots=True, eq=False)
class Convert(Expression):
    """An implicit conversion of `operand` to `type`, inserted by the checker."""

    operand: Expression


@dataclass(slots=True, eq=False)
class Argument(Node):
    name: str | None
    expression: Expression


@dataclass(slots=True, eq=False)
class Call(Expression):
    """A call of a function, method, action or constructor."""

    callee: Expression
    type_arguments: list[TypeSyntax]
    arguments: list[Argument]
    target: CallTarget | None = field(default=None, init=False)
    """The callee, set by the checker."""


@dataclass(slots=True, eq=False)
class TypeName(Expression):
    """A type in place of an expression: `Type(arguments)` or `Type.member`."""

    syntax: TypeSyntax


@dataclass(slots=True, eq=False)
class ListExpression(Expression):
    """A list expression: {a, b}."""

    items: list[Expression]
    with_defaults: bool = False
    """Whether it ends in `...`."""


@dataclass(slots=True, eq=False)
class StructExpression(Expression):
    """A structure-valued expression: {a = 1, b = 2}."""

    fields: list[tuple[str, Expression]]
    with_defaults: bool = False
    """Whether it ends in `...`."""


@dataclass(slots=True, eq=False)
class InvalidHeader(Expression):
    """The invalid header {#}."""


@dataclass(slots=True, eq=False)
class DefaultValue(Expression):
    """The initializer `...`."""


@dataclass(slots=True, eq=False)
class Wildcard(Expression):
    """`_` or `default` in a set, or `_` as an argument."""


@dataclass(slots=True, eq=False)
class CallTarget(Node):
    """The callee of a call."""

    kind: str
    """One of the kinds listed in checker/calls.py."""
    name: str
    parameters: list[ParameterType]
    """Parameters, with all type variables replaced."""
    bound: list[Expression | None]
    """Argument for each parameter; None for an absent one (a default value or `_`)."""
    return_type: Type
    declaration: object = None
    receiver: Expression | None = None
    """Object that the method is called on."""
