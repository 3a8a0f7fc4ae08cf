"""A system in half a minute: its study demo.yaml, with words for newcomers. What `gradbed demo` does."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND
from gradbed.experiments.results.study_results import StudyResults, load_results
from gradbed.experiments.study.command import (
    INTERRUPTED,
    conclude,
    network_words,
    run_study,
    write_report,
)
from gradbed.experiments.study.definition import DemoSection, Study, TrialSpec, with_values
from gradbed.experiments.study.evaluation.figures import draw_figures
from gradbed.experiments.study.evaluation.summary import Comparison, compared, comparison_tables
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.systems import find_system, studies_folder, systems
from gradbed.experiments.tables.console import make_console
from gradbed.experiments.tables.metric import Metric, engineering, prefix_of, short_names

FILE = "demo.yaml"
ALIKE = 0.005
"""A change below this share is none that a sentence tells."""
TRUSTED = ("simulated", "valid")
"""Verdicts of runs whose times are the network's."""
MOST_COLUMNS = 100
"""Of text: longer lines are hard to read, however wide the terminal is."""


def demo_file(system: str) -> Path:
    """UserError if the system has no demo."""
    find_system(system)
    if not (path := studies_folder(system) / FILE).is_file():
        known = [name for name in systems() if (studies_folder(name) / FILE).is_file()]
        raise UserError(f"{system} has no demo; these have one: {', '.join(known)}")
    return path


def load_demo(system: str, clock: str | None = None) -> tuple[Study, DemoSection]:
    """Load the demo of a system.

    Args:
        clock: instead of that of its file. On the real clock, what the file has beside it is added.
    """
    path = demo_file(system)
    study = load_study(path, clock=clock)
    demo = study.head.demo
    if demo is None:
        raise UserError(f"{path}: a demo has a section demo")
    if study.needs_network and demo.beside:
        study = replace(study, trials=(*study.trials, *(_beside(study, trial, demo) for trial in study.trials)))
    return study, demo


def _beside(study: Study, trial: TrialSpec, demo: DemoSection) -> TrialSpec:
    values = with_values(trial.configuration.model_dump(), {"clock": "virtual", **demo.beside})
    return replace(trial, configuration=study.system.configuration.model_validate(values), other_clock=True)


def run_demo(system: str, options: RunOptions, clock: str | None = None) -> int:
    """Run it and say what it shows; exit status as of a study."""
    study, demo = load_demo(system, clock)
    console = make_console()
    run = run_study(study, options, lambda: _introduce(study, demo, console))
    if run.interrupted:
        return INTERRUPTED
    results = load_results(run.folder, run.files)
    if study.head.compare is None:
        study.system.present(results, console)
    else:
        for table in comparison_tables(study.head, study.system.metrics, results, in_words=True):
            console.print(table)
        _say(console, "means", [line for each in meanings(study, demo, results) for line in _folded(each, console)])
        figures = draw_figures(results, study.head.figures, study.system.metrics, console.print)
        _say(console, "figure", [str(path) for path in figures if path.suffix == ".png"])
    write_report(run, options, console)
    console.print(f"data: {run.folder}/")
    status = conclude(run, study.system.closing(results), console)
    commands = {command.replace("gradbed", COMMAND, 1): shows for command, shows in demo.next.items()}
    width = max(map(len, commands), default=0)
    _say(console, "next", [f"{command:<{width}}  {shows}" for command, shows in commands.items()])
    return status


def _introduce(study: Study, demo: DemoSection, console: Console) -> None:
    """The idea and the network, to be read while it runs."""
    console.print("\n".join(_folded(" ".join(demo.idea.split()), console)), markup=False)
    _say(console, "network", _folded(network_words(study.trials[0].configuration), console))
    console.print()


def _folded(text: str, console: Console) -> list[str]:
    """Wrap the text to lines that fit beside the longest word of `_say`."""
    return textwrap.wrap(text, min(console.width, MOST_COLUMNS) - len("network: "), break_on_hyphens=False)


def _say(console: Console, what: str, lines: Sequence[str]) -> None:
    for number, line in enumerate(lines):
        console.print(f"{what}: {line}" if not number else f"{' ' * len(what)}  {line}", markup=False)


def meanings(study: Study, demo: DemoSection, results: StudyResults) -> list[str]:
    """Return a sentence for each metric that the demo comments on and that has values.

    If the host affected the results, return instead how to get those of the network.
    """
    if not all(trial.row["verdict"] in TRUSTED for trial in results.trials):
        return [
            "The host affected the results above, so they show little of the network. On any machine: "
            f"gradbed demo {study.head.system} --clock virtual"
        ]
    found = compared(study.head, list(demo.says), results)
    return [
        sentence(beginning, study.system.metrics[name], comparison, name)
        for comparison in found
        for name, beginning in demo.says.items()
        if name in comparison.means and None not in comparison.means[name]
    ]


def sentence(beginning: str, metric: Metric, comparison: Comparison, name: str) -> str:
    """Compare the means in words, as in "A round takes 40 ms with unicast and 30 ms with push: 25 % less"."""
    means = [mean for mean in comparison.means[name] if mean is not None]
    scale = prefix_of(means, metric.unit)
    words = [
        f"{engineering(mean, metric.unit, scale=scale)} with {value}"
        for mean, value in zip(means, short_names(comparison.values), strict=True)
    ]
    return f"{beginning} {', '.join(words[:-1])} and {words[-1]}{_relation(means[0], means[-1])}."


def _relation(first: float, last: float) -> str:
    if first == last:
        return ", the same"
    if not first or not last:
        return ""
    change = last / first - 1
    if abs(change) < ALIKE:
        return ", nearly the same"
    if change >= 1:
        return f": {last / first:.2g} times as much"
    return f": {abs(change):.0%} {'less' if change < 0 else 'more'}"
