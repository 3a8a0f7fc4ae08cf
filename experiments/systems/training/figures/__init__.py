"""Figures of training that need more than lines, as kinds that studies name."""

from gradbed.experiments.systems.training.figures import in_network, iterations, models, slow, timeline  # noqa: F401
