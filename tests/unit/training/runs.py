"""Small jobs of the system training, on links of 100 Gbit/s and 1 us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradbed.experiments.phases import TrialResult
from tests.unit.trials import virtual_trial

LINK = {"rate_mbps": 100_000, "delay_us": 1, "queue_packets": 4096}
CONTENTS = {"contents": True}


def run(
    kind: str, folder: Path | None = None, link: dict[str, Any] | None = None, seed: int = 1, **sections: Any
) -> TrialResult:
    """kind: of the topology."""
    topology = {"kind": kind, "link": {**LINK, **(link or {})}}
    return virtual_trial("training", folder, seed, topology=topology, **sections)


def number(found: TrialResult, metric: str) -> float:
    """A metric that is there."""
    value = found.metrics[metric]
    assert isinstance(value, int | float)
    return value
