"""The interface of a runtime: a running network with its controller and its agents, on either clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import LinkName, link_name
from gradbed.emulation.backend import NetworkBackend
from gradbed.experiments.runtimes.agents import Agents
from gradbed.experiments.validity.verdict import ValidityReport
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from typing import Self

    from gradbed.switch.insight.coverage import Report as CoverageReport


class Meter(Protocol):
    """Measures a phase: a context manager around it, to be asked afterwards."""

    def achieved_rates(self) -> Mapping[tuple[str, str], float]:
        """Return the share of its rate that each link direction achieved while packets waited for it.

        Directions for which it cannot be told are left out.
        """

    def report(self, socket_drops: int, socket_packets: int) -> ValidityReport:
        """Return whether the machine kept up with the clock; the arguments are the agents' own counts."""


class Runtime(ABC):
    """A running network: up when the context is entered, gone when it is left.

    Methods raise UserError for what the user can put right. A method is here if both clocks need it to do more than
    its `backend` or its `agents` do.
    """

    topology: Topology
    backend: NetworkBackend
    """Its switches and links. What the controller has to be notified of, too, goes by the runtime's own methods."""
    agents: Agents
    """Starts, pauses and kills agents. What differs between clocks goes by the runtime's own methods."""
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
        """Ask a service for a job and return its answer. service: its name; None: the system's own."""

    @abstractmethod
    def delete_job(self, number: int, service: str | None = None) -> None: ...

    @abstractmethod
    def plan(self) -> Plan:
        """Return what the switches are to hold now."""

    @abstractmethod
    def counters(self, switch: str) -> dict[str, list[dict[str, int]]]:
        """Return the cells that are not zero (index, packets, bytes), by name of the counter."""

    def all_counters(self) -> dict[str, dict[str, list[dict[str, int]]]]:
        """Return `counters` of every switch."""
        return {switch.name: self.counters(switch.name) for switch in self.topology.switches}

    @abstractmethod
    def registers(self, switch: str, name: str) -> Mapping[int, int | None]:
        """Return the cells of a register array that are not zero, by index.

        None stands for a value that is larger than the switch can tell (BMv2). A switch that has just restarted has
        none, or is waited for.
        """

    # Agents.
    def begin(self) -> None:
        """Let the agents work that wait for it."""
        self.agents.begin()

    @abstractmethod
    def event(self) -> Mapping[str, Any]:
        """Return the next event of an agent, after making the calls that come due before it (call_after)."""

    def stop_agents(self) -> dict[tuple[int, str], dict[str, Any]]:
        """End all agents of all jobs, and return the last statistics of each, by job number and agent name."""
        return self.agents.stop()

    @abstractmethod
    def restart_agent(self, job: int, name: str) -> None:
        """Start an agent again that was killed, as it was started before, and let it begin."""

    # What packets reach.
    @abstractmethod
    def coverage(self) -> list[CoverageReport]:
        """Return what of each program packets have reached so far; nothing where that was not asked for."""

    @abstractmethod
    def trace(self) -> list[dict[str, Any]]:
        """Return a row for each hop of the traced packet: hop, switch, port, time_us, text; none without a trace."""

    # Time.
    @abstractmethod
    def now_us(self) -> int:
        """Return the time of a monotonic clock, in emulated microseconds."""

    @abstractmethod
    def call_after(self, delay_us: int, action: Callable[[], None]) -> None:
        """Call the action that much later, during a call of `event`."""

    @abstractmethod
    def cancel_calls(self) -> None: ...

    @abstractmethod
    def set_periodic_hook(self, hook: Callable[[], int] | None) -> None:
        """Call `hook` repeatedly during calls of `event`; None removes it.

        The hook reads and changes nothing, and returns when (now_us) it is to be called again at the latest. Unlike
        actions of `call_after` it is no part of what happens, and it is called while the network comes to rest, too
        (virtual clock).
        """

    # Faults.
    def set_link_up(self, a: str, b: str, up: bool) -> None:
        """Cut a link, or mend it; switches see their ports go down, and the controller hears of it."""
        self.backend.set_link_up(a, b, up)
        name = link_name(self.topology.link(a, b))
        self._cut = self._cut - {name} if up else self._cut | {name}
        self._tell_controller(a, b, up)

    @abstractmethod
    def _tell_controller(self, a: str, b: str, up: bool) -> None:
        """Tell the controller that a link went down or came up."""

    def restart_controller(self) -> None:
        """Kill the controller as it stands; its successor takes over jobs from the journal and the rest from what
        switches hold, and hears which links are down."""
        self._restart_controller()
        self._tell_successor()

    def fail_over_controller(self) -> None:
        """Do as `restart_controller`, but with a successor that stood by; the next one stands by from now on."""
        self._fail_over_controller()
        self._tell_successor()

    def _tell_successor(self) -> None:
        for a, b in sorted(map(sorted, self._cut)):
            self._tell_controller(a, b, False)

    @abstractmethod
    def _restart_controller(self) -> None:
        """Replace the controller, and return when its successor is there."""

    def _fail_over_controller(self) -> None:
        """Let the standby take over, and return when it has; by default a restart, where that takes no time."""
        self._restart_controller()

    def restart_switch(self, switch: str) -> None:
        """Restart a switch: it loses program, tables and registers, and gets its part of the plan again."""
        self.backend.restart_switch(switch)

    @abstractmethod
    def meter(self) -> AbstractContextManager[Meter]:
        """Return a monitor of whether the machine keeps up with the clock."""
