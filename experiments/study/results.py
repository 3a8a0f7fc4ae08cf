"""The points of a run as a figure needs them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.fidelity.report import VerdictWord
from experiments.study.run_files import DonePoint, RunFiles
from switch.errors import UserError


@dataclass(frozen=True)
class SeriesPoint:
    """The repetitions at one place of one series. values: of runs that were not invalid and did not fail."""

    x: Any
    values: tuple[float, ...]
    invalid: tuple[float, ...]
    verdict: VerdictWord
    """The worst of the runs in `values`; invalid if there is none."""


@dataclass(frozen=True)
class StudyResults:
    """All points of a run that are done. resolved: what study.json says."""

    folder: Path
    resolved: Mapping[str, Any]
    points: tuple[DonePoint, ...]

    def series(self, x: str, y: str, series: str | None = None) -> dict[Any, list[SeriesPoint]]:
        """By value of `series` (one key, None, without): y at each x, in the order in which the study has them.

        x and series are swept paths or columns of the points table. Points at which y is empty are left out.
        """
        groups: dict[Any, dict[Any, list[DonePoint]]] = {}
        for point in self.points:
            row = point.row
            if row.get(y) is not None:
                label = row[series] if series is not None else None
                groups.setdefault(label, {}).setdefault(row[x], []).append(point)
        return {
            label: [_series_point(at, y, found) for at, found in places.items()] for label, places in groups.items()
        }

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a further table, with the coordinates of their points."""
        return [row for point in self.points for row in point.table(name)]


def load_results(folder: Path) -> StudyResults:
    """UserError if the folder holds no run of a study."""
    try:
        resolved = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        planned = [(point["digest"], point["coordinates"], point["repetition"]) for point in resolved["points"]]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{folder} holds no run of a study: {error}") from None
    files = RunFiles(folder)
    points = [
        DonePoint(coordinates, repetition, stored)
        for digest, coordinates, repetition in planned
        if (stored := files.read(digest)) is not None
    ]
    return StudyResults(folder, resolved, tuple(points))


def worst(verdicts: Iterable[VerdictWord]) -> VerdictWord:
    """valid without any."""
    order: Sequence[VerdictWord] = ("valid", "doubtful", "invalid")
    return max(verdicts, key=order.index, default="valid")


def _series_point(x: Any, y: str, points: Sequence[DonePoint]) -> SeriesPoint:
    good = [p for p in points if p.row["verdict"] != "invalid" and not p.stored.failures]
    bad = [p for p in points if p not in good]
    return SeriesPoint(
        x=x,
        values=tuple(float(p.row[y]) for p in good),
        invalid=tuple(float(p.row[y]) for p in bad),
        verdict=worst(p.row["verdict"] for p in good) if good else "invalid",
    )
