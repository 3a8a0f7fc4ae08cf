"""gradbed report: the page of a run, from its folder alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A run's folder, such as results/aggregation/latest, or one of runs, such as results.",
        ),
    ],
) -> int:
    """Make report.html of a run, or index.html of a folder of runs, and print its path."""
    from gradbed.experiments.study.report.page import make_reports

    print(make_reports(folder))
    return 0
