"""gradbed bench shuffle."""

from __future__ import annotations

from typing import Annotated

import typer

from common.errors import UserError


def shuffle(
    sizes: Annotated[
        str, typer.Option(help="K:SAMPLES of the fat-trees on which time is measured, separated by commas.")
    ] = "4:2000,8:5000,8:20000,8:50000",
    share: Annotated[float, typer.Option(min=0.001, max=1, help="Of all samples that a worker stores there.")] = 0.3,
    quality: Annotated[
        bool, typer.Option(help="Compare schedulers on the thirty public instances (a few minutes).")
    ] = True,
) -> int:
    """How many hops schedules take beside bounds and optimum, and how long making them takes."""
    from experiments.systems.shuffle.bench.run import run_bench_shuffle

    return run_bench_shuffle(_sizes(sizes), share, quality)


def _sizes(text: str) -> list[tuple[int, int]]:
    try:
        return [(int(k), int(samples)) for k, samples in (size.split(":") for size in text.split(",") if size)]
    except ValueError:
        raise UserError(f"--sizes: {text!r} is not of the form K:SAMPLES,K:SAMPLES,... with whole numbers") from None
