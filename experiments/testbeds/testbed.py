"""A network that runs, with its controller and its agents: what the engine needs of it, whatever the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from emulation.links.link_statistics import DirectionStatistics
from experiments.fidelity.report import FidelityReport
from topo.graph import Topology

if TYPE_CHECKING:
    from experiments.setup import NetworkSetup, PointTask, Served
    from experiments.testbeds.agents import AgentSpec
    from switch.insight.coverage.coverage import Report as CoverageReport


class Meter(Protocol):
    """Watches a phase: a context manager around it, which then tells."""

    def achieved_rates(self) -> Mapping[tuple[str, str], float]:
        """What part of its rate a direction of a link achieved while packets waited for it; those without: it cannot
        be told."""

    def report(self, socket_drops: int, socket_packets: int) -> FidelityReport:
        """Whether the clock could keep its promise; the arguments are the agents' own counts."""


class Testbed(Protocol):
    """A context manager: up when entered, gone when left. UserError for what the user can put right."""

    topology: Topology

    def __enter__(self) -> Testbed: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    # Jobs and counters, by the controller.
    def add_job(self, request: BaseModel) -> dict[str, Any]: ...

    def delete_job(self, number: int) -> None: ...

    def counters(self, switch: str) -> dict[str, list[dict[str, int]]]:
        """Counter name -> its cells that are not zero: index, packets, bytes."""

    def registers(self, switch: str, name: str) -> Mapping[int, int | None]:
        """The cells of a register array that are not zero, by index; None: larger than the switch can tell (BMv2)."""

    # Agents.
    def start_agents(self, specs: Sequence[AgentSpec]) -> None:
        """Return when all are ready."""

    def begin(self) -> None:
        """Let those work that wait for it."""

    def event(self) -> Mapping[str, Any]:
        """The next event of an agent. Calls that come due before it are made (call_after)."""

    def stop_agents(self) -> dict[tuple[int, str], dict[str, Any]]:
        """End all agents of all jobs: the last statistics of each, by job number and agent name."""

    def kill_agent(self, job: int, name: str) -> None: ...

    def restart_agent(self, job: int, name: str) -> None:
        """Start an agent again that was killed, as it was started before, and let it begin."""

    def coverage(self) -> list[CoverageReport]:
        """What of each program packets have reached so far; none where that was not asked for."""

    def trace(self) -> list[dict[str, Any]]:
        """The way of the packet that was asked for: hop, switch, port, time_us and text; none where it was not."""

    # Time.
    def now_us(self) -> int:
        """Of a clock that never goes back; emulated."""

    def call_after(self, delay_us: int, action: Callable[[], None]) -> None:
        """Call that much later, while somebody waits for an event."""

    def cancel_calls(self) -> None: ...

    # The network.
    def link_statistics(self) -> list[DirectionStatistics]:
        """One row per direction of every link, since the start."""

    def device_statistics(self) -> dict[str, dict[str, int]]:
        """By switch: what became of packets other than leaving it (switch.engine.DeviceStatistics); only of switches
        that can tell."""

    def set_link_up(self, a: str, b: str, up: bool) -> None:
        """Cut a link, or mend it; switches see their ports go down, and the controller hears of it."""

    def change_link(self, a: str, b: str, **fields: Any) -> None:
        """Change fields of a link's model (switch.link.LinkModel), in both directions."""

    def restart_switch(self, switch: str) -> None:
        """A switch loses program, tables and registers; return when it holds its part of the plan again."""

    def quiesce(self, timeout_s: float) -> bool:
        """Wait until no packet is on its way between switches; False if some still are."""

    def packets_on_their_way(self) -> int | None:
        """At most so many are now; None: nobody can tell."""

    def start_capture(self, file: Path, host: str) -> None:
        """Write what passes a host's access link, both ways, to a pcap file from now on."""

    def meter(self) -> AbstractContextManager[Meter]: ...


def open_testbed(system: Served, network: NetworkSetup, task: PointTask) -> Testbed:
    """The network of a point on the clock that its configuration names."""
    if task.configuration.clock == "virtual":
        from experiments.testbeds.virtual_testbed import VirtualTestbed

        return VirtualTestbed(system, network, task)
    from experiments.testbeds.mininet_testbed import MininetTestbed

    return MininetTestbed(system, network, task)
