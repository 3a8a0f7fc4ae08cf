"""The plan: the contents of every switch, as plain values that can be printed, compared, saved and merged.

Planners return a `Plan`; southbound clients make the switches hold exactly that. Tables, fields, actions and
parameters are named as in P4Info, by full name or by a last component that is unique ("ipv4_routes"). Values
are non-negative integers; an IPv4 address or a MAC address is its big-endian integer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem

T = TypeVar("T")
Unsigned = Annotated[int, Field(ge=0)]


class Value(BaseModel):
    """Base of all parts of a plan: frozen, strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Lpm(Value):
    """A prefix: the first prefix_bits bits of value; the others are zero."""

    value: Unsigned
    prefix_bits: Unsigned

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.value, self.prefix_bits


class Ternary(Value):
    """A ternary match: packets whose field, masked, equals value."""

    value: Unsigned
    mask: Unsigned

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.value, self.mask


class Range(Value):
    """A range match: packets whose field lies between low and high, both included."""

    low: Unsigned
    high: Unsigned

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.low, self.high


Match = Unsigned | Lpm | Ternary | Range
"""How an entry matches one field. A bare integer matches exactly."""

EntryKey = tuple[str, tuple[tuple[str, Match], ...], int]


class MeterRates(Value):
    """Rates of a two-rate three-colour meter (RFC 2698).

    Rates are in packets or bytes per second, bursts in packets or bytes, as the program counts.
    """

    committed_rate: Unsigned
    committed_burst: Unsigned
    peak_rate: Unsigned
    peak_burst: Unsigned


class TableEntry(Value):
    """An entry of a table."""

    table: str
    match: Mapping[str, Match]
    action: str
    params: Mapping[str, Unsigned] = {}
    priority: Unsigned = 0
    """It matters only to tables with ternary, range or optional fields: high wins."""
    meter: MeterRates | None = None
    """Rates, in a table with a direct meter; None: whatever matches is green."""
    watch_port: Unsigned | None = None
    """A port, in a table with an action selector: while it is down, switches do nothing in place of the action, at
    once and by themselves (P4Runtime specification, section 9.2.3, "watch_port")."""

    @property
    def key(self) -> EntryKey:
        """Identity of the entry in its table: all but the action."""
        return self.table, tuple(sorted(self.match.items(), key=lambda item: item[0])), self.priority

    @property
    def order(self) -> tuple[str, int, list[tuple[str, tuple[int, ...]]]]:
        """Sort key: table, then priority, then fields in numerical order."""
        fields = [(field, (how,) if isinstance(how, int) else how.numbers) for field, how in self.match.items()]
        return self.table, -self.priority, sorted(fields)


class SetField(Value):
    """Write a header field, named as in OpenFlow's OXM ("eth_dst")."""

    set_field: str
    value: Unsigned


class DecrementTtl(Value):
    """Decrement the IPv4 time to live; packets for which it becomes 0 are dropped."""

    dec_ttl: Literal[True]


class Output(Value):
    """Send a copy to a port."""

    output: Unsigned


class ToGroup(Value):
    """Hand the packet to a group."""

    group: Annotated[int, Field(ge=1, le=0xFFFF)]


FlowAction = SetField | DecrementTtl | Output | ToGroup

FlowKey = tuple[int, tuple[tuple[str, Match], ...]]


class Flow(Value):
    """A flow of an OpenFlow switch's only table.

    Fields are named as in OpenFlow's OXM (specification 1.3, section 7.2.3.7), actions are applied in turn; of
    several flows that match a packet the highest priority wins.
    """

    priority: Annotated[int, Field(ge=0, le=0xFFFF)]
    match: Mapping[str, Match]
    actions: tuple[FlowAction, ...]

    @property
    def key(self) -> FlowKey:
        """Identity of the flow in its switch: all but the actions."""
        return self.priority, tuple(sorted(self.match.items(), key=lambda item: item[0]))

    @property
    def order(self) -> tuple[int, list[tuple[str, tuple[int, ...]]]]:
        """Sort key: priority, the highest first, then fields in numerical order."""
        fields = [(field, (how,) if isinstance(how, int) else how.numbers) for field, how in self.match.items()]
        return -self.priority, sorted(fields)


