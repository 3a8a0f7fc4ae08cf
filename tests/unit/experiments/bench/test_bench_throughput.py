"""What counts as reaching the bound."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.systems.aggregation.bench.throughput import SETTINGS, Reached


@pytest.mark.parametrize(
    ("changes", "judgement"),
    [
        ({}, "met"),
        ({"throughput": 0.55}, "missed"),
        ({"throughput": 0.55, "verdict": "doubtful"}, "open"),
        ({"throughput": 0.8, "verdict": "invalid"}, "exceeded"),
        ({"failures": ["not the sum"]}, "wrong"),
    ],
)
def test_judgements(changes: dict[str, Any], judgement: str) -> None:
    made: dict[str, Any] = {
        "setting": SETTINGS[0], "throughput": 0.65, "goodput": 0.65, "bound": 0.7, "verdict": "valid", "reasons": (),
        "failures": (), **changes,
    }  # fmt: skip
    assert Reached(**made).judgement == judgement
