"""STF on this project's own switch: in process and on a manual clock, so that every run comes out the same."""

from __future__ import annotations

from contextlib import ExitStack
from functools import singledispatchmethod
from types import TracebackType

from switch.bmv2_json.model import ProgramModel, Table
from switch.codegen import BuiltProgram
from switch.device import ActionCall, EntryCall, MemberReference, MeterRates, Replica
from switch.engine import Engine, EngineDevice
from switch.engine.abi import DROP_PORT
from switch.stf import names
from switch.stf import statements as s
from switch.stf.names import NoFit
from switch.stf.replication import Replication
from switch.stf.target import CheckFailed, check

_DEVICE_ID = 1
_BETWEEN_PACKETS_US = 1000
# Of one packet: a program that recirculates for ever is stopped here.
_MAX_EVENTS = 100_000


class EngineTarget:
    """One switch with every port open. Use it as a context manager.

    ports: those that the file needs, all below DROP_PORT. cpu_port: the one to the controller; None: any other.
    """

    def __init__(self, program: BuiltProgram, ports: frozenset[int], cpu_port: int | None = None) -> None:
        self._model = program.model
        self._replication = Replication()
        self._sessions: set[int] = set()
        self._entries: list[tuple[str, str | None, int]] = []
        self._members = 0
        self._value_sets: dict[str, list[int]] = {}
        with ExitStack() as stack:
            self._engine = stack.enter_context(Engine(manual_clock=True))
            if cpu_port is None:
                cpu_port = next(port for port in range(DROP_PORT - 1, -1, -1) if port not in ports)
            self._device = self._engine.add_switch(_DEVICE_ID, program.model.name, cpu_port=cpu_port)
            for port in range(DROP_PORT):
                if port != cpu_port:
                    self._engine.add_open_port(_DEVICE_ID, port)
            self._device.load(program)
            self._stack = stack.pop_all()

    def __enter__(self) -> EngineTarget:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def device(self) -> EngineDevice:
        return self._device

    @property
    def model(self) -> ProgramModel:
        return self._model

    def send(self, packet: s.Packet) -> None:
        try:
            self._engine.inject(_DEVICE_ID, packet.port, packet.frame)
            self._engine.advance(_BETWEEN_PACKETS_US, _MAX_EVENTS)
        except ValueError as error:
            raise NoFit(str(error)) from None
        except RuntimeError:
            raise CheckFailed("the packet and its copies go round in circles and never come to rest") from None

    def drain(self) -> list[tuple[int, bytes]]:
        return [(port, frame) for _, port, frame in self._engine.drain()]

    def apply(self, statement: s.Statement) -> None:
        try:
            self._apply(statement)
        except (KeyError, IndexError, ValueError) as error:
            raise NoFit(str(error.args[0] if error.args else error)) from None

    @singledispatchmethod
    def _apply(self, statement: s.Statement) -> None:
        raise TypeError(f"{type(statement).__name__} is no command to the switch")

    @_apply.register
    def _(self, statement: s.Wait) -> None:
        """Every packet has come to rest when `send` returns."""

    # ---- Tables ----

    @_apply.register
    def _(self, statement: s.Add) -> None:
        table = names.table(self._model, statement.table)
        call = names.action_call(table, statement.call)
        priority = names.priority(table, statement.priority)
        key = names.key_matches(table, statement.matches)
        if statement.entry is not None and any(name == statement.entry for _, name, _ in self._entries):
            raise NoFit(f"there is an entry {statement.entry} already")
        handle = self._device.table_insert(table.name, key, self._held(table, call), priority)
        self._entries.append((table.name, statement.entry, handle))

    def _held(self, table: Table, call: ActionCall) -> EntryCall:
        """The call; of a table with an action profile a new member that does it."""
        if table.profile is None:
            return call
        self._members += 1
        self._device.profile_member_write(table.profile, self._members, call)
        return MemberReference(self._members)

    @_apply.register
    def _(self, statement: s.SetDefault) -> None:
        table = names.table(self._model, statement.table)
        self._device.table_set_default(table.name, names.action_call(table, statement.call))

    @_apply.register
    def _(self, statement: s.Remove) -> None:
        gone = list(self._entries) if statement.entry is None else [self._entry(statement.entry)]
        for entry in gone:
            table, _, handle = entry
            self._device.table_delete(table, handle)
            self._entries.remove(entry)

    def _entry(self, name: str) -> tuple[str, str | None, int]:
        found = next((entry for entry in self._entries if entry[1] == name), None)
        if found is None:
            raise NoFit(f"there is no entry {name}: add ... = {name} names one")
        return found

    # ---- Counters, registers, meters, value sets ----

    @_apply.register
    def _(self, statement: s.CheckCounter) -> None:
        packets, bytes_ = self._count(statement.counter, statement.index)
        got = packets if statement.unit == "packets" else bytes_
        what = f"counter {statement.counter}({statement.index})"
        check(what, statement.condition, got, statement.unit)

    def _count(self, counter: str, index: int | str) -> tuple[int, int]:
        if isinstance(index, int):
            return self._device.counter_read(names.counter(self._model, counter), index)
        table, _, handle = self._entry(index)
        direct = [name for name, c in self._model.counters.items() if c.table == table]
        names.find(counter, [*direct, table], f"direct counter of table {table} named")
        return self._device.table_entry_count(table, handle)

    @_apply.register
    def _(self, statement: s.CounterRead) -> None:
        self._device.counter_read(names.counter(self._model, statement.counter), statement.index)

    @_apply.register
    def _(self, statement: s.CounterWrite) -> None:
        counter = names.counter(self._model, statement.counter)
        self._device.counter_write(counter, statement.index, statement.packets, statement.bytes)

    @_apply.register
    def _(self, statement: s.RegisterRead) -> None:
        value = self._device.register_read(names.register(self._model, statement.register), statement.index)
        if statement.condition is not None:
            check(f"register {statement.register}[{statement.index}]", statement.condition, value)

    @_apply.register
    def _(self, statement: s.RegisterWrite) -> None:
        register = names.register(self._model, statement.register)
        self._device.register_write(register, statement.index, statement.value)

    @_apply.register
    def _(self, statement: s.RegisterReset) -> None:
        register = names.register(self._model, statement.register)
        for index in range(self._model.registers[register].size):
            self._device.register_write(register, index, 0)

    @_apply.register
    def _(self, statement: s.MeterGetRates) -> None:
        self._meter_cells(statement.meter, statement.index)

    @_apply.register
    def _(self, statement: s.MeterSetRates) -> None:
        committed, peak = statement.rates
        rates = MeterRates(committed.rate_per_us * 1e6, committed.burst, peak.rate_per_us * 1e6, peak.burst)
        meter = names.meter(self._model, statement.meter)
        for index in self._meter_cells(meter, statement.index):
            self._device.state.meter_write(meter, index, rates)

    def _meter_cells(self, name: str, index: int | None) -> range:
        meter = self._model.meters[names.meter(self._model, name)]
        if index is None:
            return range(meter.size)
        if index >= meter.size:
            raise NoFit(f"meter {meter.name} has {meter.size} cells, no index {index}")
        return range(index, index + 1)

    @_apply.register
    def _(self, statement: s.ValueSetAdd) -> None:
        value_set = self._model.value_sets[names.value_set(self._model, statement.value_set)]
        members = [*self._value_sets.get(value_set.name, []), statement.value]
        mask = (1 << value_set.width) - 1
        self._device.state.value_set_write(value_set.name, [(value, mask) for value in members])
        self._value_sets[value_set.name] = members

    @_apply.register
    def _(self, statement: s.ValueSetClear) -> None:
        name = names.value_set(self._model, statement.value_set)
        self._device.state.value_set_write(name, [])
        self._value_sets.pop(name, None)

    # ---- Replication ----

    @_apply.register
    def _(self, statement: s.GroupCreate) -> None:
        self._replication.create_group(statement.group)
        self._set_group(statement.group)

    @_apply.register
    def _(self, statement: s.NodeCreate) -> None:
        self._replication.create_node(statement.instance, statement.ports)

    @_apply.register
    def _(self, statement: s.NodeUpdate) -> None:
        for group in self._replication.update_node(statement.node, statement.ports):
            self._set_group(group)

    @_apply.register
    def _(self, statement: s.NodeAssociate) -> None:
        self._replication.associate(statement.group, statement.node)
        self._set_group(statement.group)

    def _set_group(self, group: int) -> None:
        replicas = self._replication.replicas(group)
        self._device.multicast_group_set(group, replicas)
        for session in self._replication.sessions_of(group):
            self._device.clone_session_set(session, replicas)

    @_apply.register
    def _(self, statement: s.MirroringAdd) -> None:
        self._replication.forget_session(statement.session)
        self._set_session(statement.session, [Replica(statement.port)])

    @_apply.register
    def _(self, statement: s.MirroringAddMulticast) -> None:
        self._replication.mirror_to_group(statement.session, statement.group)
        self._set_session(statement.session, self._replication.replicas(statement.group))

    def _set_session(self, session: int, replicas: list[Replica]) -> None:
        self._device.clone_session_set(session, replicas)
        self._sessions.add(session)

    @_apply.register
    def _(self, statement: s.MirroringDelete) -> None:
        self._check_session(statement.session)
        self._device.clone_session_delete(statement.session)
        self._replication.forget_session(statement.session)
        self._sessions.remove(statement.session)

    @_apply.register
    def _(self, statement: s.MirroringGet) -> None:
        self._check_session(statement.session)

    def _check_session(self, session: int) -> None:
        if session not in self._sessions:
            raise NoFit(f"there is no clone session {session}: mirroring_add {session} PORT makes it")
