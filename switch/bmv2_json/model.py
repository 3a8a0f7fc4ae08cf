"""A BMv2 program as values: the contents of the JSON, resolved and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from gradbed.switch.bmv2_json.expressions import Boolean, Data, FieldReference, HeaderReference, Parameter


class Source(NamedTuple):
    """A position in the P4 source."""

    file: str
    line: int
    """Counted from 1."""
    fragment: str
    """Beginning of the text of the construct."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


# ---- Headers ----


def words_of(bits: int) -> int:
    """Return the number of 64-bit words that hold this many bits."""
    return (bits + 63) // 64


@dataclass(frozen=True)
class FieldType:
    """The type of a header field."""

    name: str
    width: int
    """Width in bits; the greatest, for a variable-length field."""
    signed: bool = False
    saturating: bool = False
    variable: bool = False

    @cached_property
    def words(self) -> int:
        """Number of 64-bit words in the data plane.

        A variable-length field has its length in bits, and then its bytes in packet order.
        """
        return 1 + words_of(self.width) if self.variable else max(1, words_of(self.width))


@dataclass(frozen=True)
class HeaderType:
    """The type of a header."""

    name: str
    fields: tuple[FieldType, ...]
    max_length_bytes: int = 0

    @cached_property
    def words(self) -> int:
        """Number of 64-bit words of all fields."""
        return sum(field.words for field in self.fields)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """First word of each field."""
        return tuple(accumulate((field.words for field in self.fields), initial=0))[:-1]

    @property
    def variable_field(self) -> int | None:
        return next((i for i, f in enumerate(self.fields) if f.variable), None)

    @property
    def fixed_bits(self) -> int:
        return sum(f.width for f in self.fields if not f.variable)


@dataclass(frozen=True)
class HeaderInstance:
    """A header of the program."""

    name: str
    id: int
    type: HeaderType
    metadata: bool


@dataclass(frozen=True)
class StackInstance:
    """A stack of headers or of unions."""

    name: str
    elements: tuple[str, ...]
    """Names of headers, or of unions."""


@dataclass(frozen=True)
class UnionInstance:
    """A header union of the program."""

    name: str
    members: tuple[str, ...]
    member_names: tuple[str, ...]


# ---- Parser ----


@dataclass(frozen=True)
class Extract:
    """An extraction."""

    header: HeaderReference
    """A fixed header, or the next element of a stack (StackElement with index None)."""
    variable_bits: Data | None = None


@dataclass(frozen=True)
class Assign:
    """An assignment in a parser state."""

    target: FieldReference
    value: Data


@dataclass(frozen=True)
class Verify:
    """A check in a parser state, which ends parsing with `error` if it fails."""

    condition: Boolean
    error: Data


@dataclass(frozen=True)
class Advance:
    """A move of the position of the parser."""

    bits: Data


@dataclass(frozen=True)
class Primitive:
    """A primitive with its parameters."""

    op: str
    parameters: tuple[Parameter, ...]
    source: Source | None = None


ParserOperation = Extract | Assign | Verify | Advance | Primitive


@dataclass(frozen=True)
class StateTransition:
    """A transition of a parser state."""

    next_state: str | None
    value: int | None = None
    """Value over all fields of the key, put together without padding; None for a value set or the default."""
    mask: int | None = None
    """Mask over the same bits."""
    value_set: str | None = None
    """Name of the value set that is matched instead."""
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ParseState:
    """A parser state."""

    name: str
    operations: tuple[ParserOperation, ...]
    key: tuple[Data, ...]
    key_widths: tuple[int, ...]
    transitions: tuple[StateTransition, ...]
    operation_sources: tuple[Source | None, ...] = field(default=(), compare=False)
    """Source of each operation."""
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Parser:
    """The parser."""

    initial: str | None
    states: dict[str, ParseState]


# ---- Calculations ----


@dataclass(frozen=True)
class CalculationInput:
    """A field, a constant with its width, or a header."""

    field: FieldReference | None = None
    constant: int = 0
    width: int = 0
    header: str | None = None


@dataclass(frozen=True)
class CalculationDefinition:
    """A calculation: an algorithm over inputs."""

    name: str
    algorithm: str
    inputs: tuple[CalculationInput, ...]
    with_payload: bool = False


