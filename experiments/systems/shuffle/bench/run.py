"""What `gradbed bench shuffle` does."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.experiments.systems.shuffle.bench.growth import growth_table, measure_growth
from gradbed.experiments.systems.shuffle.bench.instances import PUBLIC_INSTANCES
from gradbed.experiments.systems.shuffle.bench.quality import measure_quality, quality_table, summary_table
from gradbed.experiments.tables.console import make_console


def run_bench_shuffle(sizes: Sequence[tuple[int, int]], share: float, quality: bool) -> int:
    """sizes: (k, samples) of fat-trees. Exit status 0."""
    console = make_console()
    grown = []
    for k, samples in sizes:
        with console.status(f"fat-tree:{k}, {samples:,} samples"):
            grown.append(measure_growth(k, samples, share))
    if grown:
        console.print(growth_table(grown, share))
    if quality:
        qualities = []
        for public in PUBLIC_INSTANCES:
            with console.status(public.name):
                qualities.append(measure_quality(public))
        console.print(quality_table(qualities))
        console.print(summary_table(qualities))
    return 0
