"""gradbed demo: the main job with its defaults."""

from __future__ import annotations


def demo() -> int:
    """Train a digit classifier over a k=4 fat-tree, with and without aggregation in the switches."""
    from experiments.aggregation import run_aggregation
    from experiments.config import AggregationConfig

    return run_aggregation(AggregationConfig())
