"""The figures of the shuffle (docs/shuffle.md), as kinds of figures that studies name."""

from __future__ import annotations

from experiments.study.evaluation.figures import KINDS
from experiments.systems.shuffle.figures import accuracy, growth, hops, packets, time, waits

KINDS.update(
    {
        "shuffle-hops": hops.draw,
        "shuffle-packets": packets.draw,
        "shuffle-time": time.draw,
        "shuffle-growth": growth.draw,
        "shuffle-waits": waits.draw,
        "shuffle-accuracy": accuracy.draw,
    }
)
