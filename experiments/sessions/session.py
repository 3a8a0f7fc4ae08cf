"""Interactive sessions with a network: their verbs, what switches hold, and how a session is asked for.

Values go in and come out plain, so that they can cross a pipe.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import yaml

from gradbed.common.errors import UserError
from gradbed.controller.entries.collection import Collection
from gradbed.controller.entries.document import EntriesError, parse_document
from gradbed.controller.entries.planner import EntriesPlanner, EntriesSettings
from gradbed.controller.entries.sections import Reader
from gradbed.controller.planning.plan import DefaultAction, Lpm, Match, Plan, Range, SwitchPlan, TableEntry, Ternary
from gradbed.controller.planning.routing import Routes, shortest_routes
from gradbed.controller.southbound.interface import Message, Southbound, SouthboundError, SwitchStatus
from gradbed.controller.southbound.p4runtime.schema import Pipeline, ProgramSchema
from gradbed.emulation.backend import NetworkBackend
from gradbed.experiments.custom_program import CustomProgram, CustomProgramConfiguration, CustomProgramSystem
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.topo.graph import Topology

# ---- What a switch holds, in the form of files of entries (docs/entries.md) ----


_PLACE = re.compile(r"^<values>:\d+:\d+: ")
_IPV4_BITS = 32


class SwitchContents:
    """Edits the plan of one switch: each method returns a new one. UserError for what does not fit the program."""

    def __init__(self, topology: Topology, routes: Routes, switch: str, schema: ProgramSchema) -> None:
        self._reader = Reader(topology, routes, topology.switch(switch), schema)
        self._schema = schema

    def read(self, sections: Mapping[str, Any], program: str) -> SwitchPlan:
        """Return the plan that a mapping in the form of a file of entries says for this switch alone."""
        try:
            text = yaml.safe_dump(dict(sections), sort_keys=False)
        except yaml.YAMLError as error:
            raise UserError(f"entries cannot hold this: {' '.join(str(error).split())}") from None
        collection = Collection(self._schema)
        try:
            self._reader.read(parse_document(text, Path("<values>")), collection, own=True)
            return collection.plan(program)
        except EntriesError as error:
            raise UserError(_PLACE.sub("", str(error))) from None

    def inserted(self, plan: SwitchPlan, table: str, entry: Mapping[str, Any], known: bool) -> SwitchPlan:
        """Return the plan with one entry more, or (known) with other contents of one that is there."""
        name = self._schema.tables[table].name
        if "default_action" in entry:
            made = self.read({"tables": {name: [entry]}}, plan.program)
            (default,) = made.defaults
            return plan.model_copy(update={"defaults": (*_others(plan, default), default)})
        if self._schema.tables[name].needs_priority and not entry.get("priority"):
            raise UserError(f"{name} matches ternary, range or optional fields: give priority, the highest wins")
        made = self.read({"tables": {name: [entry]}}, plan.program)
        keys = {each.key for each in plan.entries}
        for each in made.entries:
            if not known and each.key in keys:
                raise UserError(f"{name} has an entry with this match already: modify it")
            if known and each.key not in keys:
                raise UserError(f"{name} has no entry with this match: insert it")
        new = {each.key: each for each in made.entries}
        kept = [each for each in plan.entries if each.key not in new]
        return plan.model_copy(update={"entries": (*kept, *new.values())})

    def without(self, plan: SwitchPlan, table: str, match: Mapping[str, Any], priority: int) -> SwitchPlan:
        """Return the plan without the entry of this match."""
        schema = self._schema.tables[table]
        if schema.is_const:
            raise UserError(f"{schema.name}: the program has its entries as constants")
        wanted = self._match(schema.name, match, plan.program)
        found = [
            each
            for each in plan.entries
            if each.table == schema.name and dict(each.match) == dict(wanted) and priority in (0, each.priority)
        ]
        if not found:
            raise UserError(f"{schema.name} has no entry with this match")
        if len(found) > 1:
            raise UserError(f"{schema.name} has {len(found)} entries with this match: give priority")
        return plan.model_copy(update={"entries": tuple(each for each in plan.entries if each is not found[0])})

    def cleared(self, plan: SwitchPlan, table: str) -> SwitchPlan:
        """Return the plan without any entry of a table."""
        name = self._schema.tables[table].name
        return plan.model_copy(update={"entries": tuple(each for each in plan.entries if each.table != name)})

    def entries(self, plan: SwitchPlan, table: str) -> list[dict[str, Any]]:
        """Return the entries of a table, each as `inserted` takes it."""
        schema = self._schema.tables[table]
        bits = {field.name: field.bits for field in schema.fields}
        return [_as_given(each, bits) for each in plan.entries if each.table == schema.name]

    def merged(self, plan: SwitchPlan, sections: Mapping[str, Any]) -> SwitchPlan:
        """Return the plan with all that the sections say, in place of what has the same keys."""
        new = self.read(sections, plan.program)
        return SwitchPlan.of(
            plan.program,
            {each.key: each for each in (*plan.entries, *new.entries)}.values(),
            {each.id: each for each in (*plan.groups, *new.groups)}.values(),
            {(each.register_name, each.index): each for each in (*plan.registers, *new.registers)}.values(),
            defaults={each.table: each for each in (*plan.defaults, *new.defaults)}.values(),
            clones={each.id: each for each in (*plan.clones, *new.clones)}.values(),
            meters={(each.meter_name, each.index): each for each in (*plan.meters, *new.meters)}.values(),
        )

    def with_register(
        self, plan: SwitchPlan, name: str, index: int | None, value: int
    ) -> tuple[SwitchPlan, SwitchPlan]:
        """Return two plans, to be written one after the other: without the cell, and with it.

        Otherwise a cell that the program has changed since it was written would be left as it is.
        """
        array = self._schema.registers[name]
        if index is not None:
            array.check_index("register", index)
        cell = self.read({"registers": {array.name: value if index is None else {index: value}}}, plan.program)
        others = tuple(
            each
            for each in plan.registers
            if each.register_name != array.name or (index is not None and each.index != index)
        )
        first = plan.model_copy(update={"registers": others})
        return first, first.model_copy(update={"registers": (*others, *cell.registers)})

    def _match(self, table: str, match: Mapping[str, Any], program: str) -> Mapping[str, Match]:
        """Return a match as entries of the table have it."""
        schema = self._schema.tables[table]
        action = next(iter(schema.actions))
        params = {param.name: 0 for param in action.params}
        item = {"match": dict(match), "action": action.name, "params": params}
        (entry,) = self.read({"tables": {table: [item]}}, program).entries
        return entry.match


def _others(plan: SwitchPlan, default: DefaultAction) -> tuple[DefaultAction, ...]:
    return tuple(each for each in plan.defaults if each.table != default.table)


def _as_given(entry: TableEntry, bits: Mapping[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "match": {field: _match_value(how, bits[field]) for field, how in entry.match.items()},
        "action": entry.action,
        "params": dict(entry.params),
    }
    return {**found, "priority": entry.priority} if entry.priority else found


def _match_value(how: Match, bits: int) -> int | str:
    if isinstance(how, Lpm):
        return f"{IPv4Address(how.value) if bits == _IPV4_BITS else how.value}/{how.prefix_bits}"
    if isinstance(how, Ternary):
        return f"{how.value:#x} &&& {how.mask:#x}"
    if isinstance(how, Range):
        return f"{how.low}..{how.high}"
    return how


# ---- The network ----


ReceivedFrame = tuple[int, bytes]
"""When a frame arrived, in microseconds since the network is up, and the frame."""


class MessageBuffer:
    """Keeps what switches send, as a gradbed.controller.southbound.interface.SouthboundListener."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Message]] = []

    def switch_changed(self, status: SwitchStatus) -> None: ...

    def message(self, switch: str, message: Message) -> None:
        self.messages.append((switch, message))


