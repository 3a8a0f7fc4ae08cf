"""The figures of NDN (docs/ndn.md), as kinds of figures that studies name."""

from __future__ import annotations

from experiments.study.evaluation.figures import KINDS
from experiments.systems.ndn.figures import accuracy, byte_hops, recoveries

KINDS.update(
    {
        "ndn-byte-hops": byte_hops.draw,
        "ndn-recoveries": recoveries.draw,
        "ndn-accuracy": accuracy.draw,
    }
)
