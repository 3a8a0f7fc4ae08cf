"""What a run's folder holds, in words, with links that lead there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from gradbed.experiments.tables.units import engineering

OWN = frozenset({"report.html", "report.json"})


@dataclass(frozen=True)
class FileLink:
    """path: relative to the run's folder; href: the same as part of a URL."""

    path: str
    href: str
    size: str


@dataclass(frozen=True)
class FileGroup:
    name: str
    words: str
    files: Sequence[FileLink]


GROUPS = (
    ("What was to run", "the study, versions and machine", ("study.yaml", "study.json", "environment*.json")),
    ("Rows", "of all points that are done; the same as CSV and as Parquet", ("*.csv", "*.parquet", "data/*.csv")),
    ("Figures", "the same as PNG, SVG and PDF", ("*.png", "*.svg", "*.pdf")),
    ("Logs", "why points broke", ("logs/*",)),
    ("Points", "what each found, and in its folder network, plans, logs, captures", ("points/*.json", "points/*/*")),
)  # fmt: skip


def file_groups(folder: Path) -> list[FileGroup]:
    """Groups without files are left out; at last whatever belongs to none."""
    seen: set[Path] = set()
    groups = []
    for name, words, patterns in GROUPS:
        found = sorted({path for pattern in patterns for path in folder.glob(pattern)} - seen)
        groups.append(_group(folder, name, words, found))
        seen.update(found)
    others = sorted(set(folder.glob("*")) - seen)
    groups.append(_group(folder, "Others", "what else the folder holds", others))
    return [group for group in groups if group.files]


def _group(folder: Path, name: str, words: str, paths: Sequence[Path]) -> FileGroup:
    return FileGroup(name, words, [_link(folder, path) for path in paths if _is_shown(path)])


def _is_shown(path: Path) -> bool:
    return path.is_file() and path.name not in OWN and not path.name.startswith(".")


def _link(folder: Path, path: Path) -> FileLink:
    relative = path.relative_to(folder).as_posix()
    return FileLink(relative, quote(relative), engineering(path.stat().st_size, "B", 3))
