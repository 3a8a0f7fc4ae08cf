"""The syntax tree of a P4_16 program, as the grammar of the specification (appendix H) has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.reference.tokens import Position, SourceToken

NOWHERE = Position("", 0)


@dataclass
class SyntaxNode:
    """Anything of the tree."""

    position: Position = field(default=NOWHERE, kw_only=True)


@dataclass
class AnnotationNode(SyntaxNode):
    """@name(...) with its tokens, which only those who know the annotation can read."""

    name: str
    tokens: list[SourceToken]


# ---- Types ----


@dataclass
class TypeNode(SyntaxNode):
    """A type as it is written."""


@dataclass
class BitsTypeNode(TypeNode):
    """bit<W>, int<W> or varbit<W>."""

    kind: str
    width: ExpressionNode


@dataclass
class NamedTypeNode(TypeNode):
    """A name, perhaps with type arguments: bool, ipv4_t, pair<bit<8>>, tuple<...>, list<...>, _."""

    name: str
    arguments: list[TypeNode] = field(default_factory=list)


@dataclass
class StackTypeNode(TypeNode):
    """T[N]"""

    element: TypeNode
    size: ExpressionNode


# ---- Expressions ----


@dataclass
class ExpressionNode(SyntaxNode):
    """Anything that has a value."""


@dataclass
class NumberNode(ExpressionNode):
    """width: None for a number of arbitrary precision."""

    value: int
    width: int | None
    signed: bool


@dataclass
class BooleanNode(ExpressionNode):
    value: bool


@dataclass
class StringNode(ExpressionNode):
    value: str


@dataclass
class NameNode(ExpressionNode):
    """absolute: written with a leading dot."""

    name: str
    absolute: bool = False


@dataclass
class TypeNameNode(ExpressionNode):
    """A type with arguments where an expression may be: pair<bit<8>> in a constructor call."""

    type: TypeNode


@dataclass
class MemberNode(ExpressionNode):
    base: ExpressionNode
    name: str


@dataclass
class IndexNode(ExpressionNode):
    base: ExpressionNode
    index: ExpressionNode


@dataclass
class SliceNode(ExpressionNode):
    """base[high:low]; from_low: base[low+:width], where high is the width."""

    base: ExpressionNode
    high: ExpressionNode
    low: ExpressionNode
    from_low: bool = False


@dataclass
class UnaryNode(ExpressionNode):
    operator: str
    operand: ExpressionNode


@dataclass
class BinaryNode(ExpressionNode):
    operator: str
    left: ExpressionNode
    right: ExpressionNode


@dataclass
class ConditionalNode(ExpressionNode):
    condition: ExpressionNode
    then: ExpressionNode
    other: ExpressionNode


@dataclass
class CastNode(ExpressionNode):
    type: TypeNode
    operand: ExpressionNode


@dataclass
class ListExpressionNode(ExpressionNode):
    """{a, b} or {a = x, b = y}; rest: it ends with `...`."""

    items: list[ExpressionNode]
    names: list[str] | None = None
    rest: bool = False


@dataclass
class InvalidHeaderNode(ExpressionNode):
    """{#}"""


@dataclass
class DotsNode(ExpressionNode):
    """... as a whole: the default value of a type."""


@dataclass
class AnythingNode(ExpressionNode):
    """_ or `default`, in a set or as an argument."""


@dataclass
class TupleNode(ExpressionNode):
    """(a, b) of sets, in a select or in an entry."""

    items: list[ExpressionNode]


@dataclass
class ArgumentNode(SyntaxNode):
    name: str | None
    value: ExpressionNode


@dataclass
class CallNode(ExpressionNode):
    function: ExpressionNode
    type_arguments: list[TypeNode]
    arguments: list[ArgumentNode]


# ---- Statements ----


@dataclass
class StatementNode(SyntaxNode):
    """Anything that is done."""


@dataclass
class AssignmentNode(StatementNode):
    """operator: the one before `=`, as in +=; empty for a plain one."""

    target: ExpressionNode
    operator: str
    value: ExpressionNode


@dataclass
class CallStatementNode(StatementNode):
    call: CallNode


@dataclass
class IfNode(StatementNode):
    condition: ExpressionNode
    then: StatementNode
    other: StatementNode | None


@dataclass
class BlockNode(StatementNode):
    statements: list[SyntaxNode]


@dataclass
class ReturnNode(StatementNode):
    value: ExpressionNode | None


@dataclass
class ExitNode(StatementNode):
    pass


@dataclass
class BreakNode(StatementNode):
    pass


@dataclass
class ContinueNode(StatementNode):
    pass


@dataclass
class SwitchCaseNode(SyntaxNode):
    """label: None for default. body: None where the next one's is run."""

    label: ExpressionNode | None
    body: BlockNode | None


@dataclass
class SwitchNode(StatementNode):
    value: ExpressionNode
    cases: list[SwitchCaseNode]


@dataclass
class ForNode(StatementNode):
    initial: list[SyntaxNode]
    condition: ExpressionNode
    updates: list[StatementNode]
    body: StatementNode


@dataclass
class ForInNode(StatementNode):
    """type: None where a variable that exists already is used."""

    type: TypeNode | None
    name: str
    items: ExpressionNode
    body: StatementNode


# ---- Declarations ----


@dataclass
class DeclarationNode(SyntaxNode):
    name: str
    annotations: list[AnnotationNode] = field(default_factory=list, kw_only=True)


@dataclass
class ParameterNode(DeclarationNode):
    """direction: in, out, inout or empty."""

    direction: str
    type: TypeNode
    default: ExpressionNode | None = None


@dataclass
class ConstantNode(DeclarationNode):
    type: TypeNode
    value: ExpressionNode


@dataclass
class VariableNode(DeclarationNode):
    type: TypeNode
    value: ExpressionNode | None


@dataclass
class InstantiationNode(DeclarationNode):
    type: TypeNode
    arguments: list[ArgumentNode]


@dataclass
class ValueSetNode(DeclarationNode):
    type: TypeNode
    size: ExpressionNode


@dataclass
class FieldNode(DeclarationNode):
    type: TypeNode


@dataclass
class FieldsNode(DeclarationNode):
    """kind: struct, header or header_union."""

    kind: str
    type_parameters: list[str]
    fields: list[FieldNode]


@dataclass
class EnumNode(DeclarationNode):
    """type: of a serializable enum, whose members have values."""

    type: TypeNode | None
    members: list[tuple[str, ExpressionNode | None]]


@dataclass
class TypedefNode(DeclarationNode):
    """new: `type`, which is another type than what it is made of."""

    type: TypeNode
    new: bool


@dataclass
class MembersNode(DeclarationNode):
    """error or match_kind with further members."""

    members: list[str]


@dataclass
class FunctionNode(DeclarationNode):
    """body: None for one of an extern."""

    result: TypeNode
    type_parameters: list[str]
    parameters: list[ParameterNode]
    body: BlockNode | None


@dataclass
class ExternNode(DeclarationNode):
    type_parameters: list[str]
    methods: list[FunctionNode]


@dataclass
class ActionNode(DeclarationNode):
    parameters: list[ParameterNode]
    body: BlockNode


@dataclass
class ControlNode(DeclarationNode):
    """body: None for a type declaration, such as those of the architecture."""

    type_parameters: list[str]
    parameters: list[ParameterNode]
    constructor: list[ParameterNode]
    locals: list[SyntaxNode]
    body: BlockNode | None


@dataclass
class TransitionNode(SyntaxNode):
    """values: what is selected; empty for a plain transition. cases: sets and states."""

    values: list[ExpressionNode]
    cases: list[tuple[ExpressionNode, str]]


@dataclass
class StateNode(DeclarationNode):
    statements: list[SyntaxNode]
    transition: TransitionNode | None


@dataclass
class ParserNode(DeclarationNode):
    """states: None for a type declaration."""

    type_parameters: list[str]
    parameters: list[ParameterNode]
    constructor: list[ParameterNode]
    locals: list[SyntaxNode]
    states: list[StateNode] | None


@dataclass
class PackageNode(DeclarationNode):
    type_parameters: list[str]
    parameters: list[ParameterNode]


@dataclass
class KeyNode(SyntaxNode):
    value: ExpressionNode
    match: str
    annotations: list[AnnotationNode]


@dataclass
class ActionReferenceNode(SyntaxNode):
    """An action as a table lists it: a name, perhaps with arguments."""

    name: str
    arguments: list[ArgumentNode]
    annotations: list[AnnotationNode] = field(default_factory=list)


@dataclass
class EntryNode(SyntaxNode):
    keys: list[ExpressionNode]
    action: ActionReferenceNode
    priority: ExpressionNode | None
    constant: bool
    annotations: list[AnnotationNode] = field(default_factory=list)


@dataclass
class TableNode(DeclarationNode):
    """properties: those that are expressions, by name."""

    keys: list[KeyNode]
    actions: list[ActionReferenceNode]
    entries: list[EntryNode]
    properties: dict[str, ExpressionNode]


@dataclass
class ProgramNode:
    declarations: list[SyntaxNode]
