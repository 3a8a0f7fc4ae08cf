"""Points of the compression system on the virtual clock."""

from __future__ import annotations

from typing import Any

from gradbed.experiments.phases import PointResult
from tests.unit.points import virtual_point


def run(seed: int = 1, **sections: Any) -> PointResult:
    """Eight workers on one switch, unless told otherwise."""
    return virtual_point("compression", seed=seed, **{"topology": {"kind": "star:9"}, **sections})
