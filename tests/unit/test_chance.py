"""Systems draw nothing where they say so: two seeds give the same metrics (aggregation:
tests/unit/experiments/figures/test_aggregation_chance.py)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.points import differing_metrics

NDN = {"peers": 3, "rounds": 2}
COMPRESSION = {"workers": 3, "rounds": 3, "values": 4000}


@pytest.mark.parametrize(
    ("system", "sections"),
    [
        *(("ndn", {"workload": {**NDN, "exchange": exchange}}) for exchange in ("push", "pull", "ring")),
        *(
            ("compression", {"workload": COMPRESSION, "compression": {"compress": compress}})
            for compress in ("none", "quantise:8", "powersgd:2")
        ),
    ],
)
def test_two_seeds_give_the_same(system: str, sections: dict[str, Any]) -> None:
    assert differing_metrics(system, topology={"kind": "star:4"}, **sections) == []
