"""Observers of trials: callbacks while a trial runs, without a part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gradbed.experiments.configuration.faults import Fault
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.setup import NetworkSetup, TrialTask


class TrialObserver:
    """Receive callbacks while a trial runs.

    Override the hooks that you need. Observers must not change the network; on the real clock the time that they take
    is taken from the trial.
    """

    def on_network_up(self, runtime: Runtime, network: NetworkSetup, task: TrialTask[Any], system: str) -> None:
        """Called when the network is up, before the first phase."""

    def measuring(self) -> AbstractContextManager[object]:
        """Return a context around the measured part of a phase.

        At its beginning the agents are ready and nothing has been sent; at its end the network is at rest.
        """
        return nullcontext()

    def on_phase_start(self, phase: Phase, jobs: Sequence[int]) -> None:
        """Called when the agents of a phase are ready. jobs: the controller's numbers."""

    def on_agent_event(self, event: Mapping[str, Any]) -> None:
        """Called with each agent event, before the phase processes it."""

    def on_progress(self, bars: Sequence[Progress]) -> None:
        """Called after each agent event, with how far every job is."""

    def on_fault(self, fault: Fault) -> None:
        """Called when a fault is injected."""

    def on_phase_end(self, phase: Phase) -> None:
        """Called when the network is at rest and the agents have stopped, while the jobs still stand."""

    def on_network_stop(self) -> None:
        """Called just before the network is torn down, also after an error."""

    def on_trial_end(self) -> None:
        """Called in the sandbox when nothing of the network is left, whatever the outcome (real clock alone)."""

    def on_abort(self) -> None:
        """Called when the command is interrupted."""


NO_OBSERVER = TrialObserver()
