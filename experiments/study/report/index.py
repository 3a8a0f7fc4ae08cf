"""index.html of a results folder: all its runs, the newest first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradbed.common.errors import UserError
from gradbed.experiments.study.report import answers
from gradbed.experiments.study.report.figures import names
from gradbed.experiments.study.report.page import render
from gradbed.experiments.study.report.reading import Run, read_run
from gradbed.experiments.tables.tables import replace_file

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
    pngs = [file for name in names(run) if (run.folder / (file := f"{name}.png")).is_file()]
    newest = run.environments[-1] if run.environments else {}
    return RunSummary(
        title=run.title,
        system=str(run.resolved["system"]),
        question=answers.question(run),
        state=answers.state(run),
        verdict=run.verdict,
        planned=len({point["digest"] for point in run.resolved["points"]}),
        done=len({point.stored.digest for point in run.points}),
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
    """As it was written, else, of an older run, from all that it left; None if that cannot be read."""
    try:
        found: Mapping[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        return RunSummary(**found)
    except (OSError, ValueError, TypeError):
        pass
    try:
        return summary_of(read_run(folder))
    except (UserError, OSError, ValueError, KeyError, TypeError):
        return None
