"""Trials of the compression system on the virtual clock."""

from __future__ import annotations

from typing import Any

from gradbed.experiments.phases import TrialResult
from tests.unit.trials import virtual_trial


def run(seed: int = 1, **sections: Any) -> TrialResult:
    """Eight workers on one switch, unless told otherwise."""
    return virtual_trial("compression", seed=seed, **{"topology": {"kind": "star:9"}, **sections})
