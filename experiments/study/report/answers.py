"""What was asked, and what came out, in words."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradbed.experiments.study.definition import FigureSection
from gradbed.experiments.study.evaluation.goals import crossings, judged
from gradbed.experiments.study.evaluation.kinds import panels_of
from gradbed.experiments.study.report import facts
from gradbed.experiments.study.report.reading import Run
from gradbed.experiments.tables.metric import Metric, confidence_interval, engineering, path_words, value_words

PARAGRAPH = "\n\n"
KIND = "topology.kind"
PARTICIPANTS = ("workers", "peers")
"""What systems call their fields for how many take part."""
MOST_CHOSEN = 4
"""Fields of a question."""

MOST_LINES = 24
"""Of numbers in words; figures and tables have all."""


def question(run: Run) -> str:
    """The idea of a demo, or the comment at the beginning of the study's file, which says what is asked; else its
    title, or, of a run of a system alone, what that is about, and where it is tried."""
    if run.head is not None and run.head.demo is not None:
        return " ".join(run.head.demo.idea.split())
    study = run.folder / "study.yaml"
    if study.exists():
        return _comment(study) or run.title
    about = inspect.getdoc(type(run.system)) if run.system is not None else None
    return f"{' '.join((about or run.title).split(PARAGRAPH)[0].split()).rstrip('.')}. {_of_single(run)}"


def _of_single(run: Run) -> str:
    """Return the question of `gradbed run NAME`: its topology, its participants, and settings that are not the
    defaults.
    """
    configuration = dict(facts.flat(run.resolved["trials"][0]["configuration"]))
    told = {path: value for path, value in configuration.items() if path.rpartition(".")[2] in PARTICIPANTS and value}
    of = "".join(f" with {value} {path.rpartition('.')[2]}" for path, value in told.items())
    chosen = [path for path in facts.chosen(run) if path not in (KIND, "clock", *told)]
    where = "".join(f", {_said(path, configuration[path])}" for path in chosen[:MOST_CHOSEN])
    more = ", and what else is not as by default" if len(chosen) > MOST_CHOSEN else ""
    return f"What comes of it on {configuration[KIND]}{of}{where}{more}?"


def _said(path: str, value: Any) -> str:
    """Describe a setting, as in "link rate 10 Mbit/s"."""
    name, _, unit = path_words(path).partition(" (")
    words = f"{value:g}" if isinstance(value, float) else value_words(value)
    return f"{name} {words} {unit.removesuffix(')')}".rstrip()


def _comment(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    found: list[str] = []
    for line in lines:
        if not line.startswith("#") or (found and not line.strip("# ")):
            break
        found.append(line.lstrip("#").strip())
    return " ".join(found)


def state(run: Run) -> str:
    """Return how far the run came, in one sentence."""
    planned = len({trial["digest"] for trial in run.resolved["trials"]})
    done = len({trial.digest for trial in run.trials})
    trials = "trial" if planned == 1 else "trials"
    parts = [f"{done} of {planned} {trials} {'is' if planned == 1 else 'are'} done"]
    if run.broken:
        parts.append(f"{len(run.broken)} broke")
    if run.missing:
        parts.append(f"{len(run.missing)} {'is' if len(run.missing) == 1 else 'are'} missing")
    if run.failed:
        parts.append(f"{len(run.failed)} failed a check")
    return f"{', '.join(parts)}."


def closing(run: Run) -> str:
    """Return what was checked and so holds; empty unless all trials are done, and none of them failed."""
    is_whole = run.trials and not (run.missing or run.broken or run.failed or refused(run))
    return run.system.closing(run.results) if is_whole and run.system is not None else ""


def refused(run: Run) -> list[str]:
    """Goals that were missed, and figures that are not drawn since trials cross their bounds."""
    if run.head is None:
        return []
    missed = [goal.words for goal in judged(run.head, run.results) if goal.has_failed]
    crossed = crossings(run.results, run.head.figures)
    return [*missed, *(f"no figure {name}: {line}" for name, lines in crossed.items() for line in lines)]


def failures(run: Run) -> list[str]:
    """A line for each failure of each trial."""
    return [f"{trial.place_text}{line}" for trial in run.failed for line in trial.failures]


def label(trial: Any) -> str:
    """Return the label of a planned trial of study.json."""
    place = ", ".join(
        f"{path.rsplit('.', 1)[-1]}={value_words(value)}" for path, value in trial["coordinates"].items()
    )
    return f"{place + ', ' if place else ''}seed {trial['seed']}"


def numbers(run: Run) -> list[str]:
    """Return minimum and maximum of each curve, or the main metrics of the only place if no figure has any."""
    if run.system is None or run.head is None:
        return []
    lines: list[str] = []
    for section in run.head.figures.values():
        for panel in panels_of(section):
            if panel.kind in ("lines", "bars") and panel.y in run.system.metrics:
                lines += _extremes(run, panel, run.system.metrics[panel.y])
    if not lines and run.is_single and run.results.trials:
        row = run.results.trials[0].row
        shown = run.system.report.main_metrics or list(run.system.metrics)
        for name in shown:
            metric, value = run.system.metrics[name], row.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                lines.append(f"{_capital(metric.meaning)}: {engineering(value, metric.unit)}.")
    return list(dict.fromkeys(lines))[:MOST_LINES]


def _extremes(run: Run, section: FigureSection, metric: Metric) -> Sequence[str]:
    lines = []
    for name, trials in run.results.series(section.x, section.y, section.series).items():
        means = [(confidence_interval(trial.values).estimate, trial.x) for trial in trials if trial.values]
        if not means:
            continue
        (least, at_least), (most, at_most) = min(means, key=_first), max(means, key=_first)
        of = "" if section.series is None else f", {path_words(section.series)} {section.names.get(str(name), name)}"
        beginning = f"{_capital(metric.meaning)}{of}: "
        x = path_words(section.x)
        if least == most:
            where = "everywhere" if len(means) > 1 else f"at {x} {at_least}"
            lines.append(f"{beginning}{engineering(least, metric.unit)} {where}.")
            continue
        lines.append(
            f"{beginning}least {engineering(least, metric.unit)} at {x} {at_least}, "
            f"most {engineering(most, metric.unit)} at {x} {at_most}."
        )
    return lines


def _first(pair: tuple[float, Any]) -> float:
    return pair[0]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
