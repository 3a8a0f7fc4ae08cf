"""Small aggregation trials on the virtual clock, for tests: three leaves, two spines, four workers that s1 and s2 sum
for besides their ToRs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from gradbed.experiments.systems.aggregation.system import AggregationSystem

ROUNDS, FRAGMENTS, LANES = 4, 40, 32


def configuration(**sections: Any) -> AggregationConfiguration:
    """link, workload, switches and timing change single values of their sections."""
    plain: dict[str, Any] = {
        "clock": "virtual",
        "topology": {
            "kind": "leaf-spine:3,2,2",
            "link": {"rate_mbps": 100, "delay_us": 100, **sections.pop("link", {})},
        },
        "switches": {
            "placement": "explicit", "named": ["s1", "s2"], "legacy": "none", **sections.pop("switches", {}),
        },
        "workload": {
            "workers": 4, "rounds": ROUNDS, "lanes": LANES, "values": FRAGMENTS * LANES, "window_fragments": 16,
            **sections.pop("workload", {}),
        },
    }  # fmt: skip
    return AggregationConfiguration.model_validate({**plain, **sections})


def run(seed: int = 1, **sections: Any) -> TrialResult:
    """It ends only if every worker has reported every round; a sum that is not the reference's is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        task = TrialTask(configuration(**sections), seed, Scale(), Path(folder))
        return run_trial(AggregationSystem(), task)


def events(result: TrialResult, phase: int = 0) -> Mapping[str, int]:
    """Packets by event in the slots of all switches."""
    return {name: count for name, count in result.tables["events"][phase].items() if isinstance(count, int)}


def link(result: TrialResult, sender: str, receiver: str) -> Mapping[str, Any]:
    """What one direction of a link carried, and lost, in the first phase."""
    (found, *_) = [row for row in result.tables["links"] if (row["from"], row["to"]) == (sender, receiver)]
    return found
