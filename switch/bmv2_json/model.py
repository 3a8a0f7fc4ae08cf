"""A BMv2 program as values: what the JSON says, resolved and checked, ready to be emitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from gradbed.switch.bmv2_json.expressions import Boolean, Data, FieldReference, HeaderReference, Parameter


class Source(NamedTuple):
    """Where in the P4 source something is. line counts from 1. fragment: the beginning of the construct's text."""

    file: str
    line: int
    fragment: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


# ---- Headers ----


def words_of(bits: int) -> int:
    return (bits + 63) // 64


@dataclass(frozen=True)
class FieldType:
    """width: bits; of a variable-length field the most that it can have."""

    name: str
    width: int
    signed: bool = False
    saturating: bool = False
    variable: bool = False

    @cached_property
    def words(self) -> int:
        """Of 64 bits, which it takes in the data plane. A variable-length one: its length in bits, then its bytes in
        packet order."""
        return 1 + words_of(self.width) if self.variable else max(1, words_of(self.width))


@dataclass(frozen=True)
class HeaderType:
    name: str
    fields: tuple[FieldType, ...]
    max_length_bytes: int = 0

    @cached_property
    def words(self) -> int:
        """Number of words of 64 bits that all its fields take."""
        return sum(field.words for field in self.fields)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The word with which each field begins."""
        return tuple(accumulate((field.words for field in self.fields), initial=0))[:-1]

    @property
    def variable_field(self) -> int | None:
        return next((i for i, f in enumerate(self.fields) if f.variable), None)

    @property
    def fixed_bits(self) -> int:
        return sum(f.width for f in self.fields if not f.variable)


@dataclass(frozen=True)
class HeaderInstance:
    name: str
    id: int
    type: HeaderType
    metadata: bool


@dataclass(frozen=True)
class StackInstance:
    """elements: names of headers, or of unions in a stack of unions."""

    name: str
    elements: tuple[str, ...]


@dataclass(frozen=True)
class UnionInstance:
    name: str
    members: tuple[str, ...]
    member_names: tuple[str, ...]


# ---- Parser ----


@dataclass(frozen=True)
class Extract:
    """header: fixed, or the next element of a stack (StackElement with index None)."""

    header: HeaderReference
    variable_bits: Data | None = None


@dataclass(frozen=True)
class Assign:
    target: FieldReference
    value: Data


@dataclass(frozen=True)
class Verify:
    condition: Boolean
    error: Data


@dataclass(frozen=True)
class Advance:
    bits: Data


@dataclass(frozen=True)
class Primitive:
    op: str
    parameters: tuple[Parameter, ...]
    source: Source | None = None


ParserOperation = Extract | Assign | Verify | Advance | Primitive


@dataclass(frozen=True)
class StateTransition:
    """value and mask over the key's fields put together without padding; value_set instead of value, or neither."""

    next_state: str | None
    value: int | None = None
    mask: int | None = None
    value_set: str | None = None
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ParseState:
    """operation_sources: of each operation."""

    name: str
    operations: tuple[ParserOperation, ...]
    key: tuple[Data, ...]
    key_widths: tuple[int, ...]
    transitions: tuple[StateTransition, ...]
    operation_sources: tuple[Source | None, ...] = field(default=(), compare=False)
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Parser:
    initial: str | None
    states: dict[str, ParseState]


# ---- Calculations ----


@dataclass(frozen=True)
class CalculationInput:
    """One of: a field, a constant with its width, a header."""

    field: FieldReference | None = None
    constant: int = 0
    width: int = 0
    header: str | None = None


@dataclass(frozen=True)
class CalculationDefinition:
    name: str
    algorithm: str
    inputs: tuple[CalculationInput, ...]
    with_payload: bool = False


@dataclass(frozen=True)
class Checksum:
    name: str
    target: FieldReference
    calculation: str
    condition: Boolean | None
    verify: bool
    update: bool
    source: Source | None = field(default=None, compare=False)


# ---- Match-action ----


@dataclass(frozen=True)
class ActionParameter:
    name: str
    width: int


@dataclass(frozen=True)
class Action:
    name: str
    id: int
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[Primitive, ...]
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class KeyField:
    """match: exact, lpm, ternary, range. static_mask is applied to the packet's value before the lookup."""

    name: str
    match: str
    value: Data
    width: int
    static_mask: int | None = None


@dataclass(frozen=True)
class ActionEntry:
    action_id: int
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class EntryField:
    value: int
    mask: int | None = None
    prefix_bits: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class ProgramEntry:
    """priority: the larger wins (initial_priorities). is_const: told only by this project's compiler."""

    key: tuple[EntryField, ...]
    call: ActionEntry
    priority: int
    is_const: bool = False


