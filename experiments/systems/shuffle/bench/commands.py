"""gradbed bench shuffle."""

from __future__ import annotations

from typing import Annotated

import typer


def shuffle(
    sizes: Annotated[
        str,
        typer.Option(
            help="K:SAMPLES of the fat-trees on which time is measured, separated by commas.",
            show_default="4:2000, 8:5000, 8:20000, 8:50000",
        ),
    ] = "4:2000,8:5000,8:20000,8:50000",
    share: Annotated[float, typer.Option(min=0.001, max=1, help="Of all samples that a worker stores there.")] = 0.3,
    quality: Annotated[
        bool, typer.Option(help="Compare schedulers on the thirty public instances (a few minutes).")
    ] = True,
) -> int:
    """How many hops schedules take beside bounds and optimum, and how long making them takes."""
    from gradbed.experiments.bench.measure import sizes_of
    from gradbed.experiments.systems.shuffle.bench.run import run_bench_shuffle

    pairs = [(k, samples) for k, samples in sizes_of(sizes, "K:SAMPLES")] if sizes else []
    return run_bench_shuffle(pairs, share, quality)
