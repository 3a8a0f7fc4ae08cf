"""Aggregation draws nothing where it says so: two seeds give the same metrics."""

from __future__ import annotations

from typing import Any

import pytest

from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from tests.unit.trials import differing_metrics

SMALL = {"workers": 4, "rounds": 2, "values": 3520}


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    "sections",
    [
        {"workload": SMALL},
        {"workload": {**SMALL, "exchange": "ring"}},
        {"workload": {**SMALL, "jobs": 2}, "switches": {"slots": 8}},
        {"workload": {**SMALL, "workers": 2, "jobs": 2}, "switches": {"programmable": 1}},
        {"workload": {**SMALL, "blocks": 0.3, "baselines": ["parameter-server"]}},
    ],
    ids=["server", "ring", "slots", "jobs", "blocks"],
)
def test_two_seeds_give_the_same(sections: dict[str, Any]) -> None:
    assert differing_metrics("aggregation", **sections) == []


def test_what_is_drawn() -> None:
    drawn = {"clock": "virtual", "switches": {"placement": "random", "programmable": 2}}
    assert AggregationConfiguration.model_validate(drawn).chance() == ("switches that sum",)
    training = {"clock": "virtual", "workload": {"kind": "training"}}
    assert AggregationConfiguration.model_validate(training).chance() == ("training",)
