"""How long the studies of a system's figures take: what `gradbed figures SYSTEM --times FILE` writes and shows."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from gradbed.common.caller import caller
from gradbed.common.errors import UserError
from gradbed.experiments.tables.rows import Columns, rows_table
from gradbed.experiments.tables.tables import replace_file, write_csv

GOAL_S = 30 * 60
GOAL_PROCESSORS = 2
"""All figures of a system in full, on so many processors."""


@dataclass(frozen=True)
class StudyTime:
    """Of one study, from reading it to its drawn figure. processor_s: user and system time of this process and of
    all that it has waited for, so also of pools, sandboxes and what ran in them. status: the study's exit status; if
    it is not 0, points may be missing in the time. clock: given in place of the study's own; empty: none was."""

    figure: int
    study: str
    form: str
    clock: str
    processors: int
    status: int
    wall_s: float
    processor_s: float


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
            return f"not judged: of figure {', '.join(failed)} points or goals failed"
        return f"goal: {GOAL_S / 60:g} min, {'met' if sum(row.wall_s for row in self._rows) <= GOAL_S else 'missed'}"


def _processor_s() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
