"""Compression draws nothing where it says so: two seeds give the same metrics."""

from __future__ import annotations

import pytest

from tests.unit.seeds import differing_metrics


@pytest.mark.parametrize("compress", ["none", "quantise:8", "powersgd:2"])
def test_two_seeds_give_the_same(compress: str) -> None:
    workload = {"workers": 3, "rounds": 3, "values": 4000}
    sections = {"topology": {"kind": "star:4"}, "workload": workload, "compression": {"compress": compress}}
    assert differing_metrics("compression", **sections) == []
