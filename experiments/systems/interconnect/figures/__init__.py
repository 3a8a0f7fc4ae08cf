"""Figures of the interconnect that need more than lines, as kinds that studies name."""

from gradbed.experiments.systems.interconnect.figures import failures, sizes  # noqa: F401
