"""Trials on the virtual clock, in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.systems import find_system


def virtual_trial(
    system: str, folder: Path | None = None, seed: int = 1, factor: float = 1.0, **sections: Any
) -> TrialResult:
    """Checked as a study is, then run, on links at a factor of their rate. folder: where to leave files, if they are
    looked at."""
    found = find_system(system)
    configuration = found.configuration.model_validate({"clock": "virtual", **sections})
    found.check(configuration)
    with tempfile.TemporaryDirectory() as scratch:
        return run_trial(found, TrialTask(configuration, seed, Scale(factor), folder or Path(scratch)))


def differing_metrics(system: str, **sections: Any) -> list[str]:
    """Metrics of a configuration that differ between two seeds. AssertionError where it says that something is
    drawn."""
    first, second = of_two_seeds(system, sections)
    return [name for name in find_system(system).metrics if first.row[name] != second.row[name]]


def differing_tables(system: str, **sections: Any) -> list[str]:
    """As differing_metrics, of its further tables."""
    first, second = of_two_seeds(system, sections)
    return [name for name in {**first.tables, **second.tables} if first.tables.get(name) != second.tables.get(name)]


def of_two_seeds(system: str, sections: Mapping[str, Any]) -> list[TrialRecord]:
    configuration = find_system(system).configuration.model_validate({"clock": "virtual", **sections}).canonical()
    assert not configuration.chance()
    return [run_single_trial(system, configuration, Scale(), seed) for seed in (1, 2)]
