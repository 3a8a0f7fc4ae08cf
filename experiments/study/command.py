"""A study from its file to its figures: what `gradbed run STUDY.yaml` does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.calibration import study_scale
from experiments.intervals import confidence_interval
from experiments.scale import Scale
from experiments.study.figures import draw_figures
from experiments.study.loading import load_study
from experiments.study.model import Study
from experiments.study.results import StudyResults, load_results, worst
from experiments.study.run_files import DonePoint
from experiments.study.runner import StudyRun, run_study

FILE_COLUMNS = 200
"""A file takes what a terminal would have to fold."""


def run_study_file(
    path: Path,
    *,
    quick: bool = False,
    resume: bool = False,
    output: Path = Path("results"),
    factor: float | None = None,
) -> int:
    """Run a study and draw its figures. Exit status 0; 1 if points broke or failed their checks; 130 if interrupted.

    factor: the scale to use instead of this machine's. UserError for what the user can put right.
    """
    study = load_study(path, quick)
    scale = study_scale() if factor is None else Scale(factor)
    if study.system.needs_network:
        from topo.namespaces import require_root

        require_root("gradbed run")
    run = run_study(study, scale, output, resume)
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = FILE_COLUMNS
    if run.interrupted:
        console.print(
            f"interrupted: {len(run.done)} of {run.planned} points are done; --resume goes on", style="bold"
        )
        return 130
    results = load_results(run.folder)
    console.print(summary_table(study, results))
    for figure in draw_figures(results, study.head.figures, study.system.metrics):
        console.print(f"figure: {figure}")
    console.print(f"rows and logs: {run.folder}/")
    return _conclusion(run, console)


def summary_table(study: Study, results: StudyResults) -> Table:
    """A row for each place in the sweep: metrics as mean and half of the 95 % interval, and the worst verdict."""
    names = study.head.metrics or list(study.system.metrics)
    table = Table(title=study.head.title or study.name)
    for path in study.head.sweep.paths:
        table.add_column(path.rsplit(".", 1)[-1])
    for name in names:
        unit = study.system.metrics[name].unit
        table.add_column(f"{name} ({unit})" if unit else name, justify="right")
    table.add_column("verdict")
    places: dict[str, list[DonePoint]] = {}
    for point in results.points:
        places.setdefault(repr(point.coordinates), []).append(point)
    for points in places.values():
        row = points[0].row
        cells = [str(row[path]) for path in study.head.sweep.paths]
        cells += [_cell([float(p.row[name]) for p in points if p.row[name] is not None]) for name in names]
        table.add_row(*cells, worst(p.row["verdict"] for p in points))
    return table


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    interval = confidence_interval(values)
    if interval.repetitions == 1:
        return f"{interval.estimate:.4g}"
    return f"{interval.estimate:.4g} ± {interval.high - interval.estimate:.2g}"


def _conclusion(run: StudyRun, console: Console) -> int:
    stored = {point.stored.digest: point for point in run.done}
    verdicts = Counter(str(point.row["verdict"]) for point in stored.values())
    console.print("fidelity: " + ", ".join(f"{count} {word}" for word, count in sorted(verdicts.items())))
    failures = [(point, point.stored.failures) for point in stored.values() if point.stored.failures]
    for point, lines in failures:
        console.print(f"FAILED: {point.place}: {lines[0]}", style="bold red")
    for label in run.failed:
        console.print(f"BROKEN: {label}: --resume tries it again", style="bold red")
    return 1 if failures or run.failed else 0
