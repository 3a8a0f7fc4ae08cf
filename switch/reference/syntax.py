"""The syntax tree of a P4_16 program, as the grammar of the specification (appendix H) has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.reference.tokens import Position, Token

NOWHERE = Position("", 0)


@dataclass
class Node:
    """Anything of the tree."""

    position: Position = field(default=NOWHERE, kw_only=True)


@dataclass
class Annotation(Node):
    """@name(...) with its tokens, which only those who know the annotation can read."""

    name: str
    tokens: list[Token]


# ---- Types ----


@dataclass
class TypeNode(Node):
    """A type as it is written."""


@dataclass
class BitsNode(TypeNode):
    """bit<W>, int<W> or varbit<W>."""

    kind: str
    width: Expression


@dataclass
class NamedNode(TypeNode):
    """A name, perhaps with type arguments: bool, ipv4_t, pair<bit<8>>, tuple<...>, list<...>, _."""

    name: str
    arguments: list[TypeNode] = field(default_factory=list)


@dataclass
class StackNode(TypeNode):
    """T[N]"""

    element: TypeNode
    size: Expression


# ---- Expressions ----


@dataclass
class Expression(Node):
    """Anything that has a value."""


@dataclass
class Number(Expression):
    """width: None for a number of arbitrary precision."""

    value: int
    width: int | None
    signed: bool


@dataclass
class Boolean(Expression):
    value: bool


@dataclass
class String(Expression):
    value: str


@dataclass
class Name(Expression):
    """absolute: written with a leading dot."""

    name: str
    absolute: bool = False


@dataclass
class TypeName(Expression):
    """A type with arguments where an expression may be: pair<bit<8>> in a constructor call."""

    type: TypeNode


@dataclass
class Member(Expression):
    base: Expression
    name: str


@dataclass
class Index(Expression):
    base: Expression
    index: Expression


@dataclass
class Slice(Expression):
    """base[high:low]; from_low: base[low+:width], where high is the width."""

    base: Expression
    high: Expression
    low: Expression
    from_low: bool = False


@dataclass
class Unary(Expression):
    operator: str
    operand: Expression


@dataclass
class Binary(Expression):
    operator: str
    left: Expression
    right: Expression


@dataclass
class Conditional(Expression):
    condition: Expression
    then: Expression
    other: Expression


@dataclass
class Cast(Expression):
    type: TypeNode
    operand: Expression


@dataclass
class ListExpression(Expression):
    """{a, b} or {a = x, b = y}; rest: it ends with `...`."""

    items: list[Expression]
    names: list[str] | None = None
    rest: bool = False


@dataclass
class InvalidHeader(Expression):
    """{#}"""


@dataclass
class Dots(Expression):
    """... as a whole: the default value of a type."""


@dataclass
class Anything(Expression):
    """_ or `default`, in a set or as an argument."""


@dataclass
class Tuple(Expression):
    """(a, b) of sets, in a select or in an entry."""

    items: list[Expression]


@dataclass
class Argument(Node):
    name: str | None
    value: Expression


@dataclass
class Call(Expression):
    function: Expression
    type_arguments: list[TypeNode]
    arguments: list[Argument]


# ---- Statements ----


@dataclass
class Statement(Node):
    """Anything that is done."""


@dataclass
class Assignment(Statement):
    """operator: the one before `=`, as in +=; empty for a plain one."""

    target: Expression
    operator: str
    value: Expression


@dataclass
class CallStatement(Statement):
    call: Call


@dataclass
class If(Statement):
    condition: Expression
    then: Statement
    other: Statement | None


@dataclass
class Block(Statement):
    statements: list[Node]


@dataclass
class Return(Statement):
    value: Expression | None


@dataclass
class Exit(Statement):
    pass


@dataclass
class Break(Statement):
    pass


@dataclass
class Continue(Statement):
    pass


@dataclass
class SwitchCase(Node):
    """label: None for default. body: None where the next one's is run."""

    label: Expression | None
    body: Block | None


@dataclass
class Switch(Statement):
    value: Expression
    cases: list[SwitchCase]


@dataclass
class For(Statement):
    initial: list[Node]
    condition: Expression
    updates: list[Statement]
    body: Statement


@dataclass
class ForIn(Statement):
    """type: None where a variable that exists already is used."""

    type: TypeNode | None
    name: str
    items: Expression
    body: Statement


# ---- Declarations ----


@dataclass
class Declaration(Node):
    name: str
    annotations: list[Annotation] = field(default_factory=list, kw_only=True)


@dataclass
class Parameter(Declaration):
    """direction: in, out, inout or empty."""

    direction: str
    type: TypeNode
    default: Expression | None = None


@dataclass
class Constant(Declaration):
    type: TypeNode
    value: Expression


@dataclass
class Variable(Declaration):
    type: TypeNode
    value: Expression | None


@dataclass
class Instantiation(Declaration):
    type: TypeNode
    arguments: list[Argument]


@dataclass
class ValueSet(Declaration):
    type: TypeNode
    size: Expression


@dataclass
class Field(Declaration):
    type: TypeNode


@dataclass
class Fields(Declaration):
    """kind: struct, header or header_union."""

    kind: str
    type_parameters: list[str]
    fields: list[Field]


@dataclass
class Enum(Declaration):
    """type: of a serializable enum, whose members have values."""

    type: TypeNode | None
    members: list[tuple[str, Expression | None]]


@dataclass
class Typedef(Declaration):
    """new: `type`, which is another type than what it is made of."""

    type: TypeNode
    new: bool


@dataclass
class Members(Declaration):
    """error or match_kind with further members."""

    members: list[str]


@dataclass
class Function(Declaration):
    """body: None for one of an extern."""

    result: TypeNode
    type_parameters: list[str]
    parameters: list[Parameter]
    body: Block | None


@dataclass
class Extern(Declaration):
    type_parameters: list[str]
    methods: list[Function]


@dataclass
class Action(Declaration):
    parameters: list[Parameter]
    body: Block


@dataclass
class Control(Declaration):
    """body: None for a type declaration, such as those of the architecture."""

    type_parameters: list[str]
    parameters: list[Parameter]
    constructor: list[Parameter]
    locals: list[Node]
    body: Block | None


@dataclass
class Transition(Node):
    """values: what is selected; empty for a plain transition. cases: sets and states."""

    values: list[Expression]
    cases: list[tuple[Expression, str]]


@dataclass
class State(Declaration):
    statements: list[Node]
    transition: Transition | None


@dataclass
class Parser(Declaration):
    """states: None for a type declaration."""

    type_parameters: list[str]
    parameters: list[Parameter]
    constructor: list[Parameter]
    locals: list[Node]
    states: list[State] | None


@dataclass
class Package(Declaration):
    type_parameters: list[str]
    parameters: list[Parameter]


@dataclass
class Key(Node):
    value: Expression
    match: str
    annotations: list[Annotation]


@dataclass
class ActionReference(Node):
    """An action as a table lists it: a name, perhaps with arguments."""

    name: str
    arguments: list[Argument]
    annotations: list[Annotation] = field(default_factory=list)


@dataclass
class Entry(Node):
    keys: list[Expression]
    action: ActionReference
    priority: Expression | None
    constant: bool
    annotations: list[Annotation] = field(default_factory=list)


@dataclass
class Table(Declaration):
    """properties: those that are expressions, by name."""

    keys: list[Key]
    actions: list[ActionReference]
    entries: list[Entry]
    properties: dict[str, Expression]


@dataclass
class Program:
    declarations: list[Node]
