"""Points of the shuffle system on the virtual clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.engine.point import run_point
from experiments.phases import PointResult
from experiments.scale import Scale
from experiments.setup import PointTask
from experiments.systems.shuffle.configuration import ShuffleConfiguration
from experiments.systems.shuffle.system import ShuffleSystem


def shuffle_point(folder: Path, seed: int = 1, factor: float = 1.0, **sections: Any) -> PointResult:
    """One point with these sections, on links at a factor of their rate."""
    configuration = ShuffleConfiguration.model_validate({"clock": "virtual", **sections})
    system = ShuffleSystem()
    system.check(configuration)
    return run_point(system, PointTask(configuration, seed=seed, scale=Scale(factor), folder=folder))
