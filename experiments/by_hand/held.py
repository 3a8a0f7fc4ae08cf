"""The verbs of a network that is held. Values go in and come out plain, so that they can cross a pipe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.entries.planner import EntriesPlanner
from gradbed.controller.entries.settings import EntriesSettings
from gradbed.controller.planning.plan import Plan, SwitchPlan
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.southbound.interface import Message, Southbound, SouthboundError, SwitchStatus
from gradbed.controller.southbound.p4runtime.pipeline import Pipeline
from gradbed.emulation.fabric import Fabric
from gradbed.experiments.by_hand.tables import Contents
from gradbed.experiments.setup import NetworkSetup
from gradbed.topo.graph import Topology

Received = tuple[int, bytes]
"""When a frame arrived, in microseconds since the network is up, and the frame."""


class Inbox:
    """gradbed.controller.southbound.interface.SouthboundListener: keeps what switches send."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Message]] = []

    def switch_changed(self, status: SwitchStatus) -> None: ...

    def message(self, switch: str, message: Message) -> None:
        self.messages.append((switch, message))


def plan_of(setup: NetworkSetup) -> Plan:
    """What the entries say that switches hold at first."""
    assert isinstance(setup.settings, EntriesSettings)
    return EntriesPlanner(setup.settings).plan(setup.topology, shortest_routes(setup.topology))


class Held(ABC):
    """A network that is up, whose only controller is who calls this. UserError for what cannot be done."""

    def __init__(
        self,
        topology: Topology,
        fabric: Fabric,
        southbound: Southbound,
        pipelines: Mapping[str, Pipeline],
        plan: Plan,
    ) -> None:
        """plan: what switches hold now. pipelines: by the names of programs."""
        self._topology = topology
        self._fabric = fabric
        self._southbound = southbound
        schemas = {name: pipeline.schema for name, pipeline in pipelines.items()}
        self._plan = Plan(
            switches={name: schemas[switch.program].normalised(switch) for name, switch in plan.switches.items()}
        )
        routes = shortest_routes(topology)
        self._schemas = {name: schemas[switch.program] for name, switch in plan.switches.items()}
        self._contents = {name: Contents(topology, routes, name, self._schemas[name]) for name in self._plan.switches}
        self._inbox = Inbox()
        southbound.listen(self._inbox)

    # ---- Switches ----

    def insert(self, switch: str, table: str, entry: Mapping[str, Any]) -> None:
        self._write(switch, self._contents[switch].inserted(self._plan[switch], table, entry, known=False))

    def modify(self, switch: str, table: str, entry: Mapping[str, Any]) -> None:
        self._write(switch, self._contents[switch].inserted(self._plan[switch], table, entry, known=True))

    def delete(self, switch: str, table: str, match: Mapping[str, Any], priority: int) -> None:
        self._write(switch, self._contents[switch].without(self._plan[switch], table, match, priority))

    def clear(self, switch: str, table: str) -> None:
        self._write(switch, self._contents[switch].cleared(self._plan[switch], table))

    def entries(self, switch: str, table: str) -> list[dict[str, Any]]:
        return self._contents[switch].entries(self._plan[switch], table)

    def merge(self, switch: str, sections: Mapping[str, Any]) -> None:
        """Sections of a file of entries: tables, multicast, clone, registers, meters."""
        self._write(switch, self._contents[switch].merged(self._plan[switch], sections))

    def write_register(self, switch: str, name: str, index: int | None, value: int) -> None:
        """index None: every cell."""
        for plan in self._contents[switch].with_register(self._plan[switch], name, index, value):
            self._write(switch, plan)

    def registers(self, switch: str, name: str) -> list[int | None]:
        """All cells."""
        try:
            return list(self._southbound.registers(switch, name))
        except SouthboundError as error:
            raise UserError(str(error)) from None

    def counters(self, switch: str) -> dict[str, dict[int, tuple[int, int]]]:
        """By short name: packets and bytes of each cell that is not zero."""
        try:
            found = self._southbound.counters(switch)
        except SouthboundError as error:
            raise UserError(str(error)) from None
        return {
            name: {cell.index: (cell.packets, cell.bytes) for cell in cells if cell.packets or cell.bytes}
            for name, cells in found.items()
        }

    def names(self, switch: str) -> dict[str, list[str]]:
        """Of tables, registers and counters of the switch's program, in full."""
        schema = self._schemas[switch]
        return {
            "tables": [each.name for each in schema.tables],
            "registers": [each.name for each in schema.registers],
            "counters": [each.short for each in schema.counters],
        }

    def messages(self) -> list[tuple[str, Message]]:
        """Digests and packet-ins since the last call: (switch, message)."""
        found, self._inbox.messages = self._inbox.messages, []
        return found

    def _write(self, switch: str, plan: SwitchPlan) -> None:
        whole = Plan(switches={**self._plan.switches, switch: self._schemas[switch].normalised(plan)})
        try:
            self._southbound.apply(whole)
        except SouthboundError as error:
            raise UserError(str(error)) from None
        self._plan = whole

    # ---- Links ----

    def set_link_up(self, a: str, b: str, up: bool) -> None:
        self._fabric.set_link_up(a, b, up)

    def change_link(self, a: str, b: str, fields: Mapping[str, Any]) -> None:
        """Fields of gradbed.topo.link.LinkModel."""
        self._fabric.change_link(a, b, **fields)

    def link_model(self, a: str, b: str) -> dict[str, Any]:
        return asdict(self._fabric.link_model(a, b))

    def link_statistics(self) -> list[dict[str, Any]]:
        """A row for each direction."""
        return [asdict(row) for row in self._fabric.link_statistics()]

    # ---- Hosts and time ----

    @abstractmethod
    def send(self, host: str, frames: Sequence[bytes]) -> None: ...

    @abstractmethod
    def received(self, host: str) -> list[Received]:
        """What has come since the last call."""

    @abstractmethod
    def wait_for_frame(self, host: str, timeout_us: int) -> None:
        """Until a frame waits at the host, but no longer."""

    @abstractmethod
    def wait(self, duration_us: int) -> None:
        """Let time go on."""

    def settle(self, timeout_s: float) -> bool:
        """Let time go on until no packet is on its way; False if some still are."""
        return self._fabric.quiesce(timeout_s)

    @abstractmethod
    def now_us(self) -> int: ...

    @abstractmethod
    def run(self, host: str, command: Sequence[str], timeout_s: float) -> tuple[int, str, str]:
        """A command on a host: status, output, error output."""
