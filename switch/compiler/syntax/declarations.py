"""Declarations; those that may stand in a block are statements too."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.compiler.nodes import Annotation, Declaration, Node, Statement
from gradbed.switch.compiler.symbols import ParameterType, Symbol
from gradbed.switch.compiler.syntax.expressions import Argument, Call, Expression, TypeSyntax
from gradbed.switch.compiler.syntax.statements import Block
from gradbed.switch.compiler.types import Type


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
    """kind: struct, header or header_union"""

    kind: str
    type_parameters: list[str]
    fields: list[StructField]


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
class P4Program(Node):
    declarations: list[Declaration]
