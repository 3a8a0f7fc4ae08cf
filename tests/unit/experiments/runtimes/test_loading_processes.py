"""Processes that load their modules for a network that does not come about."""

from __future__ import annotations

import signal
from pathlib import Path

from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.runtimes.loading import loading_runtime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask


def test_nobody_waits_for_processes_to_load_what_nobody_needs(tmp_path: Path) -> None:
    """One that were asked to end would do so with status 0, once it had loaded everything."""
    with loading_runtime(TrialTask(TrialConfiguration(clock="real"), 1, Scale(), tmp_path)) as made:
        assert made is not None
        processes = [made.controller._process, made.switches._process._process]
        assert [process.poll() for process in processes] == [None, None]
    assert [process.returncode for process in processes] == [-signal.SIGKILL] * 2
