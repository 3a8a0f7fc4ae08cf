"""gradbed replay: what the live view of a run has shown, again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The folder of a run with --live, such as results/aggregation/latest."),
    ],
) -> int:
    """Open the recording of a run in a page with a time slider, until Ctrl-C."""
    from gradbed.experiments.live.server import replay as serve

    return serve(run)
