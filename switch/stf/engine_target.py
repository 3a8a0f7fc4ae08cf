"""STF on this project's own switch: in process and on a manual clock, so that every run comes out the same."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.switch.bmv2_json.model import Table, ValueSet
from gradbed.switch.codegen import BuiltProgram
from gradbed.switch.device import (
    ActionCall,
    Counts,
    EntryCall,
    GroupReference,
    KeyMatch,
    MemberReference,
    MeterRates,
    Replica,
)
from gradbed.switch.engine import Engine
from gradbed.switch.engine.abi import DROP_PORT
from gradbed.switch.stf import statements as s
from gradbed.switch.stf.names import NoFit
from gradbed.switch.stf.target import AddedEntry, CheckFailed, CommandTarget

# ---- Multicast groups and clone sessions as BMv2's command line makes them ----


class StfReplication:
    """The groups that STF statements have built so far."""

    def __init__(self) -> None:
        self._nodes: list[tuple[int, tuple[int, ...]]] = []
        self._groups: dict[int, list[int]] = {}
        self._sessions: dict[int, int] = {}

    def create_group(self, group: int) -> None:
        if group in self._groups:
            raise NoFit(f"there is a multicast group {group} already")
        self._groups[group] = []

    def create_node(self, instance: int, ports: tuple[int, ...]) -> None:
        self._nodes.append((instance, ports))

    def update_node(self, node: int, ports: tuple[int, ...]) -> list[int]:
        """Update a node, and return the groups that change with it."""
        self._check_node(node)
        self._nodes[node] = (self._nodes[node][0], ports)
        return [group for group, nodes in self._groups.items() if node in nodes]

    def associate(self, group: int, node: int) -> None:
        self._check_group(group)
        self._check_node(node)
        if any(node in nodes for nodes in self._groups.values()):
            raise NoFit(f"node {node} is in a multicast group already")
        self._groups[group].append(node)

    def replicas(self, group: int) -> list[Replica]:
        self._check_group(group)
        nodes = [self._nodes[node] for node in self._groups[group]]
        return [Replica(port, instance) for instance, ports in nodes for port in ports]

    def mirror_to_group(self, session: int, group: int) -> None:
        self._check_group(group)
        self._sessions[session] = group

    def forget_session(self, session: int) -> None:
        self._sessions.pop(session, None)

    def sessions_of(self, group: int) -> list[int]:
        return [session for session, its_group in self._sessions.items() if its_group == group]

    def _check_group(self, group: int) -> None:
        if group not in self._groups:
            raise NoFit(f"there is no multicast group {group}: mc_mgrp_create {group} first")

    def _check_node(self, node: int) -> None:
        if node >= len(self._nodes):
            raise NoFit(f"there is no multicast node {node}: mc_node_create makes them, from 0 on")


# ---- The target ----


_DEVICE_ID = 1
_BETWEEN_PACKETS_US = 1000
# Of one packet: a program that recirculates for ever is stopped here.
_MAX_EVENTS = 100_000


class EngineTarget(CommandTarget):
    """A switch with every port open; a context manager.

    `ports`: those that the file needs, all below DROP_PORT. `cpu_port`: the one to the controller; None for any
    other.
    """

    def __init__(self, program: BuiltProgram, ports: frozenset[int], cpu_port: int | None = None) -> None:
        super().__init__(program.model)
        self._replication = StfReplication()
        self._sessions: set[int] = set()
        self._members = self._groups = 0
        self._value_sets: dict[str, list[int]] = {}
        with self._stack as stack:
            self.engine = stack.enter_context(Engine(manual_clock=True))
            if cpu_port is None:
                cpu_port = next(port for port in range(DROP_PORT - 1, -1, -1) if port not in ports)
            self.device = self.engine.add_switch(_DEVICE_ID, program.model.name, cpu_port=cpu_port)
            for port in range(DROP_PORT):
                if port != cpu_port:
                    self.engine.add_open_port(_DEVICE_ID, port)
            self.device.load(program)
            self._stack = stack.pop_all()

    def send(self, packet: s.Packet) -> None:
        try:
            self.engine.inject(_DEVICE_ID, packet.port, packet.frame)
            self.engine.advance(_BETWEEN_PACKETS_US, _MAX_EVENTS)
        except ValueError as error:
            raise NoFit(str(error)) from None
        except RuntimeError:
            raise CheckFailed("the packet and its copies go round in circles and never come to rest") from None

    @property
    def entries(self) -> tuple[AddedEntry, ...]:
        """Return those that were added and not removed, in order."""
        return tuple(self._entries)

    def drain(self) -> list[tuple[int, bytes]]:
        return [(port, frame) for _, port, frame in self.engine.drain()]

    def apply(self, statement: s.StfStatement) -> None:
        """Carry out a statement; every packet has come to rest when `send` returns."""
        try:
            self._carry_out(statement)
        except (KeyError, IndexError, ValueError) as error:
            raise NoFit(str(error.args[0] if error.args else error)) from None

    # ---- Tables ----

    def _insert(self, table: Table, key: Sequence[KeyMatch], call: ActionCall, priority: int) -> int:
        held: EntryCall = call if table.profile is None else MemberReference(self._member(table.profile, call))
        return self.device.state.tables.insert(table.name, key, held, priority)

    def _member(self, profile: str, call: ActionCall) -> int:
        """Create a member that runs this action, and return its number."""
        self._members += 1
        self.device.state.profiles.write_member(profile, self._members, call)
        return self._members

    def _insert_group(self, table: Table, key: Sequence[KeyMatch], calls: Sequence[ActionCall], priority: int) -> int:
        assert table.profile is not None
        members = [self._member(table.profile, call) for call in calls]
        self._groups += 1
        self.device.state.profiles.write_group(table.profile, self._groups, members)
        return self.device.state.tables.insert(table.name, key, GroupReference(self._groups), priority)

    def _set_default(self, table: Table, call: ActionCall) -> None:
        self.device.state.tables.set_default(table.name, call)

    def _delete(self, entry: AddedEntry) -> None:
        self.device.state.tables.delete(entry.table.name, entry.handle)

    # ---- Counters, registers, meters, value sets ----

    def _entry_count(self, entry: AddedEntry, counter: str) -> Counts:
        return self.device.state.tables.count(entry.table.name, entry.handle)

    def _counter_read(self, counter: str, index: int) -> Counts:
        return self.device.state.counters.read(counter, index)

    def _counter_write(self, counter: str, index: int, counts: Counts) -> None:
        self.device.state.counters.write(counter, index, *counts)

    def _register_read(self, register: str, index: int, compared: bool) -> int:
        return self.device.state.registers.read(register, index)

    def _register_write(self, register: str, index: int, value: int) -> None:
        self.device.state.registers.write(register, index, value)

    def _register_reset(self, register: str) -> None:
        for index in range(self.model.registers[register].size):
            self.device.state.registers.write(register, index, 0)

    def _meter_read(self, meter: str, index: int) -> None:
        self._meter_cells(meter, index)

    def _meter_write(self, meter: str, index: int | None, rates: tuple[s.Rate, s.Rate]) -> None:
        for cell in self._meter_cells(meter, index):
            self.device.state.meters.write(meter, cell, _per_second(rates))

    def _entry_meter_write(self, entry: AddedEntry, meter: str, rates: tuple[s.Rate, s.Rate]) -> None:
        self.device.state.tables.write_meter(entry.table.name, entry.handle, _per_second(rates))

    def _meter_cells(self, meter: str, index: int | None) -> range:
        size = self.model.meters[meter].size
        if index is None:
            return range(size)
        if index >= size:
            raise NoFit(f"meter {meter} has {size} cells, no index {index}")
        return range(index, index + 1)

    def _value_set_add(self, value_set: ValueSet, value: int) -> None:
        members = [*self._value_sets.get(value_set.name, []), value]
        mask = (1 << value_set.width) - 1
        self.device.state.value_sets.write(value_set.name, [(value, mask) for value in members])
        self._value_sets[value_set.name] = members

    def _value_set_clear(self, value_set: str) -> None:
        self.device.state.value_sets.write(value_set, [])
        self._value_sets.pop(value_set, None)

    # ---- Replication ----

    def _replicate(self, statement: s.StfStatement) -> None:
        replication = self._replication
        match statement:
            case s.GroupCreate(group=group):
                replication.create_group(group)
                self._set_group(group)
            case s.NodeCreate(instance=instance, ports=ports):
                replication.create_node(instance, ports)
            case s.NodeUpdate(node=node, ports=ports):
                for group in replication.update_node(node, ports):
                    self._set_group(group)
            case s.NodeAssociate(group=group, node=node):
                replication.associate(group, node)
                self._set_group(group)
            case s.MirroringAdd(session=session, port=port):
                replication.forget_session(session)
                self._set_session(session, [Replica(port)])
            case s.MirroringAddMulticast(session=session, group=group):
                replication.mirror_to_group(session, group)
                self._set_session(session, replication.replicas(group))
            case s.MirroringDelete(session=session):
                self._check_session(session)
                self.device.replication.delete_session(session)
                replication.forget_session(session)
                self._sessions.remove(session)
            case s.MirroringGet(session=session):
                self._check_session(session)
            case _:
                raise TypeError(f"{type(statement).__name__} is no command to the switch")

    def _set_group(self, group: int) -> None:
        replicas = self._replication.replicas(group)
        self.device.replication.set_group(group, replicas)
        for session in self._replication.sessions_of(group):
            self.device.replication.set_session(session, replicas)

    def _set_session(self, session: int, replicas: list[Replica]) -> None:
        self.device.replication.set_session(session, replicas)
        self._sessions.add(session)

    def _check_session(self, session: int) -> None:
        if session not in self._sessions:
            raise NoFit(f"there is no clone session {session}: mirroring_add {session} PORT makes it")


def _per_second(rates: tuple[s.Rate, s.Rate]) -> MeterRates:
    committed, peak = rates
    return MeterRates(committed.rate_per_us * 1e6, committed.burst, peak.rate_per_us * 1e6, peak.burst)
