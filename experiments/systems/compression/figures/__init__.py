"""Those figures of compression (docs/compression.md) that need more than lines, as kinds that studies name."""

from gradbed.experiments.systems.compression.figures import ratio, step, workers  # noqa: F401
