"""Reports where people find them: report.html in a run's folder, index.html in the folder of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradbed.common.caller import caller
from gradbed.common.errors import UserError, unforeseen
from gradbed.experiments.study.report.index import NAME as INDEX
from gradbed.experiments.study.report.index import runs_below, write_index, write_summary
from gradbed.experiments.study.report.page import report_page
from gradbed.experiments.study.report.reading import read_run
from gradbed.experiments.tables.tables import replace_file

REPORT = "report.html"


def write_report(folder: Path) -> Path:
    """The report of a run, anew, from what its folder holds. UserError if that is no run; OSError if it cannot be
    written."""
    run = read_run(folder)
    text = report_page(run)
    path = folder / REPORT
    replace_file(path, lambda target: target.write_text(text, encoding="utf-8"))
    write_summary(run)
    return path


def report_of_run(folder: Path, output: Path) -> tuple[Path | None, str]:
    """At the end of a run: its report, and the index of all runs in output. Whatever goes wrong ends no run: then
    there is a line about it instead of a path."""
    try:
        path = write_report(folder)
        give_to_caller(write_index(output))
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) else unforeseen(error)
        return None, f"no report: {why}; gradbed report {folder} tries it again"
    return path, ""


def give_to_caller(path: Path) -> None:
    """Under sudo: to the person who called that."""
    person = caller()
    if person is not None:
        person.own(path)


def make_reports(place: Path) -> Path:
    """What `gradbed report PLACE` makes: of a run its report, of a folder of runs those that have none, and the
    index. Its path. UserError where there is no run, or what is made cannot be written."""
    if not place.is_dir():
        raise UserError(f"{place}: there is no such folder; name a run's folder, such as results/aggregation/latest")
    try:
        if (place / "study.json").exists():
            made = write_report(place)
            root = place.resolve().parent.parent
            if (root / INDEX).exists():
                write_index(root)
        else:
            runs = runs_below(place)
            if not runs:
                raise UserError(
                    f"{place} holds no run: name a run's folder, such as results/aggregation/latest, or results"
                )
            _write_missing(runs)
            made = write_index(place)
    except OSError as error:
        raise UserError(f"cannot write the report of {place}: {error.strerror or error}") from None
    give_to_caller(made)
    return made


def _write_missing(runs: Sequence[Path]) -> None:
    """Reports of the runs that have none. One that cannot be read is left out, as long as there are others."""
    unreadable = []
    for folder in runs:
        if not (folder / REPORT).exists():
            try:
                write_report(folder)
            except UserError as error:
                unreadable.append(error)
    if unreadable and len(unreadable) == len(runs):
        raise unreadable[0]
