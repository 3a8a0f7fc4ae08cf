"""The table of Mininet's trials beside the virtual clock's (docs/experiments.md) is what the data say."""

from __future__ import annotations

import csv
from statistics import median

import pytest

from tests.unit.documented_figures import ROOT, said

QUANTITIES = {
    "iteration_time_s": "iteration time",
    "ratio": "share of the gradient sent after the link became slower",
    "accepted_load": "accepted load",
    "largest_link_load": "maximum link load",
    "latency_s": "mean latency",
    "round_time_s": "round time",
    "counted_hops": "packet hops",
    "fabric_load_max_over_mean": "core link load, maximum / mean",
    "shuffle_time_s": "shuffle completion time",
    "total_time_s": "training time with a slow peer",
}

with (ROOT / "docs" / "data" / "mininet_trials.csv").open(newline="", encoding="utf-8") as _file:
    TRIALS = [row for row in csv.DictReader(_file) if row["metric"]]


@pytest.mark.parametrize(
    ("system", "metric"), sorted({(row["study"].split("_")[0], row["metric"]) for row in TRIALS})
)
def test_a_row(system: str, metric: str) -> None:
    found = [row for row in TRIALS if row["study"].startswith(system) and row["metric"] == metric]
    ratios = [float(row["real"]) / float(row["virtual"]) for row in found]
    assert all(ratio > 0 for ratio in ratios), "trials without a measurement are no ratios"
    valid = sum(row["verdict"] == "valid" for row in found)
    shown = " | ".join(f"{value:.2f}" for value in (min(ratios), median(ratios), max(ratios)))
    said("docs/experiments.md", f"| {system} | {QUANTITIES[metric]} | {len(found)} | {valid} | {shown} |")
