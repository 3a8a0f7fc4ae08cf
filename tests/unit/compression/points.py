"""Points of the compression system on the virtual clock, in this process."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from experiments.engine.point import run_point
from experiments.phases import PointResult
from experiments.scale import Scale
from experiments.setup import PointTask
from experiments.systems import find_system


def run(seed: int = 1, **sections: Any) -> PointResult:
    """Eight workers on one switch, unless told otherwise."""
    system = find_system("compression")
    configuration = system.configuration.model_validate(
        {"clock": "virtual", "topology": {"kind": "star:9"}, **sections}
    )
    system.check(configuration)
    with tempfile.TemporaryDirectory() as folder:
        return run_point(system, PointTask(configuration, seed, Scale(), Path(folder)))
