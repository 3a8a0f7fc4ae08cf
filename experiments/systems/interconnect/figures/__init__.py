"""Figures of the interconnect that need more than lines, as kinds that studies name."""

from __future__ import annotations

from experiments.study.evaluation.figures import KINDS
from experiments.systems.interconnect.figures import failures, sizes

KINDS.update({"interconnect-sizes": sizes.draw, "interconnect-failures": failures.draw})
