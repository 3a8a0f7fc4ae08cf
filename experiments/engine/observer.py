"""Who looks on while trials run: told what happens, and part of none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gradbed.experiments.configuration.faults import Fault
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.setup import NetworkSetup, TrialTask


class TrialObserver:
    """A subclass overrides what it wants to hear of. What it reads changes no result, but on the real clock takes the
    machine's time."""

    def on_network_up(self, runtime: Runtime, network: NetworkSetup, task: TrialTask[Any], system: str) -> None:
        """A trial begins."""

    def measuring(self) -> AbstractContextManager[object]:
        """Around what is measured in a phase: its agents are ready, and nothing has been sent; at the end the network
        is at rest."""
        return nullcontext()

    def on_phase_start(self, phase: Phase, jobs: Sequence[int]) -> None:
        """Its agents are ready. jobs: the controller's numbers."""

    def on_agent_event(self, event: Mapping[str, Any]) -> None:
        """An event of an agent, before the phase takes it in."""

    def on_progress(self, bars: Sequence[Progress]) -> None: ...

    def on_fault(self, fault: Fault) -> None: ...

    def on_phase_end(self, phase: Phase) -> None:
        """The network is at rest, its agents have stopped, and its jobs still stand."""

    def on_network_stop(self) -> None:
        """The trial is over, or has broken; the network still stands."""

    def on_trial_end(self) -> None:
        """However it did, and nothing of its network is left. Trials in sandboxes alone tell it."""

    def on_abort(self) -> None:
        """Somebody ended the command before its end."""


NO_OBSERVER = TrialObserver()
