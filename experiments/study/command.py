"""From a study to its table and figures: what `gradbed run STUDY.yaml` and `gradbed run SYSTEM` do."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from gradbed.common.c_library import compiler
from gradbed.common.errors import UserError
from gradbed.emulation.size import announce
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.results.run_folder import CAPTURES
from gradbed.experiments.results.study_results import StudyResults, load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.calibration import study_scale
from gradbed.experiments.study.definition import (
    FigureSection,
    Study,
    StudyHead,
    Sweep,
    TrialSpec,
    expand,
    values_at,
    with_values,
)
from gradbed.experiments.study.evaluation.figures import draw_figures, write_figure_data
from gradbed.experiments.study.evaluation.goals import crossings, goals_table, judged
from gradbed.experiments.study.evaluation.summary import comparison_tables, summary_table
from gradbed.experiments.study.loading import check_switch_programs, load_study
from gradbed.experiments.study.report.page import report_of_run
from gradbed.experiments.study.running.distributed import check_scheduler
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.study.running.runner import StudyRun, run_trials
from gradbed.experiments.system import System, unused_programs_line
from gradbed.experiments.systems import find_system
from gradbed.experiments.tables.console import make_console
from gradbed.experiments.tables.metric import path_words, short_names
from gradbed.topo.drawing import describe_link, describe_tiers
from gradbed.topo.files import topology_file
from gradbed.topo.selectors import select_all

# ---- What ran, for people ----


CLOCKS = {"real": "in Mininet, in real time", "virtual": "on the virtual clock"}
IN_THE_NETWORK = ("clock", "topology.kind", "topology.link")
"""What `network_words` says."""


def network_words(configuration: TrialConfiguration) -> str:
    """Describe the network, as in "fat-tree:4 on the virtual clock: 16 hosts --16-- 8 edge; links: 100 Mbit/s"."""
    topology = configuration.topology.build(Scale())
    models = {describe_link(link.model): None for link in topology.links}
    return f"{topology.name} {CLOCKS[configuration.clock]}: {describe_tiers(topology)}; links: {' or '.join(models)}"


def chosen_words(system: System[Any], configuration: TrialConfiguration) -> str:
    """Return the settings besides the network that differ from `gradbed run NAME`: "exchange ring, rounds 2"."""
    usual = system.configuration.model_validate(with_values({}, system.options.defaults))
    defaults = dict(_leaves(usual.model_dump(mode="json")))
    return ", ".join(
        f"{path_words(path)} {short_names([value])[0]}"
        for path, value in _leaves(configuration.model_dump(mode="json"))
        if not path.startswith(IN_THE_NETWORK) and value != defaults.get(path) and value not in (None, "", [], {})
    )


def _leaves(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


# ---- The command ----


INTERRUPTED = 130


def run_study_file(
    path: Path,
    options: RunOptions,
    *,
    quick: bool = False,
    clock: str | None = None,
    on_begin: Callable[[], None] = lambda: None,
) -> int:
    """Run a study and draw its figures. Exit status 0; 1 if trials broke, failed their checks, missed a goal or
    crossed the bound of a figure, which is not drawn then; 130 if interrupted.

    clock: instead of the study's. on_begin: as of run_study. UserError for what the user can put right.
    """
    study = load_study(path, quick, clock)
    run = run_study(study, options, on_begin)
    console = make_console()
    if run.interrupted:
        write_report(run, options, console)
        console.print(
            f"interrupted: {len(run.done)} of {run.planned} trials are done; --resume goes on", style="bold"
        )
        return INTERRUPTED
    results = load_results(run.folder, run.files)
    console.print(summary_table(study, results))
    _print_comparisons(study, results, console)
    crossed = crossings(results, study.head.figures)
    sound = {name: section for name, section in study.head.figures.items() if name not in crossed}
    for figure in draw_figures(results, sound, study.system.metrics, console.print):
        console.print(f"figure: {figure}")
    if study.head.figures and not crossed:
        console.print(f"data of figures: {write_figure_data(study, results)}")
    write_report(run, options, console)
    console.print(f"rows and logs: {run.folder}/")
    goals = judged(study.head, results)
    if goals:
        console.print(goals_table(goals))
    missed = [goal.words for goal in goals if goal.has_failed]
    refused = [*missed, *(f"no figure {name}: {line}" for name, lines in crossed.items() for line in lines)]
    return conclude(run, study.system.closing(results), console, refused)


def run_system(
    system_name: str,
    values: Mapping[str, Any],
    seed: int,
    options: RunOptions,
    script: bool = False,
    axes: Mapping[str, Sequence[Any]] | None = None,
) -> int:
    """Run one trial of a system and present what it found; exit status as for a study, 2 if it broke.

    values: of its configuration, as nested mappings. script: the trial is a script of the user's, whose standard
    output is its own, and of whose sums there is no reference. axes: as of
    gradbed.experiments.system.Shorthands.axes; several values make as many trials, which are compared. UserError for
    what the user can put right.
    """
    system = find_system(system_name)
    sweep = Sweep(zip={path: list(found) for path, found in (axes or {}).items()})
    combinations = list(expand(sweep))
    is_compared = len(combinations) > 1
    trials = []
    for combination in combinations:
        configuration = _checked(system, with_values(values, combination))
        coordinates = values_at(configuration.model_dump(mode="json"), combination if is_compared else ())
        trials.append(TrialSpec(coordinates, 0, seed, configuration))
    head = StudyHead(
        name="torch" if script else system_name,
        system=system_name,
        sweep=sweep if is_compared else Sweep(),
        compare=sweep.paths[0] if is_compared else None,
        title=f"{system_name} on {trials[0].configuration.topology.kind}",
        figures={} if script else _run_figures(system, sweep.paths[0] if is_compared else None),
    )
    study = Study(head, system, False, None, tuple(trials))
    run = run_study(study, options)
    console = make_console(stderr=script)
    if run.interrupted:
        write_report(run, options, console)
        return INTERRUPTED
    results = load_results(run.folder, run.files)
    if not script:
        _say_what_ran(study, console)
    _print_comparisons(study, results, console)
    system.present(results, console)
    for figure in draw_figures(results, head.figures, system.metrics, lambda nothing: None):
        if figure.suffix == ".png":
            console.print(f"figure: {figure}")
    write_report(run, options, console)
    console.print(f"data: {run.folder}/")
    return conclude(run, "" if script else system.closing(results), console)


def _run_figures(system: System, compare: str | None) -> dict[str, FigureSection]:
    return {
        name: FigureSection.model_validate({**section, **({"series": compare} if compare else {})})
        for name, section in system.report.figures.items()
    }


def _say_what_ran(study: Study, console: Console) -> None:
    first = study.trials[0]
    chosen = chosen_words(study.system, first.configuration) if study.head.compare is None else ""
    console.print(f"ran: {network_words(first.configuration)}; seed {first.seed}{f'; {chosen}' if chosen else ''}")


def _check_captures(study: Study) -> None:
    """UserError for names that a network of the study does not have."""
    if not isinstance(study.head.pcap, bool):
        for trial in study.trials:
            select_all(trial.configuration.topology.build(Scale()), study.head.pcap)


def _say_captures(run: StudyRun, console: Console) -> None:
    if files := run.files.captures():
        several = len({file.parent for file in files}) > 1
        where = f"{run.folder}/{'trials/*/' if several else ''}{CAPTURES}/"
        console.print(f"captures: {where} ({len(files)} {'file' if len(files) == 1 else 'files'}; docs/packets.md)")


def _checked(system: System, values: Mapping[str, Any]) -> TrialConfiguration:
    try:
        configuration = system.configuration.model_validate(values)
        check_switch_programs(configuration)
        system.check(configuration)
    except ValidationError:
        raise  # worded by the caller, who knows the options
    except ValueError as error:
        raise UserError(str(error)) from None
    return configuration


def _print_comparisons(study: Study, results: StudyResults, console: Console) -> None:
    if study.head.compare is not None:
        for table in comparison_tables(study.head, study.system.metrics, results):
            console.print(table)


def check_machine(study: Study) -> None:
    """Check that the machine has what the study needs: root on the real clock, a C compiler on the virtual one.

    Raises:
        UserError: something is missing.
    """
    if study.needs_network and os.geteuid() != 0:
        raise UserError("networks in Mininet need root: run with sudo, or with --clock virtual")
    if any(trial.configuration.clock == "virtual" for trial in study.trials):
        compiler()


def run_study(study: Study, options: RunOptions, on_begin: Callable[[], None] = lambda: None) -> StudyRun:
    """Run a study.

    Args:
        on_begin: called when everything that the study needs is there.

    Raises:
        UserError: something is missing; nothing has run.
    """
    if options.pcap:
        study = replace(study, head=study.head.model_copy(update={"pcap": options.pcap}))
    _check_captures(study)
    if study.needs_network:
        options.prepare_network()
    check_machine(study)
    if options.scheduler is not None:
        check_scheduler(options.scheduler)
    scale = Scale()
    for kind in dict.fromkeys(trial.configuration.topology.kind for trial in study.trials):
        if line := unused_programs_line(study.system, topology_file(kind)):
            print(f"gradbed: {line}", file=sys.stderr)
    warnings = [line for trial in study.trials for line in study.system.warnings(trial.configuration)]
    for line in dict.fromkeys(warnings):
        print(f"gradbed: {line}", file=sys.stderr)
    if study.needs_network:
        # Said before anything is begun.
        for topology in {trial.configuration.topology.kind: trial for trial in study.trials}.values():
            announce(topology.configuration.topology.build(scale))
        scale = study_scale() if options.factor is None else Scale(options.factor)
    begun: list[Path] = []
    several = sum(not trial.other_clock for trial in study.trials) > 1

    def keep(folder: Path) -> None:
        """A report of what is there so far: of a run that is killed it is the last. One trial has nothing yet."""
        if not begun:
            on_begin()
        if several or (begun and len(study.trials) > 1):
            report_of_run(folder, options.output)
        begun[:] = [folder]

    try:
        return run_trials(study, scale, options, keep)
    except BaseException:
        for folder in begun:
            report_of_run(folder, options.output)
        raise


def write_report(run: StudyRun, options: RunOptions, console: Console) -> None:
    path, trouble = report_of_run(run.folder, options.output)
    console.print(trouble if path is None else f"report: {path}")


def conclude(run: StudyRun, assurance: str, console: Console, refused: Sequence[str] = ()) -> int:
    """Say how far machine and checks bear a run out; its exit status.

    refused: which goals were missed, and why figures are not drawn."""
    _say_captures(run, console)
    stored = {trial.digest: trial for trial in run.done}
    # Of a single run the verdict is its own, whatever stands beside it.
    own = {trial.digest: trial.row for trial in run.done if not trial.other_clock}
    _print_verdicts(list(own.values()) if len(own) == 1 else [trial.row for trial in stored.values()], console)
    failures = [trial for trial in stored.values() if trial.failures]
    for trial in failures:
        for line in trial.failures:
            console.print(f"FAILED: {trial.place_text}{line}", style="bold red")
    for line in refused:
        console.print(f"FAILED: {line}", style="bold red")
    for label, reason in run.broken.items():
        console.print(f"BROKEN: {label}: {reason} (--resume tries it again)", style="bold red")
    has_failed = bool(failures or refused or run.broken)
    if assurance and not has_failed:
        console.print(assurance)
    return int(has_failed)


def _print_verdicts(rows: list[dict[str, Any]], console: Console) -> None:
    verdicts = Counter(str(row["verdict"]) for row in rows)
    counted = ", ".join(f"{count} {word}" for word, count in sorted(verdicts.items())) if len(rows) > 1 else ""
    if len(rows) == 1:
        reasons = rows[0]["verdict_reasons"]
        counted = f"{rows[0]['verdict']}{f' ({reasons})' if reasons else ''}"
    factors = sorted({row["scale_factor"] for row in rows if row["clock"] == "real"})
    scaled = (
        f"; links ran at {factors[0]:g} of their rate, all figures are nominal" if factors not in ([], [1.0]) else ""
    )
    console.print(f"verdict: {counted}{scaled}")
