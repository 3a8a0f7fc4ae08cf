"""What `gradbed bench shuffle` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.bench.console import bench_console
from experiments.systems.shuffle.bench.drawing import draw_growth, draw_hops, draw_waiting
from experiments.systems.shuffle.bench.growth import growth_table, measure_growth
from experiments.systems.shuffle.bench.instances import PUBLIC_INSTANCES
from experiments.systems.shuffle.bench.quality import measure_quality, quality_table, summary_table
from experiments.systems.shuffle.bench.sweep import FABRICS, measure_hops, measure_waiting


def run_bench_shuffle(sizes: Sequence[tuple[int, int]], share: float, quality: bool, output: Path | None) -> int:
    """sizes: (k, samples) of fat-trees. output: folder for figures. Exit status 0."""
    console = bench_console()
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
    if output is not None:
        with console.status("figures"):
            output.mkdir(parents=True, exist_ok=True)
            written = draw_hops([row for fabric in FABRICS for row in measure_hops(fabric)], output)
            written += draw_waiting(list(measure_waiting()), output)
            written += draw_growth(grown, output) if grown else []
        for path in written:
            console.print(str(path))
    return 0
