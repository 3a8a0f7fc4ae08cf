"""The syntax tree: P4_16 as the parser read it.

Every node has `loc` (its first character) and `end` (just behind its last), see source.py. What the type checker
finds out about an expression stands in the fields `type`, `value` and `symbol`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from switch.compiler.symbols import Symbol
    from switch.compiler.types import Type
    from switch.compiler.values import Constant


@dataclass(slots=True, eq=False)
class Node:
    loc: int
    end: int


@dataclass(slots=True, eq=False)
class Annotation(Node):
    """@name, @name(body) or @name[body]; `body` is its tokens' texts, None if there is none.

    `spaced` is the body as it was spaced in the source.
    """

    name: str
    body: list[str] | None
    spaced: str

    def string(self) -> str | None:
        """The argument, if it is one string."""
        if self.body and all(part.startswith('"') for part in self.body):
            return "".join(unquote(part) for part in self.body)
        return None

    def __str__(self) -> str:
        return f"@{self.name}" if self.body is None else f"@{self.name}({self.spaced})"


def unquote(literal: str) -> str:
    """The text of a string literal."""
    return literal[1:-1].replace('\\"', '"').replace("\\\\", "\\")


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
class Expression(Node):
    """`effects`: whether evaluating it can change something; filled in by lowering."""

    type: Type | None = field(default=None, init=False)
    value: Constant | None = field(default=None, init=False)
    effects: bool | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class IntLiteral(Expression):
    number: int
    width: int | None
    signed: bool


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
    """base[high:low]; after checking, `high_bit` and `low_bit` are the numbers."""

    base: Expression
    high: Expression
    low: Expression
    high_bit: int = field(default=0, init=False)
    low_bit: int = field(default=0, init=False)


@dataclass(slots=True, eq=False)
class Unary(Expression):
    operator: str
    operand: Expression


@dataclass(slots=True, eq=False)
class Binary(Expression):
    """Also the sets `value &&& mask` and `first .. last`."""

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


@dataclass(slots=True, eq=False)
class ParameterType(Node):
    """A parameter with its resolved type. `direction`: in, out, inout or "" (directionless)."""

    name: str
    direction: str
    type: Type
    default: Expression | None
    symbol: Symbol
    node: Parameter


# --- statements ---


@dataclass(slots=True, eq=False)
class Statement(Node):
    pass


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
class For(Statement):
    """for (initial; condition; update) body"""

    initial: list[Statement]
    condition: Expression
    update: list[Statement]
    body: Statement


@dataclass(slots=True, eq=False)
class ForIn(Statement):
    """for (type name in collection) body; collection is a range or a header stack."""

    variable: VariableDeclaration
    collection: Expression
    body: Statement


# --- declarations (those that may stand in a block are statements too) ---


@dataclass(slots=True, eq=False)
class Declaration(Statement):
    annotations: list[Annotation]
    name: str
    name_loc: int


@dataclass(slots=True, eq=False)
class VariableDeclaration(Declaration):
    type: TypeSyntax
    initial: Expression | None
    symbol: Symbol | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ConstantDeclaration(Declaration):
    type: TypeSyntax
    initial: Expression


@dataclass(slots=True, eq=False)
class Instantiation(Declaration):
    """Type(arguments) name;"""

    type: TypeSyntax
    arguments: list[Argument]
    call: Call | None = field(default=None, init=False)
    symbol: Symbol | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Parameter(Node):
    annotations: list[Annotation]
    direction: str
    type: TypeSyntax
    name: str
    default: Expression | None


@dataclass(slots=True, eq=False)
class Field(Node):
    annotations: list[Annotation]
    type: TypeSyntax
    name: str


@dataclass(slots=True, eq=False)
class StructDeclaration(Declaration):
    """kind: struct, header or header_union"""

    kind: str
    type_parameters: list[str]
    fields: list[Field]


@dataclass(slots=True, eq=False)
class EnumMember(Node):
    name: str
    value: Expression | None


@dataclass(slots=True, eq=False)
class EnumDeclaration(Declaration):
    """`underlying` is there for a serialisable enum."""

    underlying: TypeSyntax | None
    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class ErrorDeclaration(Declaration):
    """error { ... } or match_kind { ... }, whose `name` says which"""

    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class TypedefDeclaration(Declaration):
    """typedef, or `type` with `is_new`"""

    is_new: bool
    type: TypeSyntax | StructDeclaration


@dataclass(slots=True, eq=False)
class FunctionDeclaration(Declaration):
    """A function, an extern function or method (no body), or an action (`return_type` None)."""

    type_parameters: list[str]
    return_type: TypeSyntax | None
    parameters: list[Parameter]
    body: Block | None
    # Filled in by the checker for actions and functions.
    signature: list[ParameterType] = field(default_factory=list, init=False)
    result: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ExternDeclaration(Declaration):
    """`methods` include the constructors, whose name is the extern's."""

    type_parameters: list[str]
    methods: list[FunctionDeclaration]


