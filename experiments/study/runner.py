"""Runs a study: every point that is not done yet, one after the other, each written as soon as it is done."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.run_folder import RunFolder, environment
from experiments.scale import Scale
from experiments.study.digest import digest, identity
from experiments.study.model import Point, Study
from experiments.study.run_files import DonePoint, RunFiles, StoredPoint, find_run
from experiments.system import PointResult, PointTask
from experiments.tables import write_tables
from switch.errors import UserError

INTERRUPTED = 130


@dataclass(frozen=True)
class PlannedPoint:
    """A point with the digest that identifies it; points that mean the same have the same one, and run once."""

    digest: str
    point: Point


@dataclass(frozen=True)
class StudyRun:
    """A run that has ended. done: in the order of the study; failed: labels of points that broke."""

    folder: Path
    done: tuple[DonePoint, ...]
    planned: int
    failed: tuple[str, ...]
    interrupted: bool


def plan(study: Study, scale: Scale) -> tuple[PlannedPoint, ...]:
    """All points of the study, in order."""
    return tuple(PlannedPoint(digest(identity(study.head.system, point, scale)), point) for point in study.points)


def run_study(study: Study, scale: Scale, output: Path, resume: bool = False) -> StudyRun:
    """Run what is not done yet. With `resume`, in the folder of the newest run that was to make these points.

    A point that breaks is reported, with its traceback in the run's logs, and the study goes on. UserError if a point
    meets something that the user can put right.
    """
    planned = plan(study, scale)
    folder = _folder(study, planned, scale, output, resume)
    files = RunFiles(folder.path)
    broken: dict[str, str] = {}
    interrupted = False
    try:
        for index, item in enumerate(planned, 1):
            if item.digest in broken or files.read(item.digest) is not None:
                continue
            _say(f"[{index}/{len(planned)}] {item.point.label} ...")
            started_s = time.monotonic()
            problem = _run_point(study, item, scale, files)
            if problem:
                broken[item.digest] = item.point.label
            _say(f"    {problem or _outcome(files, item)} ({time.monotonic() - started_s:.1f} s)")
            write_point_tables(files, planned)
    except KeyboardInterrupt:
        interrupted = True
    done = write_point_tables(files, planned)
    if not interrupted:
        folder.finish()
    folder.close()
    return StudyRun(files.path, tuple(done), len(planned), tuple(broken.values()), interrupted)


def done_points(files: RunFiles, planned: Iterable[PlannedPoint]) -> list[DonePoint]:
    """Those that are done, in order."""
    found = []
    for item in planned:
        if (stored := files.read(item.digest)) is not None:
            found.append(DonePoint(item.point.coordinates, item.point.repetition, stored))
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
        found = find_run(output, study.name, {item.digest for item in planned})
        if found is not None:
            folder = RunFolder.reopen(found)
            done = done_points(RunFiles(found), planned)
            _say(f"going on with {found}: {len(done)} of {len(planned)} points are done")
            write_description(folder, study, planned, scale)
            return folder
        _say("there is nothing to go on with: starting anew")
    folder = RunFolder(output, study.name)
    write_description(folder, study, planned, scale)
    return folder


def write_description(folder: RunFolder, study: Study, planned: Sequence[PlannedPoint], scale: Scale) -> None:
    """The study as given and resolved, versions and machine."""
    (folder.path / "study.yaml").write_bytes(study.path.read_bytes())
    folder.write_json("environment.json", environment())
    folder.write_json(
        "study.json",
        {
            **study.head.model_dump(mode="json", exclude={"quick"}),
            "quick": study.quick,
            "scale_factor": scale.factor,
            "points": [
                {
                    "digest": item.digest,
                    "coordinates": item.point.coordinates,
                    "repetition": item.point.repetition,
                    "seed": item.point.seed,
                    "configuration": item.point.configuration.model_dump(mode="json"),
                }
                for item in planned
            ],
        },
    )


def _run_point(study: Study, item: PlannedPoint, scale: Scale, files: RunFiles) -> str | None:
    """Run a point; what is wrong if it broke. KeyboardInterrupt and UserError as ever."""
    log = files.path / "logs" / f"{item.digest}.log"

    def body() -> int:
        try:
            _measure(study, item, scale, files)
        except UserError as error:
            log.write_text(str(error), encoding="utf-8")
            return 2
        except Exception:
            log.write_text(traceback.format_exc(), encoding="utf-8")
            return 1
        return 0

    if study.system.needs_network:
        from topo.sandbox import run_in_sandbox

        status = run_in_sandbox(body, "gradbed run")
    else:
        status = body()
    if status in (INTERRUPTED, 128 + 15):
        raise KeyboardInterrupt
    if status == 2:
        said = log.read_text(encoding="utf-8") if log.exists() else "needs what this machine does not give"
        raise UserError(f"point {item.point.label}: {said} (--resume goes on from there)")
    return None if status == 0 else f"BROKEN: status {status}, see {log}"


def _measure(study: Study, item: PlannedPoint, scale: Scale, files: RunFiles) -> None:
    point = item.point
    started_s = time.time()
    result = study.system.run(
        PointTask(point.configuration.canonical(), point.seed, scale, files.folder(item.digest), study.head.pcap)
    )
    files.write(
        StoredPoint(
            digest=item.digest,
            seed=point.seed,
            row=_point_row(study, item, scale, result, time.time() - started_s),
            tables={name: [dict(row) for row in rows] for name, rows in result.tables.items()},
            decisions=json.loads(json.dumps(result.decisions, sort_keys=True)),
            failures=list(result.failures),
        )
    )


def _point_row(
    study: Study, item: PlannedPoint, scale: Scale, result: PointResult, seconds: float
) -> dict[str, object]:
    rate_bps = scale.rate_bps(item.point.configuration.topology.link.rate_mbps)
    normalised = {}
    for name, metric in study.system.metrics.items():
        value = result.metrics.get(name)
        if metric.scales is not None and rate_bps is not None and isinstance(value, (int, float)):
            normalised[f"{name}_normalised"] = value / rate_bps if metric.scales == "rate" else value * rate_bps
    return {
        **{name: result.metrics.get(name) for name in study.system.metrics},
        **normalised,
        "scale_factor": scale.factor,
        "link_rate_bps": rate_bps,
        "failures": "; ".join(result.failures),
        "seconds": seconds,
        **result.fidelity.columns(),
    }


def _outcome(files: RunFiles, item: PlannedPoint) -> str:
    point = files.read(item.digest)
    if point is None:
        return "BROKEN: nothing was written"
    if point.failures:
        return f"FAILED: {point.failures[0]}"
    reasons = point.row["verdict_reasons"]
    return f"{point.row['verdict']}{': ' + str(reasons) if reasons else ''}"


def _say(text: str) -> None:
    print(f"gradbed: {text}" if not text.startswith(("[", " ")) else text, file=sys.stderr, flush=True)
