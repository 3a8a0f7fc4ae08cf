"""Runs the studies of a system's figures: what `gradbed figures SYSTEM` does."""

from __future__ import annotations

import sys
from pathlib import Path

import experiments
from experiments.study.command import run_study_file
from switch.errors import UserError

SYSTEMS = Path(experiments.__file__).parent / "systems"
INTERRUPTED = 130


def studies_of(system: str) -> dict[int, Path]:
    """The study of each figure by its number: experiments/systems/SYSTEM/studies/SYSTEM_NUMBER_NAME.yaml."""
    found = {}
    for path in (SYSTEMS / system / "studies").glob(f"{system}_[0-9]*_*.yaml"):
        found[int(path.stem.removeprefix(f"{system}_").partition("_")[0])] = path
    return dict(sorted(found.items()))


def chosen(system: str, only: str) -> dict[int, Path]:
    """All figures, or those whose numbers `only` lists; UserError for a number that there is not."""
    studies = studies_of(system)
    if not only:
        return studies
    numbers = [word.strip() for word in only.split(",")]
    if wrong := [word for word in numbers if not word.isdecimal() or int(word) not in studies]:
        raise UserError(f"{system} has no figure {wrong[0]!r}; there are: {', '.join(map(str, studies))}")
    return {int(word): studies[int(word)] for word in numbers}


def make_figures(
    system: str, only: str = "", *, quick: bool, resume: bool, output: Path, factor: float | None = None
) -> int:
    """Run the studies one after the other; the worst of their exit statuses. An interruption ends it."""
    status = 0
    for number, path in chosen(system, only).items():
        print(f"gradbed: figure {number}: {path.stem}", file=sys.stderr, flush=True)
        ended = run_study_file(path, quick=quick, resume=resume, output=output, factor=factor)
        if ended == INTERRUPTED:
            return ended
        status = max(status, ended)
    return status
