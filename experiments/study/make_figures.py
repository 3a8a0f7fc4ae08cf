"""Runs the studies of a system's figures: what `gradbed figures SYSTEM` does, and how long they take (--times)."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from gradbed.common.caller import caller
from gradbed.common.errors import UserError
from gradbed.experiments.study.command import INTERRUPTED, run_study_file
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.systems import find_system, studies_folder
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.experiments.tables.files import replace_file, write_csv

# ---- How long they take ----


GOAL_S = 30 * 60
GOAL_PROCESSORS = 2
"""All figures of a system in full, on so many processors."""


@dataclass(frozen=True)
class StudyTime:
    """Time of one study, from reading it to drawing its figure."""

    figure: int
    study: str
    form: str
    clock: str
    """Clock in place of the study's own; empty: none."""
    processors: int
    status: int
    """Exit status of the study; if it is not 0, trials may be missing in the time."""
    wall_s: float
    processor_s: float
    """User and system time of this process and of all processes that it waited for, including pools and sandboxes."""


COLUMNS: Columns = (
    ("figure", lambda row: row.figure),
    ("study", lambda row: row.study),
    ("wall s", lambda row: f"{row.wall_s:,.1f}"),
    ("processor s", lambda row: f"{row.processor_s:,.1f}"),
    ("status", lambda row: row.status),
)


class FigureTimes:
    """Takes the times of studies one after the other. After each the file is written anew, so that an interruption
    leaves those that have ended.

    quick: their small forms; clock: in place of their own; is_whole: all figures of the system. UserError if there
    cannot be such a file.
    """

    def __init__(self, path: Path, *, quick: bool, clock: str | None, is_whole: bool) -> None:
        if not path.parent.is_dir():
            raise UserError(f"--times: there is no folder {path.parent}")
        if path.is_dir():
            raise UserError(f"--times: {path} is a folder")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UserError(f"--times: {path} cannot be written")
        self._path = path
        self._form = "quick" if quick else "full"
        self._clock = clock or ""
        self._is_whole = is_whole
        self._rows: list[StudyTime] = []

    @contextlib.contextmanager
    def study(self, figure: int, name: str) -> Iterator[list[int]]:
        """The time of what is inside, which appends its exit status to the list; without one nothing is noted."""
        status: list[int] = []
        wall_s, processor_s = time.perf_counter(), _processor_s()
        yield status
        if status:
            spent_s = time.perf_counter() - wall_s, _processor_s() - processor_s
            how = self._form, self._clock, len(os.sched_getaffinity(0))
            self._rows.append(StudyTime(figure, name, *how, status[0], *spent_s))
            replace_file(self._path, lambda target: write_csv([asdict(row) for row in self._rows], target))
            if (person := caller()) is not None:
                person.own(self._path)

    def show(self, console: Console) -> None:
        """A table, its sum, and the goal where it is one of these figures."""
        if not self._rows:
            return
        processors = self._rows[0].processors
        clock = f" on the {self._clock} clock" if self._clock else ""
        title = f"times of figures, {self._form}{clock}, on {processors} processor{'' if processors == 1 else 's'}"
        console.print(rows_table(title, COLUMNS, self._rows, words=("study",)))
        wall_s = sum(row.wall_s for row in self._rows)
        processor_s = sum(row.processor_s for row in self._rows)
        console.print(f"altogether {wall_s / 60:,.1f} min, {processor_s / 60:,.1f} min of processors; {self._goal()}")
        console.print(f"times: {self._path}")

    def _goal(self) -> str:
        wanted = f"the goal of {GOAL_S / 60:g} min is for all figures in full on {GOAL_PROCESSORS} processors"
        if not self._is_whole or any((row.form, row.processors) != ("full", GOAL_PROCESSORS) for row in self._rows):
            return f"not judged: {wanted}"
        if failed := [str(row.figure) for row in self._rows if row.status != 0]:
            return f"not judged: of figure {', '.join(failed)} trials or goals failed"
        return f"goal: {GOAL_S / 60:g} min, {'met' if sum(row.wall_s for row in self._rows) <= GOAL_S else 'missed'}"


def _processor_s() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


# ---- Running them ----


def studies_of(system: str) -> dict[int, Path]:
    """The study of each figure by its number: studies/SYSTEM_NUMBER_NAME.yaml beside the system's module."""
    found = {}
    for path in studies_folder(system).glob(f"{system}_[0-9]*_*.yaml"):
        found[int(path.stem.removeprefix(f"{system}_").partition("_")[0])] = path
    return dict(sorted(found.items()))


def chosen(system: str, only: str) -> dict[int, Path]:
    """Return all figures, or those whose numbers `only` lists.

    Raises:
        UserError: there is no figure of this number.
    """
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

    times: a file for what each took. UserError where that would not be known: with `resume` trials are skipped, and
    what the workers of a scheduler do is no time of this machine."""
    figures = chosen(system, only)
    clocked = None
    if times is not None:
        if options.resume:
            raise UserError("--times does not go with --resume: trials that are there already would take no time")
        if options.scheduler is not None:
            raise UserError("--times does not go with --scheduler: trials run elsewhere")
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