class DefaultAction(Value):
    """The action of a table for packets that no entry matches, in place of its program's."""

    table: str
    action: str
    params: Mapping[str, Unsigned] = {}


class Replicas(Value):
    """Copies of a packet, one to each port."""

    id: Annotated[int, Field(ge=1, le=0xFFFF)]
    ports: tuple[Unsigned, ...]
    """In ascending order. With instances, a port may get several copies."""
    instances: tuple[Unsigned, ...] = ()
    """The egress_rid of each copy, one for each port; none: 1 for all."""

    @model_validator(mode="after")
    def _canonical(self) -> Replicas:
        if self.instances and len(self.instances) != len(self.ports):
            raise ValueError(f"{len(self.ports)} ports of a group have {len(self.instances)} instances")
        if list(self.copies) != sorted(set(self.copies)):
            raise ValueError(f"ports of a multicast group must be ascending and distinct, got {self.ports}")
        return self

    @property
    def copies(self) -> tuple[tuple[int, int], ...]:
        """Port and instance of each copy."""
        return tuple(zip(self.ports, self.instances or (1,) * len(self.ports), strict=True))

    @staticmethod
    def fields(copies: Iterable[tuple[int, int]]) -> dict[str, tuple[int, ...]]:
        """`ports` and `instances` of copies (port, instance) in any order."""
        ordered = sorted(set(copies))
        instances = tuple(instance for _, instance in ordered)
        return {
            "ports": tuple(port for port, _ in ordered),
            "instances": () if set(instances) <= {1} else instances,
        }


class MulticastGroup(Replicas):
    """A group of the packet replication engine, or an OpenFlow group of type ALL."""


class CloneSession(Replicas):
    """Ports of clones of a packet (v1model's clone)."""

    truncate_bytes: Unsigned = 0
    """The bytes that clones keep; 0: all."""


class RegisterValue(Value):
    """A cell of a register; index None: every cell."""

    register_name: str
    index: Unsigned | None
    value: Unsigned


class MeterCell(Value):
    """A cell of a meter array."""

    meter_name: str
    index: Unsigned
    rates: MeterRates


SwitchPlanKind = Literal["p4", "openflow"]


class SwitchPlan(Value):
    """Everything that one switch should hold, in canonical order."""

    kind: SwitchPlanKind = "p4"
    """"p4" (all but flows) or "openflow" (flows, groups)."""
    program: str
    """The program that it runs, or, of an OpenFlow switch, the one that its flows imitate."""
    entries: tuple[TableEntry, ...] = ()
    groups: tuple[MulticastGroup, ...] = ()
    registers: tuple[RegisterValue, ...] = ()
    flows: tuple[Flow, ...] = ()
    defaults: tuple[DefaultAction, ...] = ()
    clones: tuple[CloneSession, ...] = ()
    meters: tuple[MeterCell, ...] = ()

    @model_validator(mode="after")
    def _of_one_kind(self) -> SwitchPlan:
        if (self.kind == "p4" and self.flows) or (
            self.kind == "openflow" and (self.entries or self.more_than_entries)
        ):
            raise ValueError("a P4 switch has entries and registers, an OpenFlow switch flows")
        return self

    @property
    def more_than_entries(self) -> bool:
        """The plan has registers, default actions, clone sessions or meters, which only P4 switches hold."""
        return bool(self.registers or self.defaults or self.clones or self.meters)

    @classmethod
    def of(
        cls,
        program: str,
        entries: Iterable[TableEntry] = (),
        groups: Iterable[MulticastGroup] = (),
        registers: Iterable[RegisterValue] = (),
        flows: Iterable[Flow] = (),
        kind: SwitchPlanKind = "p4",
        *,
        defaults: Iterable[DefaultAction] = (),
        clones: Iterable[CloneSession] = (),
        meters: Iterable[MeterCell] = (),
    ) -> SwitchPlan:
        """Build a plan in canonical order; equal entries, groups, cells and flows count once.

        Raises:
            ValueError: Two of one key have different contents.
        """
        return cls(
            kind=kind,
            program=program,
            entries=tuple(sorted(_unique(entries, _entry_key), key=lambda entry: entry.order)),
            groups=tuple(sorted(_unique(groups, _group_key), key=_group_key)),
            registers=tuple(sorted(_unique(registers, _cell_key), key=_cell_key)),
            flows=tuple(sorted(_unique(flows, _flow_key), key=lambda flow: flow.order)),
            defaults=tuple(sorted(_unique(defaults, _default_key), key=_default_key)),
            clones=tuple(sorted(_unique(clones, _group_key), key=_group_key)),
            meters=tuple(sorted(_unique(meters, _meter_key), key=_meter_key)),
        )

    def merged(self, *others: SwitchPlan) -> SwitchPlan:
        """Merge these parts.

        Raises:
            ValueError: They contradict each other.
        """
        for other in others:
            if (self.kind, self.program) != (other.kind, other.program):
                raise ValueError(f"one switch cannot run {self.program} and {other.program}")
        parts = (self, *others)
        return SwitchPlan.of(
            self.program,
            chain.from_iterable(part.entries for part in parts),
            chain.from_iterable(part.groups for part in parts),
            chain.from_iterable(part.registers for part in parts),
            chain.from_iterable(part.flows for part in parts),
            self.kind,
            defaults=chain.from_iterable(part.defaults for part in parts),
            clones=chain.from_iterable(part.clones for part in parts),
            meters=chain.from_iterable(part.meters for part in parts),
        )


