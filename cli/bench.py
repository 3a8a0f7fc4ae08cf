"""gradbed bench: measurements, as ratios within one run."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Measure this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure this machine."""


@app.command()
def lanes(
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each figure; medians are shown.")] = 5,
) -> int:
    """How many lanes a gradient packet should have: compile time against gradient bytes summed per second."""
    from experiments.bench_lanes import run_bench_lanes

    return run_bench_lanes(repetitions)
