"""gradbed figures: the figures of a system, each from its study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import options

app = typer.Typer(help="Make the figures of a system.", no_args_is_help=True)


@app.callback()
def figures() -> None:
    """Make the figures of a system."""


@app.command()
def aggregation(
    quick: Annotated[bool, typer.Option("--quick", help="Small versions, some minutes each.")] = False,
    only: Annotated[str, typer.Option(help="Numbers of the figures to make, such as 1 or 3,4.")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Go on where runs of these studies stopped.")] = False,
    output: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    scale: options.Scale = None,
) -> int:
    """The seven figures of in-network aggregation (docs/figures.md)."""
    from experiments.study.make_figures import make_figures

    return make_figures("aggregation", only, quick=quick, resume=resume, output=output, factor=scale)
