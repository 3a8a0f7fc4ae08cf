"""Expressions, and types as written: each may hold the other.

What the type checker finds out about an expression stands in `type`, `value` and `symbol`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.compiler.nodes import Node
from gradbed.switch.compiler.symbols import ParameterType, Symbol
from gradbed.switch.compiler.types import Type
from gradbed.switch.compiler.values import Constant


@dataclass(slots=True, eq=False)
class Expression(Node):
    type: Type | None = field(default=None, init=False)
    value: Constant | None = field(default=None, init=False)


# --- types as written ---


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
    """tuple<...>, or list<T> with `is_list`."""

    elements: list[TypeSyntax]
    is_list: bool = False


@dataclass(slots=True, eq=False)
class AnyTypeSyntax(TypeSyntax):
    """The type argument `_`."""


# --- expressions ---


@dataclass(slots=True, eq=False)
class IntLiteral(Expression):
    number: int
    width: int | None
    signed: bool
    base: int = 10  # as written


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
    """base[high:low]; after checking, `high_bit` and `low_bit` are the numbers. counts_up: base[low+:high], where
    `high` is how many bits there are."""

    base: Expression
    high: Expression
    low: Expression
    counts_up: bool = False
    high_bit: int = field(default=0, init=False)
    low_bit: int = field(default=0, init=False)


@dataclass(slots=True, eq=False)
class Unary(Expression):
    operator: str
    operand: Expression


@dataclass(slots=True, eq=False)
class Binary(Expression):
    """An operation on two operands; also the sets `value &&& mask` and `first .. last`."""

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
    """An implicit conversion, put in by the type checker: `operand` seen as `type`."""

    operand: Expression


@dataclass(slots=True, eq=False)
class Argument(Node):
    name: str | None
    expression: Expression


@dataclass(slots=True, eq=False)
class Call(Expression):
    """A function, method, action or constructor call; `target` says which, after checking."""

    callee: Expression
    type_arguments: list[TypeSyntax]
    arguments: list[Argument]
    target: CallTarget | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class TypeName(Expression):
    """A type where an expression stands: `Type(arguments)` or `Type.member`."""

    syntax: TypeSyntax


@dataclass(slots=True, eq=False)
class ListExpression(Expression):
    """{a, b}; `with_defaults`: it ends in `...`."""

    items: list[Expression]
    with_defaults: bool = False


@dataclass(slots=True, eq=False)
class StructExpression(Expression):
    """{a = 1, b = 2}; `with_defaults`: it ends in `...`."""

    fields: list[tuple[str, Expression]]
    with_defaults: bool = False


@dataclass(slots=True, eq=False)
class InvalidHeader(Expression):
    """{#}"""


@dataclass(slots=True, eq=False)
class DefaultValue(Expression):
    """... as an initialiser"""


@dataclass(slots=True, eq=False)
class Wildcard(Expression):
    """`_` or `default` in a set, `_` as an argument."""


@dataclass(slots=True, eq=False)
class CallTarget(Node):
    """What a call means. `kind`: see checker/calls.py. `parameters` with all type variables replaced.

    `bound`: for each parameter its argument, None where an argument is absent (default value or `_`).
    """

    kind: str
    name: str
    parameters: list[ParameterType]
    bound: list[Expression | None]
    return_type: Type
    declaration: object = None
    receiver: Expression | None = None
