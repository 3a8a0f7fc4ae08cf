"""Those figures of compression (docs/compression.md) that need more than lines, as kinds that studies name."""

from experiments.systems.compression.figures import ratio, step, workers  # noqa: F401
