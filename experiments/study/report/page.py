"""The pages, from their templates."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.version import VERSION
from gradbed.experiments.study.definition.model import Study
from gradbed.experiments.study.evaluation.comparison import comparison_tables
from gradbed.experiments.study.evaluation.goals import goals_table, judged
from gradbed.experiments.study.evaluation.summary import summary_table
from gradbed.experiments.study.report import answers, network, plans, setting, timeline, trust
from gradbed.experiments.study.report.figures import figures
from gradbed.experiments.study.report.files import file_groups
from gradbed.experiments.study.report.reading import Run
from gradbed.experiments.study.report.tables import HtmlTable, html_table
from gradbed.experiments.tables.metric import metric_table
from gradbed.experiments.tables.words import path_words, value_words

if TYPE_CHECKING:
    import jinja2

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
    made.globals["short"] = trust.SHORT
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
        missing=[answers.label(point) for point in run.missing],
        goals=_goals(run),
        figures=figures(run),
        tables=_tables(run),
        points=_points(run),
        meanings=trust.meanings(run),
        reasons=trust.reasons(run),
        measures=trust.measures(run),
        drawings=network.drawings(run),
        levels=network.LEVEL_WORDS,
        plan=plans.plan_view(run),
        timelines=timeline.timelines(run),
        facts=setting.facts(run),
        changed=setting.changed(run),
        files=file_groups(run.folder),
    )


def _label(run: Run, digest: str) -> str:
    return next((answers.label(point) for point in run.resolved["points"] if point["digest"] == digest), digest)


def _goals(run: Run) -> HtmlTable | None:
    rows = judged(run.head, run.results) if run.head is not None else []
    return html_table(goals_table(rows)) if rows else None


def _tables(run: Run) -> Sequence[HtmlTable]:
    """Metrics of the only place, or a row for each place; and what is compared."""
    if run.system is None or run.head is None or not run.results.points:
        return ()
    if run.is_single and len(run.results.points) == 1:
        [point] = run.results.points
        tables = [metric_table(run.title, run.system.metrics, point.row, run.results.model_of(point))]
    else:
        tables = [summary_table(Study(run.head, run.system, run.resolved["quick"], None, ()), run.results)]
    if run.head.compare is not None:
        tables += comparison_tables(run.head, run.system.metrics, run.results)
    return [html_table(table) for table in tables]


@dataclass(frozen=True)
class PointRow:
    """A point of the list of all: place in words by swept path, and how it ended."""

    place: Sequence[str]
    digest: str
    seed: int
    clock: str
    verdict: str
    failures: Sequence[str]


def _points(run: Run) -> tuple[Sequence[str], Sequence[PointRow]]:
    """Titles of the swept paths, and all points that are done."""
    paths = [*run.resolved["sweep"]["product"], *run.resolved["sweep"]["zip"]]
    rows = [
        PointRow(
            [value_words(point.coordinates.get(path)) for path in paths],
            point.stored.digest,
            point.stored.seed,
            str(point.row.get("clock", "")),
            str(point.row["verdict"]),
            point.stored.failures,
        )
        for point in run.points
    ]
    return [path_words(path) for path in paths], rows
