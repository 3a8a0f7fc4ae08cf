"""What an STF file is run against."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gradbed.switch.bmv2_json.model import ProgramModel, Table, ValueSet
from gradbed.switch.device import ActionCall, Counts, KeyMatch
from gradbed.switch.stf import names
from gradbed.switch.stf import statements as s
from gradbed.switch.stf.names import NoFit

if TYPE_CHECKING:
    from typing import Self


class StfTarget(Protocol):
    """A switch that runs the program under test.

    `apply` and `send` raise NoFit where the statement does not fit the program, CheckFailed where something is not as
    the statement says, and NotPossible where no program would help: this switch cannot do that.
    """

    @property
    def model(self) -> ProgramModel: ...
    def apply(self, statement: s.StfStatement) -> None:
        """Carry out any statement but packet, expect and no_packet."""

    def send(self, packet: s.Packet) -> None: ...
    def drain(self) -> list[tuple[int, bytes]]:
        """Let all packets come to rest; what has left since the last call, (port, frame), in order for each port."""


class AddedEntry(NamedTuple):
    """An entry that the file added."""

    table: Table
    name: str | None
    """Name for later statements."""
    handle: int
    """Handle of the switch."""


class CommandTarget(Protocol):
    """Base of targets that turn statements into commands; a context manager, which closes `_stack`."""

    model: ProgramModel
    _entries: list[AddedEntry]
    _stack: ExitStack

    def __init__(self, model: ProgramModel) -> None:
        self.model = model
        self._entries = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _carry_out(self, statement: s.StfStatement) -> None:
        """Carry out a statement while the switch is idle."""
        model = self.model
        match statement:
            case s.Wait():
                """The switch is idle."""
            case s.Add():
                self._add(statement)
            case s.SetDefault():
                table = names.table(model, statement.table)
                self._set_default(table, names.action_call(table, statement.call))
            case s.Remove():
                for entry in list(self._entries) if statement.entry is None else [self._entry(statement.entry)]:
                    self._delete(entry)
                    self._entries.remove(entry)
            case s.CheckCounter():
                packets, bytes_ = self._counted(statement.counter, statement.index)
                got = packets if statement.unit == "packets" else bytes_
                what = f"counter {statement.counter}({statement.index})"
                check(what, statement.condition, got, statement.unit)
            case s.CounterRead():
                self._counter_read(names.counter(model, statement.counter), statement.index)
            case s.CounterWrite():
                counter = names.counter(model, statement.counter)
                self._counter_write(counter, statement.index, (statement.packets, statement.bytes))
            case s.RegisterRead():
                register = names.register(model, statement.register)
                got = self._register_read(register, statement.index, statement.condition is not None)
                if statement.condition is not None:
                    check(f"register {statement.register}[{statement.index}]", statement.condition, got)
            case s.RegisterWrite():
                self._register_write(names.register(model, statement.register), statement.index, statement.value)
            case s.RegisterReset():
                self._register_reset(names.register(model, statement.register))
            case s.MeterGetRates():
                self._meter_read(names.meter(model, statement.meter), statement.index)
            case s.MeterSetRates(index=str(name)):
                entry = self._entry(name)
                direct = [m for m, held in model.meters.items() if held.table == entry.table.name]
                meter = names.find(statement.meter, direct, f"direct meter of table {entry.table.name} named")
                self._entry_meter_write(entry, meter, statement.rates)
            case s.MeterSetRates(index=int() | None as index):
                self._meter_write(names.meter(model, statement.meter), index, statement.rates)
            case s.ValueSetAdd():
                value_set = model.value_sets[names.value_set(model, statement.value_set)]
                self._value_set_add(value_set, statement.value)
            case s.ValueSetClear():
                self._value_set_clear(names.value_set(model, statement.value_set))
            case _:
                self._replicate(statement)

    def _add(self, statement: s.Add) -> None:
        table = names.table(self.model, statement.table)
        call = names.action_call(table, statement.call)
        others = [names.action_call(table, each) for each in statement.others]
        if others and (table.profile is None or self.model.profiles[table.profile].selector is None):
            raise NoFit(f"table {table.name} has no action selector, so an entry of it has one action")
        priority = names.priority(table, statement.priority)
        key = names.key_matches(table, statement.matches)
        if statement.entry is not None and any(entry.name == statement.entry for entry in self._entries):
            raise NoFit(f"there is an entry {statement.entry} already")
        if others:
            handle = self._insert_group(table, key, [call, *others], priority)
        else:
            handle = self._insert(table, key, call, priority)
        self._entries.append(AddedEntry(table, statement.entry, handle))

    def _entry(self, name: str) -> AddedEntry:
        found = next((entry for entry in self._entries if entry.name == name), None)
        if found is None:
            raise NoFit(f"there is no entry {name}: add ... = {name} names one")
        return found

    def _counted(self, counter: str, index: int | str) -> Counts:
        """Return the counts of an indirect counter's cell, or of the direct counter of a named entry."""
        if isinstance(index, int):
            return self._counter_read(names.counter(self.model, counter), index)
        entry = self._entry(index)
        table = entry.table.name
        direct = [name for name, c in self.model.counters.items() if c.table == table]
        names.find(counter, [*direct, table], f"direct counter of table {table} named")
        return self._entry_count(entry, direct[0] if direct else table)

    # ---- What each switch does in its own way; names are full ----

    def _insert(self, table: Table, key: Sequence[KeyMatch], call: ActionCall, priority: int) -> int:
        """Insert an entry and return its handle.

        In a table with an action profile, the call is that of a new member.
        """

    def _insert_group(self, table: Table, key: Sequence[KeyMatch], calls: Sequence[ActionCall], priority: int) -> int:
        """Insert an entry and return its handle.

        The calls are those of new members, of which the selector chooses.
        """

    def _set_default(self, table: Table, call: ActionCall) -> None: ...
    def _delete(self, entry: AddedEntry) -> None: ...
    def _entry_count(self, entry: AddedEntry, counter: str) -> Counts: ...
    def _counter_read(self, counter: str, index: int) -> Counts: ...
    def _counter_write(self, counter: str, index: int, counts: Counts) -> None: ...
    def _register_read(self, register: str, index: int, compared: bool) -> int:
        """Return a register's value, exactly if it is `compared`."""

    def _register_write(self, register: str, index: int, value: int) -> None: ...
    def _register_reset(self, register: str) -> None: ...
    def _meter_read(self, meter: str, index: int) -> None: ...
    def _meter_write(self, meter: str, index: int | None, rates: tuple[s.Rate, s.Rate]) -> None:
        """Set one meter of an array, or all of them if the index is None."""

    def _entry_meter_write(self, entry: AddedEntry, meter: str, rates: tuple[s.Rate, s.Rate]) -> None: ...

    def _value_set_add(self, value_set: ValueSet, value: int) -> None: ...
    def _value_set_clear(self, value_set: str) -> None: ...
    def _replicate(self, statement: s.StfStatement) -> None:
        """Carry out a statement on multicast groups or clone sessions. Raises TypeError for any other."""


class CheckFailed(Exception):
    """A counter or register is not as expected. The text says how, in one line."""


class NotPossible(Exception):
    """The statement asks what the switch cannot do, whatever the program. The text gives the reason in one line.

    `ends`: what follows is of no worth, since the statement was to change something.
    """

    def __init__(self, why: str, *, ends: bool) -> None:
        super().__init__(why)
        self.ends = ends


def check(what: str, condition: s.StfCondition, got: int, unit: str = "") -> None:
    """Raise CheckFailed unless the condition holds of the value."""
    if not condition.holds(got):
        wanted = f"{condition.operator} {condition.value}"
        raise CheckFailed(f"{what} is {got}{unit and ' ' + unit}, should be {wanted}")
