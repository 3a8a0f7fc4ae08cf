"""Random configurations of every system, with random faults and mistakes: no run may close with its sentence over a
wrong result. What is right each system's module says by itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.compression.random_runs import RUNS as COMPRESSION
from tests.unit.experiments.running.random_aggregations import RUNS as AGGREGATION
from tests.unit.interconnect.random_runs import RUNS as INTERCONNECT
from tests.unit.ndn.random_runs import RUNS as NDN
from tests.unit.random_runs import RandomRuns
from tests.unit.shuffle.random_runs import RUNS as SHUFFLE
from tests.unit.workload.random_runs import RUNS as WORKLOAD

SYSTEMS = {
    "aggregation": AGGREGATION,
    "compression": COMPRESSION,
    "interconnect": INTERCONNECT,
    "ndn": NDN,
    "shuffle": SHUFFLE,
    "workload": WORKLOAD,
}
of_every_system = pytest.mark.parametrize("runs", SYSTEMS.values(), ids=SYSTEMS)


@pytest.mark.commit_cases(1)
@of_every_system
def test_no_random_run_closes_over_a_wrong_result(runs: RandomRuns) -> None:
    runs.outcomes(runs.few)


@pytest.mark.nightly
@of_every_system
def test_no_run_of_200_closes_over_a_wrong_result(runs: RandomRuns) -> None:
    outcomes = runs.outcomes(200)
    print(dict(outcomes))
    assert outcomes["right"] > runs.right and outcomes["failed"] >= runs.failed


MISTAKEN = [
    pytest.param(runs, drawn, id=f"{name}-{mistake}")
    for name, runs in SYSTEMS.items()
    for mistake, drawn in runs.mistaken.items()
]


@pytest.mark.parametrize(("runs", "drawn"), MISTAKEN)
def test_each_mistake_is_seen(runs: RandomRuns, drawn: Any) -> None:
    assert runs.check(drawn) != "right"
