"""Runs the studies of a system's figures: what `gradbed figures SYSTEM` does."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.experiments.study.command import INTERRUPTED, RunOptions, run_study_file
from gradbed.experiments.study.figure_times import FigureTimes
from gradbed.experiments.systems import find_system, studies_folder
from gradbed.experiments.tables.console import make_console


def studies_of(system: str) -> dict[int, Path]:
    """The study of each figure by its number: studies/SYSTEM_NUMBER_NAME.yaml beside the system's module."""
    found = {}
    for path in studies_folder(system).glob(f"{system}_[0-9]*_*.yaml"):
        found[int(path.stem.removeprefix(f"{system}_").partition("_")[0])] = path
    return dict(sorted(found.items()))


def chosen(system: str, only: str) -> dict[int, Path]:
    """All figures, or those whose numbers `only` lists; UserError for a number that there is not."""
    find_system(system)
    studies = studies_of(system)
    if not studies:
        raise UserError(f"{system} has no figures")
    if not only:
        return studies
    numbers = [word.strip() for word in only.split(",")]
    if wrong := [word for word in numbers if not word.isdecimal() or int(word) not in studies]:
        raise UserError(f"--only: {system} has no figure {wrong[0]!r}; there are: {', '.join(map(str, studies))}")
    return {int(word): studies[int(word)] for word in numbers}


def make_figures(
    system: str,
    options: RunOptions,
    only: str = "",
    *,
    quick: bool = False,
    clock: str | None = None,
    times: Path | None = None,
) -> int:
    """Run the studies one after the other; the worst of their exit statuses. An interruption ends it.

    times: a file for what each took. UserError where that would not be known: with `resume` points are skipped, and
    what the workers of a scheduler do is no time of this machine."""
    figures = chosen(system, only)
    clocked = None
    if times is not None:
        if options.resume:
            raise UserError("--times does not go with --resume: points that are there already would take no time")
        if options.scheduler is not None:
            raise UserError("--times does not go with --scheduler: points run elsewhere")
        clocked = FigureTimes(times, quick=quick, clock=clock, is_whole=figures == studies_of(system))
    status = 0
    for number, path in figures.items():
        words = f"gradbed: figure {number}: {path.stem}"
        say = partial(print, words, file=sys.stderr, flush=True)
        taken: AbstractContextManager[list[int]] = clocked.study(number, path.stem) if clocked else nullcontext([])
        with taken as told:
            ended = run_study_file(path, options, quick=quick, clock=clock, on_begin=say)
            if ended != INTERRUPTED:
                told.append(ended)
        status = max(status, ended)
        if ended == INTERRUPTED:
            break
    if clocked is not None:
        clocked.show(make_console())
    return status