def plan_of(setup: NetworkSetup) -> Plan:
    """Return what switches hold at first, as the entries say."""
    assert isinstance(setup.settings, EntriesSettings)
    return EntriesPlanner(setup.settings).plan(setup.topology, shortest_routes(setup.topology))


class NetworkSession(ABC):
    """A network that is up, and whose only controller is the caller.

    What is asked of links goes to its `backend`. Methods raise UserError for what cannot be done.
    """

    def __init__(
        self,
        topology: Topology,
        backend: NetworkBackend,
        southbound: Southbound,
        pipelines: Mapping[str, Pipeline],
        plan: Plan,
    ) -> None:
        """Make a session with switches that hold `plan` now; pipelines are by the names of programs."""
        self._topology = topology
        self.backend = backend
        """Its switches and links."""
        self._southbound = southbound
        schemas = {name: pipeline.schema for name, pipeline in pipelines.items()}
        self._plan = Plan(
            switches={name: schemas[switch.program].normalised(switch) for name, switch in plan.switches.items()}
        )
        routes = shortest_routes(topology)
        self._schemas = {name: schemas[switch.program] for name, switch in plan.switches.items()}
        self._switch_contents = {
            name: SwitchContents(topology, routes, name, self._schemas[name]) for name in self._plan.switches
        }
        self._inbox = MessageBuffer()
        southbound.listen(self._inbox)

    # ---- Switches ----

    def insert(self, switch: str, table: str, entry: Mapping[str, Any]) -> None:
        self._write(switch, self._switch_contents[switch].inserted(self._plan[switch], table, entry, known=False))

    def modify(self, switch: str, table: str, entry: Mapping[str, Any]) -> None:
        self._write(switch, self._switch_contents[switch].inserted(self._plan[switch], table, entry, known=True))

    def delete(self, switch: str, table: str, match: Mapping[str, Any], priority: int) -> None:
        self._write(switch, self._switch_contents[switch].without(self._plan[switch], table, match, priority))

    def clear(self, switch: str, table: str) -> None:
        self._write(switch, self._switch_contents[switch].cleared(self._plan[switch], table))

    def entries(self, switch: str, table: str) -> list[dict[str, Any]]:
        return self._switch_contents[switch].entries(self._plan[switch], table)

    def merge(self, switch: str, sections: Mapping[str, Any]) -> None:
        """Add sections of a file of entries: tables, multicast, clone, registers, meters."""
        self._write(switch, self._switch_contents[switch].merged(self._plan[switch], sections))

    def write_register(self, switch: str, name: str, index: int | None, value: int) -> None:
        """Write one cell of a register, or every cell if the index is None."""
        for plan in self._switch_contents[switch].with_register(self._plan[switch], name, index, value):
            self._write(switch, plan)

    def registers(self, switch: str, name: str) -> list[int | None]:
        """Return all cells of a register array."""
        try:
            return list(self._southbound.registers(switch, name))
        except SouthboundError as error:
            raise UserError(str(error)) from None

    def counters(self, switch: str) -> dict[str, dict[int, tuple[int, int]]]:
        """Return packets and bytes of each cell that is not zero, by the counter's short name."""
        try:
            found = self._southbound.counters(switch)
        except SouthboundError as error:
            raise UserError(str(error)) from None
        return {
            name: {cell.index: (cell.packets, cell.bytes) for cell in cells if cell.packets or cell.bytes}
            for name, cells in found.items()
        }

    def names(self, switch: str) -> dict[str, list[str]]:
        """Return the full names of tables, registers and counters of the switch's program."""
        schema = self._schemas[switch]
        return {
            "tables": [each.name for each in schema.tables],
            "registers": [each.name for each in schema.registers],
            "counters": [each.short for each in schema.counters],
        }

    def messages(self) -> list[tuple[str, Message]]:
        """Return digests and packet-ins since the last call: (switch, message)."""
        found, self._inbox.messages = self._inbox.messages, []
        return found

    def _write(self, switch: str, plan: SwitchPlan) -> None:
        whole = Plan(switches={**self._plan.switches, switch: self._schemas[switch].normalised(plan)})
        try:
            self._southbound.apply(whole)
        except SouthboundError as error:
            raise UserError(str(error)) from None
        self._plan = whole

    # ---- Hosts and time ----

    @abstractmethod
    def send(self, host: str, frames: Sequence[bytes]) -> None: ...

    @abstractmethod
    def received(self, host: str) -> list[ReceivedFrame]:
        """Return the frames that have come since the last call."""

    @abstractmethod
    def wait_for_frame(self, host: str, timeout_us: int) -> None:
        """Let time advance until a frame waits at the host, or the timeout."""

    @abstractmethod
    def wait(self, duration_us: int) -> None:
        """Let time advance."""

    @abstractmethod
    def now_us(self) -> int: ...

    @abstractmethod
    def run(self, host: str, command: Sequence[str], timeout_s: float) -> tuple[int, str, str]:
        """Run a command on a host, and return its status, output and error output."""


# ---- What is to be session ----


def task_of(
    order: Mapping[str, Any], folder: Path
) -> tuple[CustomProgramSystem, TrialTask[CustomProgramConfiguration]]:
    """Return the system and task of a session.

    order: values (of CustomProgramConfiguration), program, entries and macros (as in CustomProgram), and seed.
    folder: for logs.
    """
    system = CustomProgramSystem(CustomProgram(order["program"], order["entries"], macros=order["macros"]))
    configuration = CustomProgramConfiguration.model_validate(order["values"])
    return system, TrialTask(configuration, order["seed"], Scale(), folder)
