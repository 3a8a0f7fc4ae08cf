"""gradbed bench compressors."""

from __future__ import annotations

from typing import Annotated

import typer


def compressors(
    values: Annotated[int, typer.Option(min=1000, help="Values of the gradient.")] = 25_000_000,
    part: Annotated[float, typer.Option(min=0.0001, max=0.5, help="That top-k keeps.")] = 0.01,
    repetitions: Annotated[int, typer.Option(min=1, help="Of each; medians are shown.")] = 5,
) -> int:
    """How long a worker takes for a gradient of which top-k sends a part, on one core, and how much memory; beside
    the same path with PyTorch's and NumPy's selection."""
    from gradbed.experiments.systems.compression.bench.compressors import run_bench_compressors

    return run_bench_compressors(values, part, repetitions)
