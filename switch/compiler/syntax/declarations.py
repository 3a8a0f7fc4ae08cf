"""Statements and declarations, and walk() over all of a tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradbed.switch.compiler.nodes import Annotation, Declaration, Node, Statement
from gradbed.switch.compiler.symbols import ParameterType, Symbol
from gradbed.switch.compiler.syntax.expressions import Argument, Binary, Call, CallTarget, Expression, TypeSyntax
from gradbed.switch.compiler.types import Type

# ---- Statements ----


@dataclass(slots=True, eq=False)
class Assignment(Statement):
    """An assignment, simple or compound."""

    target: Expression
    operator: str
    """"=" or the binary operator of a compound assignment."""
    source: Expression
    """Converted to the type of the target by the checker."""
    compound: Binary | None = field(default=None, init=False)
    """The expression `target operator source` of a compound assignment, set by the checker."""


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
    """A case of a switch statement."""

    label: Expression | None
    """None for default."""
    body: Block | None
    """None to fall through to the next case."""


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
    """for (type name in collection) body"""

    variable: VariableDeclaration
    collection: Expression
    """A range, a list or a header stack."""
    body: Statement


# ---- Declarations ----


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
class StructField(Node):
    annotations: list[Annotation]
    type: TypeSyntax
    name: str


@dataclass(slots=True, eq=False)
class StructDeclaration(Declaration):
    """A struct, header or header union."""

    kind: str
    """struct, header or header_union."""
    type_parameters: list[str]
    fields: list[StructField]


@dataclass(slots=True, eq=False)
class EnumMember(Node):
    name: str
    value: Expression | None


@dataclass(slots=True, eq=False)
class EnumDeclaration(Declaration):
    """An enum."""

    underlying: TypeSyntax | None
    """Underlying type of a serializable enum."""
    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class ErrorDeclaration(Declaration):
    """error { ... } or match_kind { ... }; `name` is the keyword."""

    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class TypedefDeclaration(Declaration):
    """A typedef, or the introduction of a new type."""

    is_new: bool
    """Whether the keyword is `type`."""
    type: TypeSyntax | StructDeclaration


@dataclass(slots=True, eq=False)
class FunctionDeclaration(Declaration):
    """A function, an action, or an extern function or method."""

    type_parameters: list[str]
    return_type: TypeSyntax | None
    """None for an action."""
    parameters: list[Parameter]
    body: Block | None
    """None for an extern function or method."""
    # Filled in by the checker for actions and functions.
    signature: list[ParameterType] = field(default_factory=list, init=False)
    """Set by the checker for functions and actions."""
    result: Type | None = field(default=None, init=False)
    """Return type, set by the checker for functions."""


@dataclass(slots=True, eq=False)
class ExternDeclaration(Declaration):
    """An extern object type."""

    type_parameters: list[str]
    methods: list[FunctionDeclaration]
    """Methods and constructors; a constructor has the name of the extern."""


@dataclass(slots=True, eq=False)
class SelectCase(Node):
    label: Expression
    state: str


@dataclass(slots=True, eq=False)
class Transition(Node):
    """A transition statement."""

    keys: list[Expression] | None
    """Arguments of the select expression; None for a transition straight to `state`."""
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
    """A parser, or a parser type."""

    type_parameters: list[str]
    parameters: list[Parameter]
    constructor_parameters: list[Parameter]
    locals: list[Declaration]
    states: list[StateDeclaration] | None
    """None for a type."""
    signature: list[ParameterType] = field(default_factory=list, init=False)
    constructor_signature: list[ParameterType] = field(default_factory=list, init=False)


@dataclass(slots=True, eq=False)
class ControlDeclaration(Declaration):
    """A control, or a control type."""

    type_parameters: list[str]
    parameters: list[Parameter]
    constructor_parameters: list[Parameter]
    locals: list[Declaration]
    body: Block | None
    """None for a type."""
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
    """An action with arguments: in the list of a table, in default_action or in an entry."""

    annotations: list[Annotation]
    name: str
    absolute: bool
    arguments: list[Argument] | None
    action: FunctionDeclaration | None = field(default=None, init=False)
    """The declaration, set by the checker."""
    bound: list[Expression | None] = field(default_factory=list, init=False)
    """Argument for each parameter, set by the checker."""


@dataclass(slots=True, eq=False)
class TableEntry(Node):
    annotations: list[Annotation]
    is_const: bool
    priority: Expression | None
    keys: list[Expression]
    action: ActionRef


@dataclass(slots=True, eq=False)
class TableProperty(Node):
    """A property of a table other than key, actions and entries."""

    annotations: list[Annotation]
    is_const: bool
    name: str
    value: Expression | ActionRef
    """An ActionRef for default_action."""


@dataclass(slots=True, eq=False)
class TableDeclaration(Declaration):
    """A table."""

    key: list[KeyElement]
    actions: list[ActionRef]
    entries: list[TableEntry] | None
    entries_const: bool
    properties: list[TableProperty]
    symbol: Symbol | None = field(default=None, init=False)

    def property(self, name: str) -> TableProperty | None:
        """Return the property of this name, if the table has it."""
        return next((item for item in self.properties if item.name == name), None)


@dataclass(slots=True, eq=False)
class P4Program(Node):
    declarations: list[Declaration]


# ---- Traversal ----


def walk(node: object) -> Iterator[Node]:
    """Yield the node and everything below it that the parser read, in no particular order."""
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
    """Return the fields that hold nodes of the parser, for each kind of node."""
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
