"""The five figures of compression (docs/compression.md), as kinds of figures that studies name."""

from __future__ import annotations

from experiments.study.evaluation.figures import KINDS
from experiments.systems.compression.figures import accuracy, queue, ratio, step, workers

KINDS.update(
    {
        "compression-workers": workers.draw,
        "compression-step": step.draw,
        "compression-accuracy": accuracy.draw,
        "compression-queue": queue.draw,
        "compression-ratio": ratio.draw,
    }
)
