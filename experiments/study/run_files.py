"""The files of a study's run: results/NAME/STAMP/.

study.yaml         the study as it was given
study.json         resolved: name, quick, scale, and every point with its digest, coordinates and configuration
environment.json   versions and machine
points/DIGEST.json what a point found, written when it is done; logs and captures in points/DIGEST/
points.csv, .parquet, rounds.csv, ...   raw rows of all points that are done
*.png, *.svg, *.pdf                     figures
logs/              what went wrong in points that failed
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class StoredPoint:
    """What points/DIGEST.json holds. row: metrics, fidelity and the rest of the points table but for the place in the
    sweep, since several places may share a point."""

    digest: str
    seed: int
    row: Mapping[str, Any]
    tables: Mapping[str, list[Mapping[str, Any]]]
    decisions: Mapping[str, Any]
    failures: list[str]


@dataclass(frozen=True)
class DonePoint:
    """A place in the sweep, and what was found there."""

    coordinates: Mapping[str, Any]
    repetition: int
    stored: StoredPoint

    @property
    def place(self) -> dict[str, Any]:
        """The columns that say where a row belongs."""
        return {
            "digest": self.stored.digest,
            **self.coordinates,
            "repetition": self.repetition,
            "seed": self.stored.seed,
        }

    @property
    def row(self) -> dict[str, Any]:
        """Its row of the points table."""
        return {**self.place, **self.stored.row}

    def table(self, name: str) -> list[dict[str, Any]]:
        return [{**self.place, **row} for row in self.stored.tables.get(name, [])]


class RunFiles:
    """Reads and writes the points of one run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.points = path / "points"
        self.points.mkdir(exist_ok=True)

    def folder(self, digest: str) -> Path:
        """A point's own folder, made now."""
        path = self.points / digest
        path.mkdir(exist_ok=True)
        return path

    def write(self, point: StoredPoint) -> None:
        """All or nothing, and on the disk when this returns: a run may be killed at any moment."""
        target = self._file(point.digest)
        scratch = target.with_suffix(".part")
        with scratch.open("w", encoding="utf-8") as file:
            json.dump(asdict(point), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)

    def read(self, digest: str) -> StoredPoint | None:
        """None if that point is not done."""
        try:
            return StoredPoint(**json.loads(self._file(digest).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def _file(self, digest: str) -> Path:
        return self.points / f"{digest}.json"


def planned_digests(folder: Path) -> set[str]:
    """The digests of the points that a run was to make; empty if the folder holds no run of a study."""
    try:
        resolved = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        return {point["digest"] for point in resolved["points"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def find_run(output: Path, name: str, digests: set[str]) -> Path | None:
    """The newest run of the study that was to make any of these points."""
    parent = output / name
    folders = [path for path in parent.iterdir() if not path.is_symlink()] if parent.is_dir() else []
    for folder in sorted(folders, key=lambda path: (path.stat().st_mtime, path.name), reverse=True):
        if planned_digests(folder) & digests:
            return folder
    return None
