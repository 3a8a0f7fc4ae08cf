"""All switches of a network in this process, on the virtual clock."""

from __future__ import annotations

from typing import Protocol

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.emulation.switches.gradbed_fabric import GradbedFabric
from gradbed.switch.engine_fabric import EngineFabric
from gradbed.switch.fabric_commands import Answer, Command
from gradbed.topo.graph import Topology


class SteppedClock(Protocol):
    """gradbed.hosts.agents.virtual.clock.VirtualClock."""

    @property
    def now_ns(self) -> int: ...

    def step(self) -> bool:
        """Let time go on to the next event; False: there is none."""


class VirtualSwitches(GradbedFabric):
    """Switches on a fabric with links in memory, whose time goes on by the clock."""

    def __init__(self, topology: Topology, fabric: EngineFabric, clock: SteppedClock) -> None:
        super().__init__(topology, "memory")
        self._fabric = fabric
        self._clock = clock

    def _ask(self, command: Command) -> Answer:
        return command.run(self._fabric) or {}

    def _p4runtime_address(self, switch: str) -> str:
        raise REAL_CLOCK.missing("a server of P4Runtime")

    def _quiesce(self, timeout_s: float) -> bool:
        """Let the virtual clock run until nothing is in flight."""
        end_ns = self._clock.now_ns + round(1e9 * timeout_s)
        while not self._fabric.engine.quiesce(0):
            if self._clock.now_ns > end_ns or not self._clock.step():
                return self._fabric.engine.quiesce(0)
        return True