@dataclass(frozen=True)
class Checksum:
    """A checksum that is verified, updated or both."""

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
    """An action."""

    name: str
    id: int
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[Primitive, ...]
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class KeyField:
    """A field of the key of a table."""

    name: str
    match: str
    """exact, lpm, ternary or range."""
    value: Data
    width: int
    static_mask: int | None = None
    """Mask for the value of the packet before the lookup."""


@dataclass(frozen=True)
class ActionEntry:
    """An action with its arguments."""

    action_id: int
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class EntryField:
    """The match of an entry on one field of the key."""

    value: int
    mask: int | None = None
    """For ternary."""
    prefix_bits: int | None = None
    """For lpm."""
    high: int | None = None
    """The last value, for range."""


@dataclass(frozen=True)
class ProgramEntry:
    """An initial entry of a table."""

    key: tuple[EntryField, ...]
    call: ActionEntry
    priority: int
    """The larger wins (initial_priorities)."""
    is_const: bool = False
    """Known only for programs of the compiler of this project."""


@dataclass(frozen=True)
class Table:
    """A table.

    After a hit control continues at next_hit if has_next_hit, and after a miss at next_miss if has_next_miss.
    Otherwise
    it continues at next_by_action of the action that ran, or at next_without_action if none did.
    """

    name: str
    match: str
    """The most general kind of the key."""
    key: tuple[KeyField, ...]
    actions: tuple[Action, ...]
    """In the order of the JSON."""
    max_size: int
    with_counters: bool
    with_timeouts: bool
    direct_meter: str | None
    profile: str | None
    next_by_action: dict[int, str | None]
    """Next node by the id of the action."""
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
        """Return the action of this name."""
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(f"table {self.name} has no action {name}")


@dataclass(frozen=True)
class ConditionalStep:
    """A condition of a pipeline."""

    name: str
    expression: Boolean
    if_true: str | None
    if_false: str | None
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class PipelineActionCall:
    """An action that a pipeline calls itself."""

    name: str
    action_id: int
    next: str | None
    source: Source | None = field(default=None, compare=False)


ControlNode = Table | ConditionalStep | PipelineActionCall


@dataclass(frozen=True)
class Pipeline:
    """A pipeline: ingress or egress."""

    name: str
    first: str | None
    """Name of the first node."""
    nodes: dict[str, ControlNode]


# ---- State ----


@dataclass(frozen=True)
class Register:
    """A register array."""

    name: str
    width: int
    size: int


@dataclass(frozen=True)
class Counter:
    """A counter array."""

    name: str
    size: int
    table: str | None = None
    """Table of a direct counter, whose values are in the entries."""


@dataclass(frozen=True)
class Meter:
    """A meter array."""

    name: str
    unit: str
    """packets or bytes."""
    size: int
    table: str | None = None
    """Table of a direct meter."""
    target: FieldReference | None = None
    """Field to which a direct meter writes the colour."""


@dataclass(frozen=True)
class ValueSet:
    """A parser value set."""

    name: str
    width: int


@dataclass(frozen=True)
class Profile:
    """An action profile."""

    name: str
    max_size: int
    selector: CalculationDefinition | None
    """Calculation that selects among the members of a group; None for a plain profile."""


@dataclass(frozen=True)
class Extern:
    """An object of an extern type of gradbed.p4."""

    name: str
    kind: str
    """Name of the extern."""
    attributes: dict[str, int]
    """Arguments of the constructor."""


@dataclass(frozen=True)
class DigestList:
    """The fields of a digest message."""

    id: int
    name: str
    elements: tuple[Data, ...]


@dataclass(frozen=True)
class FieldList:
    """The fields that a copy of a packet keeps."""

    id: int
    fields: tuple[FieldReference, ...]


@dataclass(frozen=True)
class ProgramModel:
    """A whole program; dictionaries keep the order of the JSON."""

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
    """Return the priorities of the initial entries of a table from their "priority" in BMv2 JSON.

    N entries that are ranked by position have priorities N..1 (P4Runtime specification 1.4, "Constant Tables").
    """
    last = max(ranks, default=0)
    if last >= _FIRST_EXPLICIT_RANK:
        return [GREATEST_RANK - rank for rank in ranks]
    return [last + 1 - rank for rank in ranks]
