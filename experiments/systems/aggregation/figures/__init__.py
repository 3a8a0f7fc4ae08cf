"""The seven figures of aggregation (docs/figures.md), as kinds of figures that studies name."""

from gradbed.experiments.systems.aggregation.figures import (  # noqa: F401
    accuracy,
    byte_hops,
    jobs,
    loss,
    placement,
    slots,
    workers,
)
