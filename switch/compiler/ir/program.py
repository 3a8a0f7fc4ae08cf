"""A lowered program: statements, parser states, tables and actions, with everything inlined.

Statements are structured: Leave ends a labelled block and Repeat starts it again, which covers return, exit, switch
and loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker import CheckedProgram
from gradbed.switch.compiler.ir.storage import Storage
from gradbed.switch.compiler.ir.values import Expr, ExternObject, FieldRef

# ---- Statements ----


DEFAULT_SIZE = 1024
NO_ACTION = "NoAction"
MAX_SIZE = 1 << 28


@dataclass(slots=True, eq=False)
class Label:
    """The name of a block."""

    name: str
    used: bool = False
    """Whether a statement leaves or repeats the block."""


@dataclass(slots=True, eq=False)
class LoweredStatement:
    """A statement, with its range in the source."""

    loc: int
    """First character (see source.py); 0 for a statement that the compiler adds."""
    end: int
    """Position after its last character."""


@dataclass(slots=True, eq=False)
class LoweredAssign(LoweredStatement):
    """An assignment to a field."""

    target: FieldRef
    value: Expr


@dataclass(slots=True, eq=False)
class LoweredPrimitive(LoweredStatement):
    """A BMv2 primitive. Parameters are values or references to named objects."""

    op: str
    parameters: tuple[Parameter, ...]


@dataclass(slots=True, frozen=True)
class Ref:
    """A named object as parameter of a primitive."""

    kind: str
    """Type in BMv2 JSON: header, header_stack, counter_array, calculation, ..."""
    name: str


@dataclass(slots=True, frozen=True)
class LoweredText:
    """A string as parameter of a primitive."""

    text: str


@dataclass(slots=True, frozen=True)
class LoweredVector:
    """A list of values as parameter of a primitive."""

    items: tuple[Expr, ...]


@dataclass(slots=True, frozen=True)
class LoweredNumber:
    """A constant that is part of a primitive, such as the number of a field list."""

    value: int


Parameter = Expr | Ref | LoweredText | LoweredVector | LoweredNumber


@dataclass(slots=True, eq=False)
class LoweredIf(LoweredStatement):
    """A conditional statement."""

    condition: Expr
    then: list[LoweredStatement]
    otherwise: list[LoweredStatement]


@dataclass(slots=True, eq=False)
class LoweredBlock(LoweredStatement):
    """A block that Leave and Repeat name by its label."""

    label: Label
    body: list[LoweredStatement]


@dataclass(slots=True, eq=False)
class Leave(LoweredStatement):
    """Continue after the block with this label."""

    label: Label


@dataclass(slots=True, eq=False)
class Repeat(LoweredStatement):
    """Continue at the start of the block with this label."""

    label: Label


@dataclass(slots=True, eq=False)
class LoweredEnd(LoweredStatement):
    """End the whole pipeline: what `exit` is lowered to."""


# ---- Parsers ----


@dataclass(slots=True, eq=False)
class LoweredExtract(LoweredStatement):
    """An extraction from the packet."""

    kind: str
    """regular (a header), stack, or union_stack."""
    name: str
    member: str = ""
    """Member of the union, for a union_stack."""
    length: Expr | None = None
    """Length of the varbit field in bits."""


@dataclass(slots=True, eq=False)
class LoweredLookahead(LoweredStatement):
    """An assignment of bits of the packet that are not extracted."""

    target: FieldRef
    offset_bits: int
    width_bits: int


@dataclass(slots=True, eq=False)
class LoweredAdvance(LoweredStatement):
    """A move of the parser's position, in bits."""

    bits: Expr


@dataclass(slots=True, eq=False)
class LoweredVerify(LoweredStatement):
    """A check that ends parsing with an error if it fails."""

    condition: Expr
    error: Expr


@dataclass(slots=True, eq=False)
class SubParser(LoweredStatement):
    """An inlined parser."""

    start: LoweredState
    """First state. The parser runs until one of its states accepts."""


@dataclass(slots=True, eq=False)
class Select:
    """A transition, with or without a select expression."""

    keys: list[Expr]
    """Empty for a transition straight to `default`."""
    cases: list[Case]
    default: Target
    has_default: bool = True
    default_at: tuple[int, int] = (0, 0)
    """Position and end of the default case in the source."""


@dataclass(slots=True, eq=False)
class Case:
    """A case of a select expression."""

    matches: list[tuple[int, int | None]]
    """Value and mask (None: all bits) for each key."""
    value_set: str
    """Name of the value set that is matched instead; otherwise empty."""
    target: Target
    at: tuple[int, int]
    """Position and end in the source."""


@dataclass(slots=True, eq=False)
class LoweredState:
    """A parser state."""

    name: str
    body: list[LoweredStatement]
    transition: Select | None = None
    loc: int = 0


Target = LoweredState | str  # a state, "accept" or "reject"


# ---- Tables ----


@dataclass(eq=False)
class LoweredParameter:
    """Action data that the control plane gives."""

    name: str
    type: t.Type
    """The type as declared."""
    annotations: list[s.Annotation]


