"""Those figures of the shuffle (docs/shuffle.md) that need more than lines, as kinds that studies name."""

from gradbed.experiments.systems.shuffle.figures import growth, hops, packets, time, waits  # noqa: F401