class Plan(Value):
    """A plan for a network: switch name -> what it should hold."""

    switches: Mapping[str, SwitchPlan]

    def __getitem__(self, switch: str) -> SwitchPlan:
        return self.switches[switch]

    def merged(self, *others: Plan) -> Plan:
        """Merge plans, so that parts made by several planners make one.

        Raises:
            ValueError: They contradict each other.
        """
        return Merger().merged(self, *others)

    def to_json(self) -> str:
        return self.model_dump_json(indent=1, exclude_defaults=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Return the plan of a text that `to_json` made.

        Raises:
            UserError: The text is no plan.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise UserError(f"not a plan: {first_problem(error)}") from None

    def save(self, path: Path) -> None:
        path.write_text(self.to_json() + "\n")

    @classmethod
    def load(cls, path: Path) -> Plan:
        try:
            return cls.from_json(path.read_bytes())
        except OSError as error:
            raise UserError(f"cannot read the plan {path}: {error.strerror}") from None


class Merger:
    """Merge plans repeatedly, and reuse the result for switches whose parts are the same objects as last time.

    Parts never change, and comparing their contents would take as long as merging them.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[list[SwitchPlan], SwitchPlan]] = {}

    def merged(self, *plans: Plan) -> Plan:
        """Merge plans of one switch, as Plan.merged."""
        parts: dict[str, list[SwitchPlan]] = {}
        for plan in plans:
            for name, part in plan.switches.items():
                parts.setdefault(name, []).append(part)
        return Plan(switches={name: self._of(name, of_switch) for name, of_switch in parts.items()})

    def _of(self, name: str, parts: list[SwitchPlan]) -> SwitchPlan:
        last = self._last.get(name)
        if last is not None and list(map(id, last[0])) == list(map(id, parts)):
            return last[1]
        merged = _merged(name, *parts)
        self._last[name] = parts, merged
        return merged


def _merged(name: str, first: SwitchPlan, *others: SwitchPlan) -> SwitchPlan:
    """Merge the parts of a switch; a single part is returned as it is, since most switches take no part in most
    jobs."""
    try:
        return first.merged(*others) if others else first
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _unique(values: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    seen: dict[Hashable, T] = {}
    for value in values:
        earlier = seen.setdefault(key(value), value)
        if earlier is not value and earlier != value:
            raise ValueError(f"contradiction: {earlier!r} and {value!r}")
    return list(seen.values())


def _entry_key(entry: TableEntry) -> EntryKey:
    return entry.key


def _flow_key(flow: Flow) -> FlowKey:
    return flow.key


def _group_key(group: Replicas) -> int:
    return group.id


def _default_key(default: DefaultAction) -> str:
    return default.table


def _cell_key(cell: RegisterValue) -> tuple[str, int]:
    """Sort a register's cells with every cell (index None) first: single cells are written on top."""
    return cell.register_name, -1 if cell.index is None else cell.index


def _meter_key(cell: MeterCell) -> tuple[str, int]:
    return cell.meter_name, cell.index
