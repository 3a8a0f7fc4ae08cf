"""Statements."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.compiler.nodes import Annotation, Declaration, Node, Statement
from gradbed.switch.compiler.symbols import Symbol
from gradbed.switch.compiler.syntax.expressions import Binary, Expression, TypeSyntax


@dataclass(slots=True, eq=False)
class Assignment(Statement):
    """`operator` is "=" or the binary operator of a compound assignment.

    After checking, `compound` is then `target operator source`, and `source` the same converted to the target's type.
    """

    target: Expression
    operator: str
    source: Expression
    compound: Binary | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class CallStatement(Statement):
    call: Expression


@dataclass(slots=True, eq=False)
class If(Statement):
    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclass(slots=True, eq=False)
class SwitchCase(Node):
    """`label` None is default; `body` None falls through to the next case."""

    label: Expression | None
    body: Block | None


@dataclass(slots=True, eq=False)
class Switch(Statement):
    expression: Expression
    cases: list[SwitchCase]


@dataclass(slots=True, eq=False)
class Block(Statement):
    annotations: list[Annotation]
    statements: list[Statement]


@dataclass(slots=True, eq=False)
class Return(Statement):
    value: Expression | None


@dataclass(slots=True, eq=False)
class Exit(Statement):
    pass


@dataclass(slots=True, eq=False)
class Empty(Statement):
    pass


@dataclass(slots=True, eq=False)
class Break(Statement):
    pass


@dataclass(slots=True, eq=False)
class Continue(Statement):
    pass


@dataclass(slots=True, eq=False)
class VariableDeclaration(Declaration):
    type: TypeSyntax
    initial: Expression | None
    symbol: Symbol | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class For(Statement):
    """for (initial; condition; update) body"""

    initial: list[Statement]
    condition: Expression
    update: list[Statement]
    body: Statement


@dataclass(slots=True, eq=False)
class ForIn(Statement):
    """for (type name in collection) body; collection is a range, a list or a header stack."""

    variable: VariableDeclaration
    collection: Expression
    body: Statement
