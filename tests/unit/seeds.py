"""Two seeds of a point that draws nothing by chance."""

from __future__ import annotations

from typing import Any

from experiments.scale import Scale
from experiments.study.running.execution import run_now
from experiments.systems import find_system


def differing_metrics(system: str, **sections: Any) -> list[str]:
    """Metrics of a configuration on the virtual clock that differ between two seeds. AssertionError where it says
    that something is drawn."""
    configuration = find_system(system).configuration.model_validate({"clock": "virtual", **sections}).canonical()
    assert not configuration.chance()
    first, second = (run_now(system, configuration, Scale(), seed).row for seed in (1, 2))
    return [name for name in find_system(system).metrics if first[name] != second[name]]
