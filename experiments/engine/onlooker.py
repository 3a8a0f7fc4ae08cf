"""Who looks on while points run: told what happens, and part of none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gradbed.experiments.configuration.faults import Fault
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.setup import NetworkSetup, PointTask
from gradbed.experiments.testbeds.interface import Testbed


class Onlooker:
    """A subclass overrides what it wants to hear of. What it reads changes no result, but on the real clock takes the
    machine's time."""

    def network_is_up(self, testbed: Testbed, network: NetworkSetup, task: PointTask[Any], system: str) -> None:
        """A point begins."""

    def measuring(self) -> AbstractContextManager[object]:
        """Around what is measured in a phase: its agents are ready, and nothing has been sent; at the end the network
        is at rest."""
        return nullcontext()

    def phase_begins(self, phase: Phase, jobs: Sequence[int]) -> None:
        """Its agents are ready. jobs: the controller's numbers."""

    def agent_told(self, event: Mapping[str, Any]) -> None:
        """An event of an agent, before the phase takes it in."""

    def progressed(self, bars: Sequence[Progress]) -> None: ...

    def fault_happens(self, fault: Fault) -> None: ...

    def phase_ended(self, phase: Phase) -> None:
        """The network is at rest, its agents have stopped, and its jobs still stand."""

    def network_goes(self) -> None:
        """The point is over, or has broken; the network still stands."""

    def point_ended(self) -> None:
        """However it did, and nothing of its network is left. Points in sandboxes alone tell it."""

    def given_up(self) -> None:
        """Somebody ended the command before its end."""


NOBODY = Onlooker()
