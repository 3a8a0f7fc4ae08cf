"""Statements of the code between the syntax tree and BMv2 JSON, parser states, tables and actions.

Statements are structured: blocks with labels are left by Leave and repeated by Repeat, which covers return, exit,
switch and loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir.expressions import Expr, FieldRef
from gradbed.switch.compiler.ir.places import ExternObject

DEFAULT_SIZE = 1024
NO_ACTION = "NoAction"
MAX_SIZE = 1 << 28


@dataclass(slots=True, eq=False)
class Label:
    """Names a block. `used`: something leaves or repeats it."""

    name: str
    used: bool = False


@dataclass(slots=True, eq=False)
class LoweredStatement:
    """`loc` and `end`: the source it comes from; 0 if there is none."""

    loc: int
    end: int


@dataclass(slots=True, eq=False)
class LoweredAssign(LoweredStatement):
    target: FieldRef
    value: Expr


@dataclass(slots=True, eq=False)
class LoweredPrimitive(LoweredStatement):
    """A BMv2 primitive. Parameters are values or references to named objects."""

    op: str
    parameters: tuple[Parameter, ...]


@dataclass(slots=True, frozen=True)
class Ref:
    """A named object as parameter; kind: header, header_stack, counter_array, calculation, ..."""

    kind: str
    name: str


@dataclass(slots=True, frozen=True)
class LoweredText:
    text: str


@dataclass(slots=True, frozen=True)
class LoweredVector:
    items: tuple[Expr, ...]


@dataclass(slots=True, frozen=True)
class LoweredNumber:
    """A constant that is part of the primitive's form, such as a field list's number."""

    value: int


Parameter = Expr | Ref | LoweredText | LoweredVector | LoweredNumber


@dataclass(slots=True, eq=False)
class LoweredIf(LoweredStatement):
    condition: Expr
    then: list[LoweredStatement]
    otherwise: list[LoweredStatement]


@dataclass(slots=True, eq=False)
class LoweredBlock(LoweredStatement):
    label: Label
    body: list[LoweredStatement]


@dataclass(slots=True, eq=False)
class Leave(LoweredStatement):
    """Go on behind the block with this label."""

    label: Label


@dataclass(slots=True, eq=False)
class Repeat(LoweredStatement):
    """Go on at the start of the block with this label."""

    label: Label


@dataclass(slots=True, eq=False)
class LoweredEnd(LoweredStatement):
    """The end of the whole pipeline (what `exit` comes to)."""


# --- parsers ---


@dataclass(slots=True, eq=False)
class LoweredExtract(LoweredStatement):
    """kind: regular (header), stack (stack) or union_stack (stack, member). `length`: of the varbit, in bits."""

    kind: str
    name: str
    member: str = ""
    length: Expr | None = None


@dataclass(slots=True, eq=False)
class LoweredLookahead(LoweredStatement):
    target: FieldRef
    offset_bits: int
    width_bits: int


@dataclass(slots=True, eq=False)
class LoweredAdvance(LoweredStatement):
    bits: Expr


@dataclass(slots=True, eq=False)
class LoweredVerify(LoweredStatement):
    condition: Expr
    error: Expr


@dataclass(slots=True, eq=False)
class SubParser(LoweredStatement):
    """An inlined parser: run from `start` until one of its states accepts."""

    start: LoweredState


@dataclass(slots=True, eq=False)
class Select:
    """`keys` empty: go to `default`. Cases: one (value, mask or None) for each key, or a value set's name.

    default_at: loc and end of the default in the source.
    """

    keys: list[Expr]
    cases: list[Case]
    default: Target
    has_default: bool = True
    default_at: tuple[int, int] = (0, 0)


@dataclass(slots=True, eq=False)
class Case:
    matches: list[tuple[int, int | None]]
    value_set: str
    target: Target
    at: tuple[int, int]


@dataclass(slots=True, eq=False)
class LoweredState:
    name: str
    body: list[LoweredStatement]
    transition: Select | None = None
    loc: int = 0


Target = LoweredState | str  # a state, "accept" or "reject"


# --- tables ---


@dataclass(eq=False)
class LoweredParameter:
    """Action data that the control plane gives. `type` as declared."""

    name: str
    type: t.Type
    annotations: list[s.Annotation]


@dataclass(eq=False)
class LoweredAction:
    """`body` is straight code with branches; `node` is None for actions that the compiler made up."""

    name: str
    parameters: list[LoweredParameter]
    body: list[LoweredStatement]
    node: s.FunctionDeclaration


@dataclass(eq=False)
class LoweredKey:
    """`target`: the field that is matched. `type` as declared."""

    name: str
    match_kind: str
    target: FieldRef
    type: t.Type
    annotations: list[s.Annotation]
    node: s.KeyElement


@dataclass(eq=False)
class TableAction:
    action: LoweredAction
    annotations: list[s.Annotation]
    source_name: str


@dataclass(frozen=True)
class LoweredKeyMatch:
    """What an entry wants of one key. kind: value, mask, range or any; `second` is the mask or the last value."""

    kind: str
    first: int = 0
    second: int = 0


@dataclass(eq=False)
class LoweredEntry:
    matches: list[LoweredKeyMatch]
    action: LoweredAction
    data: list[int]
    priority: int
    node: s.TableEntry


@dataclass(eq=False)
class LoweredTable:
    """`exit_flag` is set by its actions where they exit, if what is behind the table must see to it."""

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
    key_inputs: list[tuple[FieldRef, s.Expression]] = field(default_factory=list)

    def action_names(self) -> dict[str, str]:
        """Names of the actions in the source, with their names in the control plane."""
        return {item.source_name: item.action.name for item in self.actions}


@dataclass(slots=True, eq=False)
class Apply(LoweredStatement):
    """Apply a table, then run the branch for what happened.

    `kind`: "hit" (branches "hit" and "miss") or "action" (a branch per action name, or "" for all others).
    """

    table: LoweredTable
    kind: str = "action"
    branches: dict[str, list[LoweredStatement]] = field(default_factory=dict)
