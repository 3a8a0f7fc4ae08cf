"""The files of a study's run: results/NAME/STAMP/.

study.yaml         the study as it was given
study.json         resolved: name, quick, scale, and every point with its digest, coordinates and configuration
environment.json   versions and machine
points/DIGEST.json what a point found, written when it is done; in points/DIGEST/ its
                   network.json (topology and plans of its switches), logs, and captures (pcap/)
pcap               leads there, if captures are of one point
data/NAME.csv      what figures show, a row for each place of the sweep (docs/data)
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

CAPTURES = "pcap"
"""The folder of a point's captures."""


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

    @property
    def is_good(self) -> bool:
        """Whether it needs not be run again."""
        return not self.failures and self.row["verdict"] != "invalid"


@dataclass(frozen=True)
class DonePoint:
    """A place in the sweep, and what was found there. other_clock: as of gradbed.experiments.study.model.Point."""

    coordinates: Mapping[str, Any]
    repetition: int
    stored: StoredPoint
    other_clock: bool = False

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
    def place_text(self) -> str:
        """For people: "loss=0.01, seed 2: "; empty where nothing is swept."""
        if not self.coordinates:
            return ""
        parts = [f"{path.rsplit('.', 1)[-1]}={value}" for path, value in self.coordinates.items()]
        return f"{', '.join(parts)}, seed {self.stored.seed}: "

    @property
    def row(self) -> dict[str, Any]:
        """Its row of the points table."""
        return {**self.place, **self.stored.row}

    def table(self, name: str) -> list[dict[str, Any]]:
        # The place holds, whatever a system calls its columns.
        return [{**self.place, **row, **self.place} for row in self.stored.tables.get(name, [])]


class RunFiles:
    """Reads and writes the points of one run folder, and keeps those that it read or wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, StoredPoint] = {}
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
        text = json.dumps(asdict(point), indent=1)
        with scratch.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
        # As it will be read: JSON has no tuples.
        self._known[point.digest] = StoredPoint(**json.loads(text))

    def log(self, digest: str, details: str) -> None:
        """Why a point broke."""
        logs = self.path / "logs"
        logs.mkdir(exist_ok=True)
        (logs / f"{digest}.log").write_text(details, encoding="utf-8")

    def captures(self) -> list[Path]:
        """The files of all points, in order."""
        return sorted(self.points.glob(f"*/{CAPTURES}/*"))

    def link_captures(self) -> None:
        """Let `pcap` beside the tables lead to the captures, if they are of one point."""
        folders = {file.parent for file in self.captures()}
        if len(folders) == 1:
            link = self.path / CAPTURES
            link.unlink(missing_ok=True)
            link.symlink_to(folders.pop().relative_to(self.path))

    def read(self, digest: str) -> StoredPoint | None:
        """None if that point is not done."""
        if digest not in self._known:
            try:
                self._known[digest] = StoredPoint(**json.loads(self._file(digest).read_text(encoding="utf-8")))
            except FileNotFoundError:
                return None
        return self._known[digest]

    def _file(self, digest: str) -> Path:
        return self.points / f"{digest}.json"


def find_run(output: Path, name: str, digests: set[str], quick: bool) -> Path | None:
    """The newest run of the study, small or full as asked for, that was to make any of these points; but rather an
    older one with some of them done than one that has none."""
    parent = output / name
    found = []
    for folder in parent.iterdir() if parent.is_dir() else ():
        if folder.is_symlink():
            continue
        try:
            resolved = json.loads((folder / "study.json").read_text(encoding="utf-8"))
            made = {point["digest"] for point in resolved["points"]}
            if resolved["quick"] == quick and made & digests:
                done = any((folder / "points" / f"{digest}.json").exists() for digest in digests)
                found.append((done, folder.stat().st_mtime, folder.name, folder))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it holds no run of a study
    return max(found)[-1] if found else None
