"""The pages, from their templates: report.html of a run, index.html over all runs of a results folder; and their
place, where people find them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gradbed.common.caller import caller
from gradbed.common.errors import UserError, unforeseen
from gradbed.common.version import VERSION
from gradbed.experiments.study.definition import Study
from gradbed.experiments.study.evaluation.goals import goals_table, judged
from gradbed.experiments.study.evaluation.summary import comparison_tables, summary_table
from gradbed.experiments.study.report import answers, drawings, facts
from gradbed.experiments.study.report.facts import HtmlTable, file_groups, html_table
from gradbed.experiments.study.report.reading import Run, read_run
from gradbed.experiments.tables.files import replace_file
from gradbed.experiments.tables.metric import metric_table, path_words, value_words

if TYPE_CHECKING:
    import jinja2


# ---- A run ----


TEMPLATES = Path(__file__).parent / "templates"


@functools.cache
def _environment() -> jinja2.Environment:
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["style"] = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    made.globals["version"] = VERSION
    made.globals["short"] = facts.SHORT
    return made


def render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def report_page(run: Run) -> str:
    """The page of a run: HTML that needs nothing else but to be shown."""
    return render(
        "report.html",
        run=run,
        question=answers.question(run),
        state=answers.state(run),
        closing=answers.closing(run),
        numbers=answers.numbers(run),
        refused=answers.refused(run),
        failures=answers.failures(run),
        broken=[(_label(run, digest), why, digest) for digest, why in run.broken.items()],
        missing=[answers.label(trial) for trial in run.missing],
        goals=_goals(run),
        figures=drawings.figures(run),
        tables=_tables(run),
        trials=_trials(run),
        meanings=facts.meanings(run),
        reasons=facts.reasons(run),
        measures=facts.measures(run),
        drawings=drawings.drawings(run),
        levels=drawings.LEVEL_WORDS,
        plan=facts.plan_view(run),
        timelines=drawings.timelines(run),
        facts=facts.facts(run),
        changed=facts.changed(run),
        files=file_groups(run.folder),
    )


def _label(run: Run, digest: str) -> str:
    return next((answers.label(trial) for trial in run.resolved["trials"] if trial["digest"] == digest), digest)


def _goals(run: Run) -> HtmlTable | None:
    rows = judged(run.head, run.results) if run.head is not None else []
    return html_table(goals_table(rows)) if rows else None


def _tables(run: Run) -> Sequence[HtmlTable]:
    """Metrics of the only place, or a row for each place; and what is compared."""
    if run.system is None or run.head is None or not run.results.trials:
        return ()
    if run.is_single and len(run.results.trials) == 1:
        [trial] = run.results.trials
        tables = [metric_table(run.title, run.system.metrics, trial.row, run.results.model_of(trial))]
    else:
        tables = [summary_table(Study(run.head, run.system, run.resolved["quick"], None, ()), run.results)]
    if run.head.compare is not None:
        tables += comparison_tables(run.head, run.system.metrics, run.results)
    return [html_table(table) for table in tables]


@dataclass(frozen=True)
class TrialRow:
    """A trial of the list of all: place in words by swept path, and how it ended."""

    place: Sequence[str]
    digest: str
    seed: int
    clock: str
    verdict: str
    failures: Sequence[str]


def _trials(run: Run) -> tuple[Sequence[str], Sequence[TrialRow]]:
    """Titles of the swept paths, and all trials that are done."""
    paths = [*run.resolved["sweep"]["product"], *run.resolved["sweep"]["zip"]]
    rows = [
        TrialRow(
            [value_words(trial.coordinates.get(path)) for path in paths],
            trial.digest,
            trial.seed,
            str(trial.row.get("clock", "")),
            str(trial.row["verdict"]),
            trial.failures,
        )
        for trial in run.trials
    ]
    return [path_words(path) for path in paths], rows


# ---- All runs of a folder, the newest first ----


NAME = "index.html"
SUMMARY = "report.json"
"""Beside report.html: what the index says of a run, so that it needs not read all of it."""


@dataclass(frozen=True)
class RunSummary:
    """figure: a PNG of the run's folder; empty: it has none."""

    title: str
    system: str
    question: str
    state: str
    verdict: str
    planned: int
    done: int
    failed: int
    began: str
    figure: str


def summary_of(run: Run) -> RunSummary:
    pngs = [file for name in drawings.figure_names(run) if (run.folder / (file := f"{name}.png")).is_file()]
    newest = run.environments[-1] if run.environments else {}
    return RunSummary(
        title=run.title,
        system=str(run.resolved["system"]),
        question=answers.question(run),
        state=answers.state(run),
        verdict=run.verdict,
        planned=len({trial["digest"] for trial in run.resolved["trials"]}),
        done=len({trial.digest for trial in run.trials}),
        failed=len(run.failed) + len(run.broken) + len(answers.refused(run)),
        began=str(newest.get("started") or run.stamp),
        figure=pngs[0] if pngs else "",
    )


def write_summary(run: Run) -> None:
    text = json.dumps(asdict(summary_of(run)), indent=1) + "\n"
    replace_file(run.folder / SUMMARY, lambda target: target.write_text(text, encoding="utf-8"))


@dataclass(frozen=True)
class Entry:
    """A run of the index. href: of its report, or of its folder; figure: likewise, or empty."""

    summary: RunSummary
    name: str
    href: str
    figure: str


def write_index(root: Path) -> Path:
    """The index of a results folder. OSError if it cannot be written."""
    entries = [entry for folder in runs_below(root) if (entry := _entry(root, folder)) is not None]
    text = render("index.html", entries=entries, folder=root.resolve().name)
    replace_file(root / NAME, lambda target: target.write_text(text, encoding="utf-8"))
    return root / NAME


def runs_below(root: Path) -> list[Path]:
    """Folders of runs, the newest first: NAME/STAMP, or, of the folder of one study, STAMP."""
    paths = (*root.glob("*/*/study.json"), *root.glob("*/study.json"))
    found = [path.parent for path in paths if not path.parent.is_symlink()]
    return sorted(found, key=lambda folder: (folder.name, folder.parent.name), reverse=True)


def _entry(root: Path, folder: Path) -> Entry | None:
    summary = _read_summary(folder)
    if summary is None:
        return None
    base = quote(folder.relative_to(root).as_posix())
    report = f"{base}/report.html" if (folder / "report.html").is_file() else f"{base}/"
    has_figure = summary.figure and (folder / summary.figure).is_file()
    return Entry(summary, folder.parent.name, report, f"{base}/{quote(summary.figure)}" if has_figure else "")


def _read_summary(folder: Path) -> RunSummary | None:
    """Return the stored summary, or that of an older run from its other files; None if they cannot be read."""
    try:
        found: Mapping[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        return RunSummary(**found)
    except (OSError, ValueError, TypeError):
        pass
    try:
        return summary_of(read_run(folder))
    except (UserError, OSError, ValueError, KeyError, TypeError):
        return None


# ---- Files ----


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
    """Make the report of a run at its end, and the index of all runs in `output`.

    An error does not end the run: the result is then a message in place of a path.
    """
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
    """Make the report of a run, or those that are missing in a folder of runs, and the index; return its path.

    Raises:
        UserError: there is no run, or the report cannot be written.
    """
    if not place.is_dir():
        raise UserError(f"{place}: there is no such folder; name a run's folder, such as results/aggregation/latest")
    try:
        if (place / "study.json").exists():
            made = write_report(place)
            root = place.resolve().parent.parent
            if (root / NAME).exists():
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
