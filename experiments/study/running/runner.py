"""Runs a study: every point that is not done yet, each written as soon as it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gradbed.common.errors import ProcessLost, UserError
from gradbed.experiments.engine.onlooker import Onlooker
from gradbed.experiments.records.run_folder import DonePoint, RunFiles, RunFolder, StoredPoint, environment, find_run
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import Point, Study
from gradbed.experiments.study.running.attempt import Broken
from gradbed.experiments.study.running.beside import Beside
from gradbed.experiments.study.running.digest import digest, identity, source_digest
from gradbed.experiments.study.running.execution import Executor, executor
from gradbed.experiments.study.running.measure import PointOrder
from gradbed.experiments.tables.tables import write_tables

MOST_OF_THE_TIME = 0.05
"""That goes into tables of all points while there are more to come."""
SAME_TROUBLES = 2
"""So many points in turn that break for the same reason, and none that does not: the others would, too."""


@dataclass(frozen=True)
class PlannedPoint:
    """A point with the digest that identifies it; points that mean the same have the same one, and run once."""

    digest: str
    point: Point


@dataclass(frozen=True)
class StudyRun:
    """A run that has ended. done: in the order of the study; broken: by label, why a point has no result."""

    folder: Path
    files: RunFiles
    done: tuple[DonePoint, ...]
    planned: int
    broken: dict[str, str]
    interrupted: bool


def plan(study: Study, scale: Scale) -> tuple[PlannedPoint, ...]:
    """All points of the study, in order."""
    return tuple(
        PlannedPoint(digest(identity(study.head.system, point, _scale_of(point, scale))), point)
        for point in study.points
    )


def _scale_of(point: Point, scale: Scale) -> Scale:
    """The virtual clock needs no slower links."""
    return Scale() if point.configuration.clock == "virtual" else scale


def run_study(
    study: Study,
    scale: Scale,
    output: Path,
    resume: bool = False,
    jobs: int | None = None,
    scheduler: str | None = None,
    on_tables: Callable[[Path], None] = lambda folder: None,
    onlooker: Onlooker | None = None,
    threads: int = 1,
) -> StudyRun:
    """Run what is not done yet. With `resume`, in the folder of the newest run that was to make these points, those
    that failed or were invalid once more and last.

    A point that breaks is told, with the reason in the run's logs, and the study goes on. jobs: points side by side
    on the virtual clock (None: as many as there are processors); scheduler: the address of a Dask scheduler.
    on_tables: called with the run's folder once that is there, and whenever its tables were written meanwhile.
    onlooker: as of gradbed.experiments.study.running.execution.executor. threads: of each point, as of PointTask.
    UserError where nothing can run at all.
    """
    planned = plan(study, scale)
    # Unlocked at the end of this process: figures are drawn into it.
    folder = _folder(study, planned, scale, output, resume)
    files = RunFiles(folder.path)
    on_tables(folder.path)
    orders = [replace(_order(study, item, scale, files), threads=threads) for item in _todo(planned, files)]
    labels = {item.digest: item.point.label for item in planned}
    broken: dict[str, str] = {}
    interrupted = False
    try:
        with executor(orders, jobs, scheduler, onlooker) as running:
            _run(running, orders, files, labels, broken, planned, on_tables)
    except KeyboardInterrupt:
        interrupted = True
        if onlooker is not None:
            onlooker.given_up()
    done = write_point_tables(files, planned)
    files.link_captures()
    if not interrupted:
        folder.finish()
    return StudyRun(
        folder.path, files, tuple(done), len(planned), {labels[d]: why for d, why in broken.items()}, interrupted
    )


def _run(
    running: Executor,
    orders: Sequence[PointOrder],
    files: RunFiles,
    labels: dict[str, str],
    broken: dict[str, str],
    planned: Sequence[PlannedPoint],
    on_tables: Callable[[Path], None],
) -> None:
    started_s = written_s = time.monotonic()
    writing_s = 0.0
    outcomes = running.results(lambda order: say(f"{labels[order.digest]} ..."))
    for ended, (order, outcome) in enumerate(outcomes, 1):
        if isinstance(outcome, Broken):
            broken[order.digest] = outcome.reason
            kind = ProcessLost if outcome.is_lost else UserError
            files.log(order.digest, outcome.details)
            said = f"BROKEN: {outcome.reason}"
        else:
            files.write(outcome)
            said = _outcome(outcome)
        if broken and len(planned) == 1:
            raise kind(broken[order.digest])
        # When the first of two such points ends, the other is not far from its end.
        together = isinstance(running, Beside)
        left_s = 0.0 if together else (time.monotonic() - started_s) / ended * (len(orders) - ended)
        say(f"[{ended}/{len(orders)}] {labels[order.digest]}: {said}{_left(left_s)}")
        # They are for those who look on: points are stored already. All rows are written again each time.
        if (now_s := time.monotonic()) - written_s >= writing_s / MOST_OF_THE_TIME:
            write_point_tables(files, planned)
            on_tables(files.path)
            written_s = time.monotonic()
            writing_s = written_s - now_s
        if len(broken) == ended >= SAME_TROUBLES and len(set(broken.values())) == 1:
            raise kind(f"{labels[order.digest]}: {broken[order.digest]}")


def _left(seconds: float) -> str:
    if seconds < 10:
        return ""
    return f" ({seconds / 60:.0f} min left)" if seconds >= 90 else f" ({seconds:.0f} s left)"


def _todo(planned: Sequence[PlannedPoint], files: RunFiles) -> list[PlannedPoint]:
    """What is missing, in order, and then what is there but worth nothing."""
    each_once = list({item.digest: item for item in planned}.values())
    stored = {item.digest: files.read(item.digest) for item in each_once}
    missing = [item for item in each_once if stored[item.digest] is None]
    return missing + [item for item in each_once if (found := stored[item.digest]) is not None and not found.is_good]


def _order(study: Study, item: PlannedPoint, scale: Scale, files: RunFiles) -> PointOrder:
    return PointOrder(
        item.digest,
        study.head.system,
        item.point.configuration.model_dump(mode="json"),
        item.point.seed,
        _scale_of(item.point, scale).factor,
        files.folder(item.digest),
        False if item.point.other_clock else study.head.pcap,
        study.head.attempts,
        study.head.limit_s,
    )


def done_points(files: RunFiles, planned: Iterable[PlannedPoint]) -> list[DonePoint]:
    """Those that are done, in order."""
    found = []
    for item in planned:
        if (stored := files.read(item.digest)) is not None:
            point = item.point
            found.append(DonePoint(point.coordinates, point.repetition, stored, point.other_clock))
    return found


def write_point_tables(files: RunFiles, planned: Sequence[PlannedPoint]) -> list[DonePoint]:
    """Write the raw rows of all points that are done: points, and every table that systems made."""
    done = done_points(files, planned)
    tables = {"points": [point.row for point in done]}
    for name in dict.fromkeys(name for point in done for name in point.stored.tables):
        tables[name] = [row for point in done for row in point.table(name)]
    for name, rows in tables.items():
        if rows:
            write_tables(rows, files.path / name)
    return done


def _folder(study: Study, planned: Sequence[PlannedPoint], scale: Scale, output: Path, resume: bool) -> RunFolder:
    if resume:
        found = find_run(output, study.name, {item.digest for item in planned}, study.quick)
        if found is not None:
            folder = RunFolder.reopen(found)
            files = RunFiles(found)
            done = done_points(files, planned)
            bad = sum(not point.stored.is_good for point in done)
            again = (
                f"; {bad} of them failed or {'was' if bad == 1 else 'were'} invalid, and are run again" if bad else ""
            )
            say(f"going on with {found}: {len(done)} of {len(planned)} points are done{again}")
            write_description(folder, study, planned, scale)
            return folder
        say("there is nothing to go on with (other points, or another version of the program): starting anew")
    folder = RunFolder(output, study.name)
    write_description(folder, study, planned, scale)
    return folder


def write_description(folder: RunFolder, study: Study, planned: Sequence[PlannedPoint], scale: Scale) -> None:
    """The study as given and resolved, versions and machine; those of every time that the run was gone on with."""
    if study.path is not None:
        (folder.path / "study.yaml").write_bytes(study.path.read_bytes())
    session = 1 + len(list(folder.path.glob("environment*.json")))
    folder.write_json("environment.json" if session == 1 else f"environment-{session}.json", environment())
    folder.write_json(
        "study.json",
        {
            **study.head.model_dump(mode="json", exclude={"quick"}),
            "quick": study.quick,
            "scale_factor": scale.factor,
            "sources": source_digest(study.head.system),
            "points": [
                {
                    "digest": item.digest,
                    "coordinates": item.point.coordinates,
                    "repetition": item.point.repetition,
                    "seed": item.point.seed,
                    "other_clock": item.point.other_clock,
                    "configuration": item.point.configuration.model_dump(mode="json"),
                }
                for item in planned
            ],
        },
    )


def _outcome(point: StoredPoint) -> str:
    if point.failures:
        return f"FAILED: {point.failures[0]}"
    reasons = point.row["verdict_reasons"]
    return f"{point.row['verdict']}{': ' + str(reasons) if reasons else ''}"


def say(text: str) -> None:
    print(text if text.startswith("[") else f"gradbed: {text}", file=sys.stderr, flush=True)
