"""gradbed figures: the figures of a system, each from its study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradbed.cli import layers, options


def figures(
    system: Annotated[str, typer.Argument(help="A system, such as aggregation (docs/figures.md).")],
    quick: Annotated[bool, typer.Option("--quick", help="Small versions.")] = False,
    only: Annotated[str, typer.Option(help="Numbers of the figures to make, such as 1 or 3,4.")] = "",
    clock: options.Clock = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume interrupted runs of these studies.")] = False,
    jobs: options.Jobs = None,
    scheduler: options.Scheduler = None,
    times: Annotated[
        Path | None, typer.Option(help="A CSV file for the wall and processor time of each study; not with --resume.")
    ] = None,
    output: options.Output = Path("results"),
    scale: options.Scale = None,
) -> int:
    """Make the figures of a system, each from its study."""
    from gradbed.experiments.study.loading import load_study
    from gradbed.experiments.study.make_figures import chosen, make_figures
    from gradbed.experiments.study.running.executors import RunOptions

    # What any of the studies takes is installed before the first one begins.
    if any(load_study(file, quick, clock).needs_network for file in chosen(system, only).values()):
        layers.need_debian()
    options_of_run = RunOptions(output, resume, scale, jobs, scheduler)
    return make_figures(system, options_of_run, only, quick=quick, clock=clock, times=times)