@dataclass(eq=False)
class LoweredAction:
    """An action."""

    name: str
    parameters: list[LoweredParameter]
    body: list[LoweredStatement]
    """Straight code: assignments, primitives, branches and labelled blocks."""
    node: s.FunctionDeclaration
    """The declaration of the action."""


@dataclass(eq=False)
class LoweredKey:
    """A key of a table."""

    name: str
    match_kind: str
    target: FieldRef
    """The field that is matched."""
    type: t.Type
    """The type as declared."""
    annotations: list[s.Annotation]
    node: s.KeyElement


@dataclass(eq=False)
class TableAction:
    """An action in the list of a table."""

    action: LoweredAction
    annotations: list[s.Annotation]
    source_name: str
    """Name of the action in the program."""


@dataclass(frozen=True)
class LoweredKeyMatch:
    """A match of an entry on one key."""

    kind: str
    """value, mask, range or any."""
    first: int = 0
    second: int = 0
    """The mask, or the last value of the range."""


@dataclass(eq=False)
class LoweredEntry:
    """An initial entry of a table."""

    matches: list[LoweredKeyMatch]
    action: LoweredAction
    data: list[int]
    priority: int
    """Priority in BMv2 JSON, where the smallest number comes first."""
    node: s.TableEntry


@dataclass(eq=False)
class LoweredTable:
    """A table."""

    name: str
    node: s.TableDeclaration
    keys: list[LoweredKey] = field(default_factory=list)
    selectors: list[LoweredKey] = field(default_factory=list)
    actions: list[TableAction] = field(default_factory=list)
    default_action: LoweredAction | None = None
    default_data: list[int] = field(default_factory=list)
    default_const: bool = False
    entries: list[LoweredEntry] | None = None
    size: int | None = None
    counters: ExternObject | None = None
    meters: ExternObject | None = None
    implementation: ExternObject | None = None
    support_timeout: bool = False
    exit_flag: FieldRef | None = None
    """Variable that actions set at an exit, if the caller of the table still has values to copy out."""
    key_inputs: list[tuple[FieldRef, s.Expression]] = field(default_factory=list)
    """Variables that hold keys, and the expressions that are assigned to them before the table is applied."""

    def action_names(self) -> dict[str, str]:
        """Map the names of the actions in the program to their names in the control plane."""
        return {item.source_name: item.action.name for item in self.actions}


@dataclass(slots=True, eq=False)
class Apply(LoweredStatement):
    """An application of a table, followed by the branch for its outcome."""

    table: LoweredTable
    kind: str = "action"
    """"hit" or "action"."""
    branches: dict[str, list[LoweredStatement]] = field(default_factory=dict)
    """By outcome: "hit" and "miss", or the name of the action, with "" for all others."""


# ---- The program ----


@dataclass(frozen=True)
class LoweredCalculation:
    """A calculation of BMv2 JSON: an algorithm over fields."""

    name: str
    algorithm: str
    inputs: list[Expr]
    with_payload: bool
    loc: int
    end: int


@dataclass(frozen=True)
class LoweredChecksum:
    """A checksum that is verified or updated."""

    target: FieldRef
    calculation: str
    verify: bool
    condition: Expr
    loc: int
    end: int


@dataclass(frozen=True)
class LoweredDigest:
    """A digest message type."""

    number: int
    name: str
    type: t.Type
    fields: list[FieldRef]
    loc: int
    end: int


@dataclass(frozen=True)
class LoweredValueSet:
    """A parser value set."""

    name: str
    type: t.Type
    size: int
    node: s.ValueSetDeclaration


@dataclass(frozen=True)
class LoweredPipeline:
    """A pipeline."""

    name: str
    """ingress or egress."""
    body: list[LoweredStatement]
    node: s.ControlDeclaration


@dataclass
class LoweredProgram:
    """A whole program, as lowering hands it to the emitters."""

    checked: CheckedProgram
    storage: Storage
    headers: t.Type
    metadata: t.Type
    parser_start: LoweredState
    parser_node: s.ParserDeclaration
    pipelines: list[LoweredPipeline]
    deparser_order: list[str]
    """Names of headers in the order in which they are emitted."""
    deparser_primitives: list[LoweredStatement]
    deparser_node: s.ControlDeclaration
    checksums: list[LoweredChecksum]
    tables: list[LoweredTable]
    actions: list[LoweredAction]
    called_actions: list[LoweredAction]
    """Actions that controls call themselves."""
    objects: list[ExternObject]
    calculations: list[LoweredCalculation]
    digests: list[LoweredDigest]
    value_sets: list[LoweredValueSet]
    field_lists: list[tuple[int, str, list[FieldRef]]]
    """Number, name and fields of each list."""
    direct_tables: dict[str, LoweredTable]
    """Table of each direct counter and meter, by the name of the extern."""
    direct_meter_results: dict[str, FieldRef]
    """Field that each direct meter writes its colour to, by the name of the meter."""
