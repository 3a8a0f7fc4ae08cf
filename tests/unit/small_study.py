"""A study as `gradbed run FILE` runs it, in this process, with its figures in one format alone."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from unittest.mock import patch

from gradbed.experiments.plotting import style
from gradbed.experiments.study.command import run_study_file
from gradbed.experiments.study.running.executors import RunOptions


def run_study_named_small(study: str, place: Path) -> tuple[Path, str]:
    """Run a study (YAML text) whose name is "small" in a folder. The folder of its results, and what was printed."""
    (place / "small.yaml").write_text(study)
    with contextlib.redirect_stdout(io.StringIO()) as printed, patch.object(style, "FORMATS", ("png",)):
        status = run_study_file(place / "small.yaml", RunOptions(output=place, jobs=1))
    assert status == 0, printed.getvalue()
    return (place / "small" / "latest").resolve(), printed.getvalue()
