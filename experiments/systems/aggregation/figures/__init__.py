"""The seven figures of aggregation (docs/figures.md), as kinds of figures that studies name."""

from __future__ import annotations

from experiments.study.evaluation.figures import KINDS
from experiments.systems.aggregation.figures import accuracy, byte_hops, jobs, loss, placement, slots, workers

KINDS.update(
    {
        "aggregation-placement": placement.draw,
        "aggregation-workers": workers.draw,
        "aggregation-loss": loss.draw,
        "aggregation-slots": slots.draw,
        "aggregation-jobs": jobs.draw,
        "aggregation-byte-hops": byte_hops.draw,
        "aggregation-accuracy": accuracy.draw,
    }
)
