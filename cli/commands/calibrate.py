"""gradbed calibrate: how fast a network this machine carries."""

from __future__ import annotations

from typing import Annotated

import typer


def calibrate(
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Keep the result even if other programs were busy meanwhile.")
    ] = False,
) -> int:
    """Find and store the factor by which studies slow links down, so that this machine keeps up (some minutes)."""
    from gradbed.experiments.study.calibration import run_calibration

    return run_calibration(anyway)
