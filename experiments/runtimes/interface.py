"""A network that runs, with its controller and its agents: what the engine needs of it, whatever the clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import LinkName, link_name
from gradbed.emulation.fabric import Fabric
from gradbed.experiments.runtimes.agents import Agents, AgentSpec
from gradbed.experiments.validity.verdict import ValidityReport
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from typing import Self

    from gradbed.switch.insight.coverage import Report as CoverageReport


class Meter(Protocol):
    """Watches a phase: a context manager around it, which then tells."""

    def achieved_rates(self) -> Mapping[tuple[str, str], float]:
        """What part of its rate a direction of a link achieved while packets waited for it; those without: it cannot
        be told."""

    def report(self, socket_drops: int, socket_packets: int) -> ValidityReport:
        """Whether the clock could keep its promise; the arguments are the agents' own counts."""


class Runtime(ABC):
    """A context manager: up when entered, gone when left. UserError for what the user can put right.

    fabric: what switches and links can do; what somebody else has to hear of goes by the runtime's own methods.
    """

    topology: Topology
    fabric: Fabric
    _agents: Agents
    _cut: frozenset[LinkName] = frozenset()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    # Jobs and counters, by the controller.
    @abstractmethod
    def add_job(self, request: BaseModel, service: str | None = None) -> dict[str, Any]:
        """service: by name; None: the system's own."""

    @abstractmethod
    def delete_job(self, number: int, service: str | None = None) -> None: ...

    @abstractmethod
    def plan(self) -> Plan:
        """What the switches are to hold now."""

    @abstractmethod
    def counters(self, switch: str) -> dict[str, list[dict[str, int]]]:
        """Counter name -> its cells that are not zero: index, packets, bytes."""

    def all_counters(self) -> dict[str, dict[str, list[dict[str, int]]]]:
        """Of every switch."""
        return {switch.name: self.counters(switch.name) for switch in self.topology.switches}

    @abstractmethod
    def registers(self, switch: str, name: str) -> Mapping[int, int | None]:
        """The cells of a register array that are not zero, by index; None: larger than the switch can tell (BMv2). A
        switch that has just restarted has none, or is waited for."""

    # Agents.
    def start_agents(self, specs: Sequence[AgentSpec]) -> None:
        """Return when all are ready."""
        self._agents.start(specs)

    def begin(self) -> None:
        """Let those work that wait for it."""
        self._agents.begin()

    @abstractmethod
    def event(self) -> Mapping[str, Any]:
        """The next event of an agent. Calls that come due before it are made (call_after)."""

    def stop_agents(self) -> dict[tuple[int, str], dict[str, Any]]:
        """End all agents of all jobs: the last statistics of each, by job number and agent name."""
        return self._agents.stop()

    def kill_agent(self, job: int, name: str) -> None:
        self._agents.kill(job, name)

    def pause_agent(self, job: int, name: str) -> None:
        """It does nothing more, as if its host had stopped, until it is resumed."""
        self._agents.pause(job, name)

    def resume_agent(self, job: int, name: str) -> None:
        self._agents.resume(job, name)

    @abstractmethod
    def restart_agent(self, job: int, name: str) -> None:
        """Start an agent again that was killed, as it was started before, and let it begin."""

    # What packets reach.
    @abstractmethod
    def coverage(self) -> list[CoverageReport]:
        """What of each program packets have reached so far; none where that was not asked for."""

    @abstractmethod
    def trace(self) -> list[dict[str, Any]]:
        """The way of the packet that was asked for: hop, switch, port, time_us and text; none where it was not."""

    # Time.
    @abstractmethod
    def now_us(self) -> int:
        """Of a clock that never goes back; emulated."""

    @abstractmethod
    def call_after(self, delay_us: int, action: Callable[[], None]) -> None:
        """Call that much later, while somebody waits for an event."""

    @abstractmethod
    def cancel_calls(self) -> None: ...

    @abstractmethod
    def look_on(self, look: Callable[[], int] | None) -> None:
        """Call `look` again and again while somebody waits for an event: it reads, changes nothing, and says when
        (now_us) it is to be called again at the latest. None: nobody looks on any more. Unlike `call_after` it is no
        part of what happens, and it goes on while the network comes to rest (virtual clock)."""

    # Faults.
    def set_link_up(self, a: str, b: str, up: bool) -> None:
        """Cut a link, or mend it; switches see their ports go down, and the controller hears of it."""
        self.fabric.set_link_up(a, b, up)
        name = link_name(self.topology.link(a, b))
        self._cut = self._cut - {name} if up else self._cut | {name}
        self._tell_controller(a, b, up)

    @abstractmethod
    def _tell_controller(self, a: str, b: str, up: bool) -> None:
        """That a link went down or came up."""

    def restart_controller(self) -> None:
        """Kill the controller as it stands; its successor takes over jobs from the journal and the rest from what
        switches hold, and hears which links are down."""
        self._restart_controller()
        self._tell_successor()

    def fail_over_controller(self) -> None:
        """As `restart_controller`, but the successor stood by, and the next one stands by from now on."""
        self._fail_over_controller()
        self._tell_successor()

    def _tell_successor(self) -> None:
        for a, b in sorted(map(sorted, self._cut)):
            self._tell_controller(a, b, False)

    @abstractmethod
    def _restart_controller(self) -> None:
        """Return when the successor is there."""

    def _fail_over_controller(self) -> None:
        """Return when the successor is there. Where controllers take no time to start it is no other."""
        self._restart_controller()

    def change_link(self, a: str, b: str, **fields: Any) -> None:
        """Change fields of a link's model (gradbed.topo.link.LinkModel), in both directions."""
        self.fabric.change_link(a, b, **fields)

    def restart_switch(self, switch: str) -> None:
        """A switch loses program, tables and registers, and gets its part of the plan again."""
        self.fabric.restart_switch(switch)

    @abstractmethod
    def meter(self) -> AbstractContextManager[Meter]:
        """Whether the clock keeps its promise from now on."""
