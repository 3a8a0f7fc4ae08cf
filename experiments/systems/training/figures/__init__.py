"""Figures of training that need more than lines, as kinds that studies name."""

from experiments.systems.training.figures import in_network, iterations, timeline  # noqa: F401
