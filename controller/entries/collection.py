"""The contents of one switch, collected from files: what overrides what, and which values contradict each other."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from gradbed.controller.entries.document import EntriesError, FilePosition
from gradbed.controller.planning.plan import (
    CloneSession,
    DefaultAction,
    MeterCell,
    MeterRates,
    MulticastGroup,
    RegisterValue,
    SwitchPlan,
    TableEntry,
)
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema, TableSchema

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class Precedence(NamedTuple):
    """The rank of a value, of which the greater holds where two contradict each other; in one rank it is a mistake.
    scope: all switches, a tier, or one switch. written: rather than made by a rule."""

    scope: int
    written: bool = True


@dataclass(frozen=True)
class EntryRates:
    """Rates of a table's direct meter, for each of its entries that has none of its own."""

    table: str
    meter_name: str
    rates: MeterRates


@dataclass(frozen=True)
class _Kept(Generic[T]):
    value: T
    rank: Precedence
    place: FilePosition


@dataclass
class Collection:
    """Values with their positions in files; two that contradict each other raise EntriesError."""

    schema: ProgramSchema
    skip_invalid: bool = False
    _kept: dict[Hashable, _Kept[object]] = field(default_factory=dict)

    def add(self, value: object, rank: Precedence, place: FilePosition) -> None:
        """Add a value. An entry of priority 0 in a table that needs one gets it in `plan`: the first the highest."""
        key = _key(value)
        earlier = self._kept.get(key)
        if earlier is None or rank > earlier.rank:
            self._kept[key] = _Kept(value, rank, place)
        elif rank == earlier.rank and earlier.value != value:
            raise place.error(f"{_named(value)} is given in {earlier.place} already, and says something else")

    @contextlib.contextmanager
    def leaving_out(self) -> Iterator[None]:
        """Log what is wrong inside rather than raise it, where invalid entries are skipped."""
        try:
            yield
        except EntriesError as error:
            if not self.skip_invalid:
                raise
            _logger.warning("left out: %s", error)

    def plan(self, program: str) -> SwitchPlan:
        """EntriesError for tables that get more than they hold."""
        return SwitchPlan.of(
            program,
            self._entries(),
            self._of(MulticastGroup),
            self._of(RegisterValue),
            defaults=self._of(DefaultAction),
            clones=self._of(CloneSession),
            meters=self._of(MeterCell),
        )

    def _of(self, kind: type[T]) -> list[T]:
        return [kept.value for kept in self._kept.values() if isinstance(kept.value, kind)]

    def _entries(self) -> list[TableEntry]:
        by_table: dict[str, list[_Kept[object]]] = {}
        for kept in self._kept.values():
            if isinstance(kept.value, TableEntry):
                by_table.setdefault(kept.value.table, []).append(kept)
        return [entry for name, kept in by_table.items() for entry in self._of_table(self.schema.tables[name], kept)]

    def _of_table(self, table: TableSchema, kept: list[_Kept[object]]) -> list[TableEntry]:
        if table.size and len(kept) > table.size:
            raise kept[table.size].place.error(
                f"table {table.name} holds {table.size} entries, and gets {len(kept)}: "
                "write fewer, or give it a greater size in the program"
            )
        entries = [self._metered(each.value) for each in kept if isinstance(each.value, TableEntry)]
        if not table.needs_priority:
            return entries
        without = [each for each in kept if isinstance(each.value, TableEntry) and not each.value.priority]
        if without and len(without) < len(kept):
            raise without[0].place.error(
                f"an entry of {table.name} has no priority, though others of the table have: the highest wins"
            )
        if without:
            return [
                entry.model_copy(update={"priority": len(entries) - place}) for place, entry in enumerate(entries)
            ]
        return entries

    def _metered(self, entry: TableEntry) -> TableEntry:
        kept = self._kept.get((EntryRates, entry.table))
        if entry.meter is not None or kept is None or not isinstance(kept.value, EntryRates):
            return entry
        return entry.model_copy(update={"meter": kept.value.rates})


def _key(value: object) -> Hashable:
    if isinstance(value, TableEntry):
        return TableEntry, value.key
    if isinstance(value, DefaultAction):
        return DefaultAction, value.table
    if isinstance(value, RegisterValue):
        return RegisterValue, value.register_name, value.index
    if isinstance(value, MeterCell):
        return MeterCell, value.meter_name, value.index
    if isinstance(value, EntryRates):
        return EntryRates, value.table
    if isinstance(value, (MulticastGroup, CloneSession)):
        return type(value), value.id
    raise TypeError(f"a plan has no {type(value).__name__}")


def _named(value: object) -> str:
    if isinstance(value, TableEntry):
        return f"an entry of {value.table} with this match"
    if isinstance(value, DefaultAction):
        return f"the default action of {value.table}"
    if isinstance(value, RegisterValue):
        return f"{value.register_name}[{'*' if value.index is None else value.index}]"
    if isinstance(value, MeterCell):
        return f"{value.meter_name}[{value.index}]"
    if isinstance(value, EntryRates):
        return f"{value.meter_name} of the entries of {value.table}"
    assert isinstance(value, (MulticastGroup, CloneSession))
    return f"{'clone session' if isinstance(value, CloneSession) else 'multicast group'} {value.id}"
