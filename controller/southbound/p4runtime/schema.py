"""P4Info made searchable: names to identifiers and widths, and plans brought into one spelling.

A name is found by its full name, its alias, or any dotted tail of it that no other object of the kind shares:
"AggregationIngress.forwarding.ipv4_routes", "forwarding.ipv4_routes" and "ipv4_routes" are one table."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from finsy.proto import p4i, p4r
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import (
    DefaultAction,
    Lpm,
    Match,
    MeterCell,
    Range,
    RegisterValue,
    SwitchPlan,
    TableEntry,
    Ternary,
)

MatchType = p4i.MatchField.MatchType
_PRIORITY_TYPES = (MatchType.TERNARY, MatchType.RANGE, MatchType.OPTIONAL)


class _Named(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


class Names(Generic[Named]):
    """The objects of one kind, by identifier and by any of their names."""

    def __init__(self, kind: str, objects: Iterable[Named], aliases: Iterable[str] = ()) -> None:
        self._kind = kind
        self._objects = list(objects)
        self._by_id = {named.id: named for named in self._objects}
        self._by_name = {named.name: named for named in self._objects}
        tails: defaultdict[str, list[Named]] = defaultdict(list)
        for named in self._objects:
            parts = named.name.split(".")
            for first in range(1, len(parts)):
                tails[".".join(parts[first:])].append(named)
        for alias, named in zip(aliases, self._objects, strict=False):
            if alias and named not in tails[alias]:
                tails[alias].append(named)
        self._by_tail = tails

    def __iter__(self) -> Iterator[Named]:
        return iter(self._objects)

    def __contains__(self, name: str) -> bool:
        """Return whether some object, or several, have the name."""
        return name in self._by_name or name in self._by_tail

    def by_id(self, number: int) -> Named | None:
        return self._by_id.get(number)

    def __getitem__(self, name: str) -> Named:
        """Return the one object of that name.

        Raises:
            UserError: There is none, or more than one.
        """
        if name in self._by_name:
            return self._by_name[name]
        found = self._by_tail.get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{self._kind} {name!r} may be {' or '.join(named.name for named in found)}")
        near = get_close_matches(name, [*self._by_name, *self._by_tail], n=1)
        known = ", ".join(named.name for named in self._objects) or "none"
        hint = f"did you mean {near[0]!r}?" if near else f"it has {known}"
        raise UserError(f"the P4 program has no {self._kind} {name!r}; {hint}")


@dataclass(frozen=True)
class FieldSchema:
    """A match field or an action parameter."""

    id: int
    name: str
    bits: int
    match_type: int = MatchType.UNSPECIFIED

    def check(self, value: int, where: str) -> int:
        if value.bit_length() > self.bits:
            raise UserError(f"{where}: {value} does not fit {self.name}, which has {self.bits} bits")
        return value


@dataclass(frozen=True)
class ActionSchema:
    id: int
    name: str
    params: Names[FieldSchema]


@dataclass(frozen=True)
class TableSchema:
    """has_own_entries: const or initial entries of the program, which a controller leaves alone. is_const: of these
    alone. default_is_const: no other default action may be set. has_profile: entries share actions of an action
    profile. size: entries that it holds at least. has_meter: a direct one."""

    id: int
    name: str
    fields: Names[FieldSchema]
    actions: Names[ActionSchema]
    has_own_entries: bool
    is_const: bool = False
    default_is_const: bool = False
    has_profile: bool = False
    size: int = 0
    has_meter: bool = False

    @property
    def needs_priority(self) -> bool:
        return any(field.match_type in _PRIORITY_TYPES for field in self.fields)


@dataclass(frozen=True)
class ArraySchema:
    """A counter, register or meter array of `size` cells; `short` is its alias. table: of a direct meter, whose cells
    are the entries of that table."""

    id: int
    name: str
    short: str
    bits: int = 0
    size: int = 0
    table: str = ""

    def check_index(self, kind: str, index: int) -> None:
        if self.table:
            raise UserError(f"{kind} {self.name} has no cells of its own: entries of {self.table} have it")
        if self.size and index >= self.size:
            raise UserError(f"{kind} {self.name} has {self.size} cells, and so no cell {index}")


@dataclass(frozen=True)
class DigestSchema:
    """A digest; `short` is its alias. fields: the names of what a message of it holds, in order."""

    id: int
    name: str
    short: str
    fields: tuple[str, ...]


class ProgramSchema:
    """The tables, counters, registers, digests and packet-in fields (by identifier) of a P4Info message."""

    def __init__(self, p4info: Any) -> None:
        actions = {
            action.preamble.id: ActionSchema(
                action.preamble.id,
                action.preamble.name,
                Names("parameter", (FieldSchema(p.id, p.name, p.bitwidth) for p in action.params)),
            )
            for action in p4info.actions
        }
        metered = {meter.direct_table_id for meter in p4info.direct_meters}
        self.tables = Names(
            "table",
            (_table(table, actions, metered) for table in p4info.tables),
            (table.preamble.alias for table in p4info.tables),
        )
        self.counters = _arrays("counter", p4info.counters)
        self.registers = _arrays("register", p4info.registers)
        self.meters = _arrays(
            "meter",
            p4info.meters,
            [(meter, self.tables.by_id(meter.direct_table_id)) for meter in p4info.direct_meters],
        )
        self.digests = Names("digest", (_digest(digest, p4info.type_info) for digest in p4info.digests))
        self.packet_in_fields = {
            field.id: field.name
            for header in p4info.controller_packet_metadata
            if header.preamble.name == "packet_in"
            for field in header.metadata
        }

    @property
    def routes_ipv4(self) -> bool:
        """The program has a table for the routes of controller/planning/routing.py."""
        return any(table.name.split(".")[-1] == "ipv4_routes" for table in self.tables)

    def normalised(self, plan: SwitchPlan) -> SwitchPlan:
        """Return the same plan with full names and without fields that match anything, to compare with what a switch
        reports.

        Raises:
            UserError: Names are unknown, or values do not fit.
        """
        return SwitchPlan.of(
            plan.program,
            (self._entry(entry) for entry in plan.entries),
            plan.groups,
            (self._register(cell) for cell in plan.registers),
            defaults=(self._default(default) for default in plan.defaults),
            clones=plan.clones,
            meters=(self._meter(cell) for cell in plan.meters),
        )

    def _register(self, cell: RegisterValue) -> RegisterValue:
        register = self.registers[cell.register_name]
        if cell.index is not None:
            register.check_index("register", cell.index)
        if register.bits and cell.value.bit_length() > register.bits:
            raise UserError(f"{cell.value} does not fit register {register.name}, which has {register.bits} bits")
        return RegisterValue(register_name=register.name, index=cell.index, value=cell.value)

    def _meter(self, cell: MeterCell) -> MeterCell:
        meter = self.meters[cell.meter_name]
        meter.check_index("meter", cell.index)
        return MeterCell(meter_name=meter.name, index=cell.index, rates=cell.rates)

    def _default(self, default: DefaultAction) -> DefaultAction:
        table = self.tables[default.table]
        if table.default_is_const:
            raise UserError(f"{table.name}: the program has its default action as a constant")
        action = table.actions[default.action]
        return DefaultAction(
            table=table.name, action=action.name, params=_normalised_params(table, action, default.params)
        )

    def _entry(self, entry: TableEntry) -> TableEntry:
        table = self.tables[entry.table]
        action = table.actions[entry.action]
        match: dict[str, Match] = {}
        for name, how in entry.match.items():
            field = table.fields[name]
            wanted = _normalised_match(field, how, table.name)
            if wanted is not None:
                match[field.name] = wanted
        for field in table.fields:
            if field.match_type == MatchType.EXACT and field.name not in match:
                raise UserError(f"{table.name}: an entry must give {field.name}")
        if table.is_const:
            raise UserError(f"{table.name}: the program has its entries as constants")
        if table.needs_priority != (entry.priority > 0):
            needs = "needs" if table.needs_priority else "takes no"
            raise UserError(f"{table.name}: an entry {needs} priority")
        if entry.meter is not None and not table.has_meter:
            raise UserError(f"{table.name}: its entries have no meter")
        if entry.watch_port is not None and not table.has_profile:
            raise UserError(f"{table.name}: its entries watch no ports, since it has no action selector")
        return TableEntry(
            table=table.name,
            match=match,
            action=action.name,
            params=_normalised_params(table, action, entry.params),
            priority=entry.priority,
            meter=entry.meter,
            watch_port=entry.watch_port,
        )


def _normalised_params(table: TableSchema, action: ActionSchema, given: Mapping[str, int]) -> dict[str, int]:
    params = {}
    for name, value in given.items():
        param = action.params[name]
        params[param.name] = param.check(value, action.name)
    missing = [param.name for param in action.params if param.name not in params]
    if missing:
        raise UserError(f"{table.name}: action {action.name} lacks {', '.join(missing)}")
    return params


def _normalised_match(field: FieldSchema, how: Match, table: str) -> Match | None:
    """Return a match, or None if it matches anything."""
    where = f"{table}: {field.name}"
    expected: dict[int, type] = {
        MatchType.EXACT: int,
        MatchType.OPTIONAL: int,
        MatchType.LPM: Lpm,
        MatchType.TERNARY: Ternary,
        MatchType.RANGE: Range,
    }
    if not isinstance(how, expected.get(field.match_type, int)):
        raise UserError(f"{where} is a field of kind {MatchType.Name(field.match_type)} and cannot match {how!r}")
    if isinstance(how, int):
        return field.check(how, table)
    for number in how.numbers:
        field.check(number, table)
    if isinstance(how, Lpm):
        if how.prefix_bits > field.bits:
            raise UserError(f"{where}: a prefix of {how.prefix_bits} bits is longer than the field")
        host_bits = field.bits - how.prefix_bits
        prefix = how.value >> host_bits << host_bits
        return Lpm(value=prefix, prefix_bits=how.prefix_bits) if how.prefix_bits else None
    if isinstance(how, Ternary):
        return Ternary(value=how.value & how.mask, mask=how.mask) if how.mask else None
    if how.low > how.high:
        raise UserError(f"{where}: the range {how.low}..{how.high} is empty")
    return how if (how.low, how.high) != (0, (1 << field.bits) - 1) else None


def _table(table: Any, actions: dict[int, ActionSchema], metered: set[int]) -> TableSchema:
    if unknown := [each.id for each in table.action_refs if each.id not in actions]:
        raise UserError(
            f"the P4Info is damaged: table {table.preamble.name!r} names action {unknown[0]}, which it lacks"
        )
    return TableSchema(
        table.preamble.id,
        table.preamble.name,
        Names("field", (FieldSchema(f.id, f.name, f.bitwidth, f.match_type) for f in table.match_fields)),
        Names("action", (actions[reference.id] for reference in table.action_refs)),
        table.is_const_table or table.has_initial_entries,
        is_const=table.is_const_table,
        default_is_const=table.const_default_action_id != 0,
        has_profile=table.implementation_id != 0,
        size=table.size,
        has_meter=table.preamble.id in metered,
    )


def _digest(message: Any, types: Any) -> DigestSchema:
    kind = message.type_spec.WhichOneof("type_spec")
    if kind == "struct":
        fields = [member.name for member in types.structs[message.type_spec.struct.name].members]
    else:
        count = len(message.type_spec.tuple.members) if kind == "tuple" else 1
        fields = [str(place) for place in range(count)]
    preamble = message.preamble
    return DigestSchema(preamble.id, preamble.name, preamble.alias or preamble.name, tuple(fields))


def _arrays(kind: str, messages: Any, direct: Sequence[tuple[Any, TableSchema | None]] = ()) -> Names[ArraySchema]:
    """direct: those of tables, too."""
    arrays = [
        ArraySchema(
            m.preamble.id,
            m.preamble.name,
            m.preamble.alias or m.preamble.name,
            m.type_spec.bitstring.bit.bitwidth if kind == "register" else 0,
            m.size,
        )
        for m in messages
    ]
    arrays += [
        ArraySchema(m.preamble.id, m.preamble.name, m.preamble.alias or m.preamble.name, table=table.name)
        for m, table in direct
        if table is not None
    ]
    return Names(kind, arrays, (array.short for array in arrays))


# ---- Pipelines: programs with P4Info, as they are pushed to switches ----


@dataclass(frozen=True)
class Pipeline:
    """A forwarding pipeline configuration (P4Runtime specification, section 7)."""

    name: str
    p4info: Any
    """The P4Info message."""
    device_config: bytes
    """The target's configuration: BMv2 JSON."""
    routed: bool = True
    """Whether the controller fills the table ipv4_routes, if the program has one."""

    @classmethod
    def load(cls, name: str, json_path: Path, p4info_path: Path, routed: bool = True) -> Pipeline:
        """Read the files that a compiler wrote; P4Info as protobuf text or binary.

        Raises:
            UserError: A file is missing, or no P4Info.
        """
        return cls(name, read_p4info(p4info_path), _read(json_path), routed)

    @cached_property
    def schema(self) -> ProgramSchema:
        return ProgramSchema(self.p4info)

    @cached_property
    def cookie(self) -> int:
        """64 bits that tell one configuration from another (never 0, which means none)."""
        digest = hashlib.sha256(self.p4info.SerializeToString(deterministic=True))
        digest.update(self.device_config)
        return int.from_bytes(digest.digest()[:8], "big") | 1

    @property
    def label(self) -> str:
        return f"{self.name} {self.cookie:016x}"

    def config(self) -> Any:
        """Return the ForwardingPipelineConfig message."""
        return p4r.ForwardingPipelineConfig(
            p4info=self.p4info,
            p4_device_config=self.device_config,
            cookie=p4r.ForwardingPipelineConfig.Cookie(cookie=self.cookie),
        )


def read_p4info(path: Path) -> Any:
    """Return a P4Info message from a file of protobuf text or binary.

    Raises:
        UserError: The file is neither.
    """
    p4info = p4i.P4Info()
    data = _read(path)
    try:
        text_format.Parse(data.decode(), p4info)
    except (text_format.ParseError, ValueError):  # no UTF-8, or a number that its field cannot take
        p4info = p4i.P4Info()
        try:
            p4info.ParseFromString(data)
        except DecodeError:
            raise UserError(f"{path} is not a P4Info file, neither text nor binary") from None
    return p4info


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