@dataclass(frozen=True)
class Table:
    """match: the most general of the key's kinds. Actions in the order of the JSON; next nodes by action id.

    After a hit: next_hit if has_next_hit; after a miss: next_miss if has_next_miss; else next_by_action of the
    action that ran, or next_without_action if none did.
    """

    name: str
    match: str
    key: tuple[KeyField, ...]
    actions: tuple[Action, ...]
    max_size: int
    with_counters: bool
    with_timeouts: bool
    direct_meter: str | None
    profile: str | None
    next_by_action: dict[int, str | None]
    next_hit: str | None
    has_next_hit: bool
    next_miss: str | None
    has_next_miss: bool
    next_without_action: str | None
    default: ActionEntry | None
    default_is_const: bool
    entries: tuple[ProgramEntry, ...]
    source: Source | None = field(default=None, compare=False)

    def action(self, name: str) -> Action:
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(f"table {self.name} has no action {name}")


@dataclass(frozen=True)
class ConditionalStep:
    name: str
    expression: Boolean
    if_true: str | None
    if_false: str | None
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class PipelineActionCall:
    name: str
    action_id: int
    next: str | None
    source: Source | None = field(default=None, compare=False)


ControlNode = Table | ConditionalStep | PipelineActionCall


@dataclass(frozen=True)
class Pipeline:
    name: str
    first: str | None
    nodes: dict[str, ControlNode]


# ---- State ----


@dataclass(frozen=True)
class Register:
    name: str
    width: int
    size: int


@dataclass(frozen=True)
class Counter:
    """table: of a direct counter, whose values are in the table's entries."""

    name: str
    size: int
    table: str | None = None


@dataclass(frozen=True)
class Meter:
    """unit: packets or bytes. target: where a direct meter writes the colour."""

    name: str
    unit: str
    size: int
    table: str | None = None
    target: FieldReference | None = None


@dataclass(frozen=True)
class ValueSet:
    name: str
    width: int


@dataclass(frozen=True)
class Profile:
    """selector: calculation over the packet that selects among a group's members; None for a plain profile."""

    name: str
    max_size: int
    selector: CalculationDefinition | None


@dataclass(frozen=True)
class Extern:
    """An object of an architecture's own type `kind`. attributes: what its constructor was given."""

    name: str
    kind: str
    attributes: dict[str, int]


@dataclass(frozen=True)
class DigestList:
    id: int
    name: str
    elements: tuple[Data, ...]


@dataclass(frozen=True)
class FieldList:
    id: int
    fields: tuple[FieldReference, ...]


@dataclass(frozen=True)
class ProgramModel:
    """Everything of one program; dictionaries keep the order of the JSON."""

    name: str
    headers: dict[str, HeaderInstance]
    stacks: dict[str, StackInstance]
    unions: dict[str, UnionInstance]
    union_stacks: dict[str, StackInstance]
    aliases: dict[str, FieldReference]
    errors: dict[str, int]
    parser: Parser
    deparser: tuple[str, ...]
    deparser_primitives: tuple[Primitive, ...]
    actions: dict[int, Action]
    pipelines: dict[str, Pipeline]
    calculations: dict[str, CalculationDefinition]
    checksums: tuple[Checksum, ...]
    registers: dict[str, Register]
    counters: dict[str, Counter]
    meters: dict[str, Meter]
    value_sets: dict[str, ValueSet]
    profiles: dict[str, Profile]
    externs: dict[str, Extern]
    digests: dict[int, DigestList]
    field_lists: dict[int, FieldList]

    @property
    def tables(self) -> dict[str, Table]:
        return {n.name: n for p in self.pipelines.values() for n in p.nodes.values() if isinstance(n, Table)}

    @property
    def indirect_counters(self) -> list[str]:
        """Counters that programs index, in the order of their numbers at run time."""
        return [c.name for c in self.counters.values() if c.table is None]

    @property
    def indirect_meters(self) -> list[str]:
        return [m.name for m in self.meters.values() if m.table is None]


# ---- Priorities of initial entries ----
#
# In BMv2 JSON the smallest number is looked at first; everywhere else here, as in P4Runtime, the largest wins.


# The compiler writes an entry with a priority of its own, P, as GREATEST_RANK - P, so that P comes out again.
GREATEST_RANK = 2**31 - 1
_FIRST_EXPLICIT_RANK = 2**30


def initial_priorities(ranks: Sequence[int]) -> list[int]:
    """Priorities of a table's initial entries from their "priority" in BMv2 JSON, in the same order.

    N entries that are ranked by position have priorities N..1 (P4Runtime specification 1.4, "Constant Tables").
    """
    last = max(ranks, default=0)
    if last >= _FIRST_EXPLICIT_RANK:
        return [GREATEST_RANK - rank for rank in ranks]
    return [last + 1 - rank for rank in ranks]