@dataclass(slots=True, eq=False)
class SelectCase(Node):
    label: Expression
    state: str


@dataclass(slots=True, eq=False)
class Transition(Node):
    """`keys` None: transition straight to `state`."""

    keys: list[Expression] | None
    cases: list[SelectCase]
    state: str


@dataclass(slots=True, eq=False)
class StateDeclaration(Declaration):
    statements: list[Statement]
    transition: Transition | None


@dataclass(slots=True, eq=False)
class ValueSetDeclaration(Declaration):
    type: TypeSyntax
    size: Expression
    symbol: Symbol | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ParserDeclaration(Declaration):
    """A parser, or the type of one (`states` None)."""

    type_parameters: list[str]
    parameters: list[Parameter]
    constructor_parameters: list[Parameter]
    locals: list[Declaration]
    states: list[StateDeclaration] | None
    signature: list[ParameterType] = field(default_factory=list, init=False)
    constructor_signature: list[ParameterType] = field(default_factory=list, init=False)


@dataclass(slots=True, eq=False)
class ControlDeclaration(Declaration):
    """A control, or the type of one (`body` None)."""

    type_parameters: list[str]
    parameters: list[Parameter]
    constructor_parameters: list[Parameter]
    locals: list[Declaration]
    body: Block | None
    signature: list[ParameterType] = field(default_factory=list, init=False)
    constructor_signature: list[ParameterType] = field(default_factory=list, init=False)


@dataclass(slots=True, eq=False)
class PackageDeclaration(Declaration):
    type_parameters: list[str]
    parameters: list[Parameter]


@dataclass(slots=True, eq=False)
class KeyElement(Node):
    annotations: list[Annotation]
    expression: Expression
    match_kind: str


@dataclass(slots=True, eq=False)
class ActionRef(Node):
    """An action in a table's list, in default_action or in an entry, with the arguments given there."""

    annotations: list[Annotation]
    name: str
    absolute: bool
    arguments: list[Argument] | None
    action: FunctionDeclaration | None = field(default=None, init=False)
    bound: list[Expression | None] = field(default_factory=list, init=False)


@dataclass(slots=True, eq=False)
class TableEntry(Node):
    annotations: list[Annotation]
    is_const: bool
    priority: Expression | None
    keys: list[Expression]
    action: ActionRef


@dataclass(slots=True, eq=False)
class TableProperty(Node):
    """Any property but key, actions and entries; default_action's value is an ActionRef."""

    annotations: list[Annotation]
    is_const: bool
    name: str
    value: Expression | ActionRef


@dataclass(slots=True, eq=False)
class TableDeclaration(Declaration):
    key: list[KeyElement]
    actions: list[ActionRef]
    entries: list[TableEntry] | None
    entries_const: bool
    properties: list[TableProperty]
    symbol: Symbol | None = field(default=None, init=False)

    def property(self, name: str) -> TableProperty | None:
        return next((item for item in self.properties if item.name == name), None)


@dataclass(slots=True, eq=False)
class Program(Node):
    declarations: list[Declaration]


def find_annotation(annotations: list[Annotation], name: str) -> Annotation | None:
    return next((item for item in annotations if item.name == name), None)


def walk(node: object) -> Iterator[Node]:
    """The node and everything below it that the parser read, in no particular order."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, (list, tuple)):
            pending.extend(current)
        elif isinstance(current, Node):
            yield current
            if not isinstance(current, (CallTarget, ParameterType)):
                pending.extend(getattr(current, name) for name in _CHILDREN.get(type(current), ()))


def _child_fields() -> dict[type, tuple[str, ...]]:
    """For each kind of node the fields that hold nodes the parser read."""
    found: dict[type, tuple[str, ...]] = {}
    pending: list[type] = [Node]
    while pending:
        kind = pending.pop()
        pending.extend(kind.__subclasses__())
        found[kind] = tuple(
            item.name for item in dataclasses.fields(kind) if item.init and item.name not in ("loc", "end")
        )
    return found


_CHILDREN = _child_fields()
