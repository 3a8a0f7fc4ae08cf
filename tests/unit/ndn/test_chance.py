"""NDN draws nothing where it says so: two seeds give the same metrics."""

from __future__ import annotations

import pytest

from tests.unit.seeds import differing_metrics


@pytest.mark.parametrize("exchange", ["push", "pull", "ring"])
def test_two_seeds_give_the_same(exchange: str) -> None:
    workload = {"peers": 3, "rounds": 2, "exchange": exchange}
    assert differing_metrics("ndn", topology={"kind": "star:4"}, workload=workload) == []
