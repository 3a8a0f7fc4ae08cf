"""Trials in which nothing is drawn by chance run once; those that say so are held to it by two seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.study.loading import load_study
from tests.unit.experiments.study import coin  # noqa: F401  # registers the system

ROOT = Path(__file__).resolve().parents[4]
BASE = "name: tosses\nsystem: coins\nclock: virtual\nrepetitions: 3\n"


def repetitions(tmp_path: Path, text: str) -> list[int]:
    (tmp_path / "study.yaml").write_text(BASE + text)
    return [trial.repetition for trial in load_study(tmp_path / "study.yaml").trials]


def test_only_trials_with_chance_are_repeated(tmp_path: Path) -> None:
    swept = "sweep: {product: {coins.bias: [0, 0.5, 1]}}"
    assert repetitions(tmp_path, swept) == [0, 0, 1, 2, 0]


@pytest.mark.parametrize(
    ("section", "count"),
    [
        ("", 1),
        ("clock: real", 3),
        ("topology: {link: {loss: 0.1}}", 3),
        ("topology: {link: {duplicate: 0.1}}", 3),
        ("topology: {link: {jitter_us: 1}}", 3),
        ("topology: {tiers: {host: {loss: 0.1}}}", 3),
        ("faults: [{fault: link-change, link: [c1, a1], at_ms: 1, change: {loss: 0.1}}]", 3),
        ("faults: [{fault: link-change, link: [c1, a1], at_ms: 1, change: {rate_mbps: 1}}]", 1),
        ("faults: [{fault: link-down, link: [c1, a1], at_ms: 1}]", 1),
        ("timing: {compute_us: 5}", 1),
        ("timing: {compute_us: 5, compute_distribution: exponential}", 3),
        ("timing: {compute_distribution: exponential}", 1),
    ],
)
def test_what_is_drawn_on_every_network(tmp_path: Path, section: str, count: int) -> None:
    text = f"coins: {{bias: 0}}\n{section}"
    if section.startswith("clock"):
        text = "coins: {bias: 0}\n"
        (tmp_path / "study.yaml").write_text(BASE.replace("clock: virtual", section) + text)
        assert len(load_study(tmp_path / "study.yaml").trials) == count
    else:
        assert len(repetitions(tmp_path, text)) == count


def test_what_means_the_same_is_repeated_or_not_alike() -> None:
    """Figure 1 of aggregation: a random choice of no switches is none."""
    study = load_study(ROOT / "experiments/systems/aggregation/studies/aggregation_1_placement.yaml")
    drawn = {
        trial.coordinates["switches.programmable"]
        for trial in study.trials
        if trial.coordinates["switches.placement"] == "random" and trial.repetition
    }
    assert drawn == {1, 2, 3, 4}
